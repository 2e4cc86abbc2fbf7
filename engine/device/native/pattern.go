//go:build linux

package native

import (
	"math"
	"math/bits"

	"busbar.dev/coll"
	"busbar.dev/internal/reduce"
)

// Values are chosen so that every sum of them is exact in every type, whatever the order: at most few ranks contribute
// to an element, and by small whole numbers. Which ranks do depends on the element, in a pattern whose length divides
// no block's: a block that is in the wrong place, or that comes from the wrong rank, differs.
const (
	period = 16381 // a prime
	few    = 4
)

// scatter makes neighbouring elements different.
func scatter(i int64) int { return int(uint32(i%period+1) * 2654435761 >> 8 & 0xffff) }

// value is what a rank has at an index of its send buffer.
func value(r coll.Redop, t coll.Dtype, n, rank int, i int64) int {
	h := scatter(i)
	in := (rank+h)%n < few
	if r == coll.Prod {
		if in {
			return 2
		}
		return 1
	}
	if !in {
		return 0
	}
	return weight(t, h)
}

// weight is what a rank contributes. A type of two bits' fraction holds 1 to 4 and no more in a row.
func weight(t coll.Dtype, h int) int {
	if t == coll.F8E5M2 {
		return 1
	}
	return 1 + h%3
}

// reduced is what all ranks' values at an index make together.
func reduced(r coll.Redop, t coll.Dtype, n int, i int64) float64 {
	c := float64(weight(t, scatter(i)))
	k := float64(min(n, few))
	switch r {
	case coll.Prod:
		return math.Pow(2, k)
	case coll.Max:
		return c
	case coll.Min:
		if n > few {
			return 0
		}
		return c
	case coll.Avg:
		return k * c / float64(n)
	}
	return k * c
}

// exact reports whether the result does not depend on how it is computed.
func exact(r coll.Redop, n int) bool {
	return r != coll.MulSum && (r != coll.Avg || bits.OnesCount(uint(n)) == 1)
}

// tile is one period of a buffer that begins at an index of a rank's send buffer, or of the reduced values for a
// negative rank.
func tile(o coll.Op, n, rank int, start int64) []byte {
	size := o.Type.Size()
	out := make([]byte, period*size)
	for j := range period {
		i := start + int64(j)
		var v float64
		if rank < 0 {
			v = reduced(o.Reduce, o.Type, n, i)
		} else {
			v = float64(value(o.Reduce, o.Type, n, rank, i))
		}
		reduce.Put(out[j*size:], o.Type, v)
	}
	return out
}

// region is a part of a receive buffer, in elements: what it must be.
type region struct {
	at, count int64
	rank      int   // whose send buffer; -1: reduced
	start     int64 // its index there
}

// expected is what the receive buffer of a rank holds afterwards.
func expected(o coll.Op, n, rank int) []region {
	count := o.Count(n)
	if o.Kind.Rooted() && rank != o.Root && (o.Kind == coll.Reduce || o.Kind == coll.Gather) {
		return nil
	}
	switch o.Kind {
	case coll.AllReduce, coll.Reduce:
		return []region{{0, count, -1, 0}}
	case coll.Broadcast:
		return []region{{0, count, o.Root, 0}}
	case coll.ReduceScatter:
		return []region{{0, count, -1, int64(rank) * count}}
	case coll.Scatter:
		return []region{{0, count, o.Root, int64(rank) * count}}
	case coll.SendRecv:
		return []region{{0, count, (rank + n - 1) % n, 0}}
	}
	var list []region
	for s := range n {
		x := region{int64(s) * count, count, s, 0} // all_gather, gather, hypercube
		if o.Kind == coll.AllToAll {
			x.start = int64(rank) * count
		}
		list = append(list, x)
	}
	return list
}
