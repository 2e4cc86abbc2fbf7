package reduce

import (
	"bytes"

	"busbar.dev/coll"
)

// Known are values with which a collective is checked. They are chosen so that every sum of them is exact in every
// type, whatever the order: at most few ranks contribute to an element, and by small whole numbers. Which ranks do
// depends on the element, in a pattern whose length divides no block's: a block that is in the wrong place, or that
// comes from the wrong rank, differs.
type Known struct {
	coll.Op
	Ranks int
}

const (
	period = 16381 // a prime
	few    = 4
)

// Factor is what a rank's contribution is multiplied with by mulsum.
func (Known) Factor(rank int) float64 { return float64(1 + rank%2) }

// value is what a rank has at an index of its send buffer.
func (k Known) value(rank int, i int64) float64 {
	h := int(uint32(i%period+1) * 2654435761 >> 8 & 0xffff) // neighbours differ
	in := (rank+h)%k.Ranks < few
	switch {
	case !k.Kind.Reduces():
		return float64((h + 3*rank) & 3)
	case k.Reduce == coll.Prod && in:
		return 2
	case k.Reduce == coll.Prod:
		return 1
	case !in:
		return 0
	case k.Type == coll.F8E4M3 || k.Type == coll.F8E5M2: // which hold few whole numbers in a row
		return 1
	}
	return float64(1 + h%3)
}

// reduced is what all ranks' values at an index make together.
func (k Known) reduced(i int64) (v float64) {
	for r := range k.Ranks {
		y := k.value(r, i)
		if k.Reduce == coll.MulSum {
			y *= k.Factor(r)
		}
		switch {
		case r == 0:
			v = y
		case k.Reduce == coll.Prod:
			v *= y
		case k.Reduce == coll.Min:
			v = min(v, y)
		case k.Reduce == coll.Max:
			v = max(v, y)
		default:
			v += y
		}
	}
	if k.Reduce == coll.Avg {
		v /= float64(k.Ranks)
	}
	return v
}

// Region is a part of a buffer, in elements: what of a rank's send buffer it is.
type Region struct {
	At, Count int64
	Rank      int   // -1: of all ranks' buffers, reduced
	Start     int64 // its index there
}

// Tile is what a region holds, over and over.
func (k Known) Tile(x Region) []byte {
	size := k.Type.Size()
	out := make([]byte, int(min(x.Count, period))*size)
	for j := 0; j < len(out); j += size {
		i := x.Start + int64(j/size)
		v := 0.0
		if x.Rank < 0 {
			v = k.reduced(i)
		} else {
			v = k.value(x.Rank, i)
		}
		Put(out[j:], k.Type, v)
	}
	return out
}

// Sent is what a rank sends.
func (k Known) Sent(rank int) Region {
	return Region{Count: int64(k.Send(k.Ranks, rank)) / int64(k.Type.Size()), Rank: rank}
}

// Expected is what the receive buffer of a rank holds afterwards.
func (k Known) Expected(rank int) []Region {
	count := k.Count(k.Ranks)
	if k.Kind.Rooted() && rank != k.Root && (k.Kind == coll.Reduce || k.Kind == coll.Gather) {
		return nil
	}
	switch k.Kind {
	case coll.Barrier:
		return nil
	case coll.AllReduce, coll.Reduce:
		return []Region{{0, count, -1, 0}}
	case coll.Broadcast:
		return []Region{{0, count, k.Root, 0}}
	case coll.ReduceScatter:
		return []Region{{0, count, -1, int64(rank) * count}}
	case coll.Scatter:
		return []Region{{0, count, k.Root, int64(rank) * count}}
	case coll.SendRecv:
		return []Region{{0, count, (rank + k.Ranks - 1) % k.Ranks, 0}}
	}
	var list []Region
	for s := range k.Ranks {
		x := Region{int64(s) * count, count, s, 0} // all_gather, gather, hypercube
		if k.Kind == coll.AllToAll || k.Kind == coll.AllToAllV {
			x.Start = int64(rank) * count
		}
		list = append(list, x)
	}
	return list
}

// Differing counts elements of a size that differ from a tile that is repeated.
func Differing(data, tile []byte, size int) (wrong int64) {
	for len(data) > 0 {
		n := min(len(data), len(tile))
		if !bytes.Equal(data[:n], tile[:n]) {
			for i := 0; i < n; i += size {
				if !bytes.Equal(data[i:i+size], tile[i:i+size]) {
					wrong++
				}
			}
		}
		data = data[n:]
	}
	return wrong
}
