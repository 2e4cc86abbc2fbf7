package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/reduce"
)

// reference is what a collective should give, in float64.
type reference struct {
	x    trial
	n    int
	send [][]byte // by rank
	vals [][]float64
}

// newReference draws contributions that sums and products of a few ranks do not overflow.
func newReference(x trial, n int) *reference {
	ref := &reference{x: x, n: n}
	rng := rand.New(rand.NewPCG(x.seed, 7))
	size := x.op.Type.Size()
	for r := range n {
		count := int(x.op.Send(n, r)) / size
		b := make([]byte, count*size)
		v := make([]float64, count)
		for i := range v {
			reduce.Put(b[i*size:], x.op.Type, draw(rng, x.op.Type))
			v[i] = reduce.Element(b[i*size:], x.op.Type)
		}
		ref.send, ref.vals = append(ref.send, b), append(ref.vals, v)
	}
	return ref
}

func draw(rng *rand.Rand, t coll.Dtype) float64 {
	switch t {
	case coll.Int8, coll.Int32, coll.Int64:
		return float64(rng.IntN(7) - 3)
	case coll.Uint8, coll.Uint32, coll.Uint64:
		return float64(rng.IntN(4))
	case coll.F8E4M3, coll.F8E5M2:
		return rng.Float64()*2 - 1
	}
	return rng.Float64()*4 - 2
}

func factor(rank int) float64 { return float64(rank%3 + 1) }

// buffers are a rank's, in place where the trial says so.
func (ref *reference) buffers(rank int, alloc func(int) []byte) engine.Buffers {
	op := ref.x.op
	send, recv := alloc(len(ref.send[rank])), alloc(int(op.Recv(ref.n, rank)))
	copy(send, ref.send[rank])
	clear(recv)
	b := engine.Buffers{Send: send, Recv: recv, Factor: factor(rank)}
	block := int(op.Block(ref.n))
	if !ref.x.inPlace {
		return b
	}
	switch op.Kind {
	case coll.AllReduce:
		b.Recv = b.Send
	case coll.Broadcast:
		if rank == op.Root {
			b.Recv = b.Send
		}
	case coll.Reduce:
		if rank == op.Root {
			b.Recv = b.Send
		}
	case coll.AllGather, coll.Hypercube, coll.Gather:
		if len(recv) > 0 {
			copy(recv[rank*block:], send)
			b.Send = recv[rank*block : (rank+1)*block]
		}
	case coll.ReduceScatter:
		b.Recv = b.Send[rank*block : (rank+1)*block]
	case coll.Scatter:
		if rank == op.Root {
			b.Recv = b.Send[rank*block : (rank+1)*block]
		}
	}
	return b
}

// want is the value of element i of a rank's receive buffer, and how far off it may be.
func (ref *reference) want(rank, i int) (v, off float64) {
	op, n := ref.x.op, ref.n
	per := int(op.Block(n)) / op.Type.Size()
	switch op.Kind {
	case coll.AllReduce, coll.Reduce:
		return ref.combined(i)
	case coll.ReduceScatter:
		return ref.combined(rank*per + i)
	case coll.Broadcast:
		return ref.vals[op.Root][i], 0
	case coll.AllGather, coll.Gather, coll.Hypercube:
		return ref.vals[i/per][i%per], 0
	case coll.AllToAll:
		return ref.vals[i/per][rank*per+i%per], 0
	case coll.SendRecv:
		return ref.vals[(rank+n-1)%n][i], 0
	case coll.Scatter:
		return ref.vals[op.Root][rank*per+i], 0
	case coll.AllToAllV:
		size := op.Type.Size()
		for from := range n {
			count := int(op.Pair(n, from, rank)) / size
			if i < count {
				at := 0
				for to := range rank {
					at += int(op.Pair(n, from, to)) / size
				}
				return ref.vals[from][at+i], 0
			}
			i -= count
		}
	}
	return 0, 0
}

// combined is the reduction of all ranks' element i. Every rounding to the type may be off by
// half a unit of the last place of the greatest value that occurs on any way.
func (ref *reference) combined(i int) (v, off float64) {
	op := ref.x.op
	var most float64
	for r := range ref.n {
		y := ref.vals[r][i]
		if op.Reduce == coll.MulSum {
			y *= factor(r)
		}
		switch {
		case r == 0:
			v = y
		case op.Reduce == coll.Prod:
			v *= y
		case op.Reduce == coll.Min:
			v = min(v, y)
		case op.Reduce == coll.Max:
			v = max(v, y)
		default:
			v += y
		}
		if op.Reduce == coll.Prod {
			if most == 0 {
				most = 1
			}
			most *= max(math.Abs(y), 1)
		} else {
			most += math.Abs(y)
		}
	}
	if op.Reduce == coll.Avg {
		v /= float64(ref.n)
		if whole(op.Type) {
			v = math.Trunc(v)
		}
	}
	if op.Reduce == coll.Min || op.Reduce == coll.Max || whole(op.Type) {
		return v, 0
	}
	return v, float64(ref.n+1) * epsilon(op.Type) * (most + tiny(op.Type))
}

func whole(t coll.Dtype) bool {
	switch t {
	case coll.Int8, coll.Uint8, coll.Int32, coll.Uint32, coll.Int64, coll.Uint64:
		return true
	}
	return false
}

// epsilon is half the distance from 1 to the next number.
func epsilon(t coll.Dtype) float64 {
	return map[coll.Dtype]float64{
		coll.Float: 0x1p-24, coll.Double: 0x1p-53, coll.Half: 0x1p-11, coll.BFloat16: 0x1p-8, coll.F8E4M3: 0x1p-4,
		coll.F8E5M2: 0x1p-3,
	}[t]
}

// tiny is the smallest normal number, below which rounding is absolute.
func tiny(t coll.Dtype) float64 {
	switch t {
	case coll.Half, coll.F8E5M2:
		return 0x1p-14
	case coll.F8E4M3:
		return 0x1p-6
	}
	return 0x1p-126
}

func (ref *reference) compare(rank int, got []byte) string {
	t := ref.x.op.Type
	size := t.Size()
	for i := range len(got) / size {
		v := reduce.Element(got[i*size:], t)
		want, off := ref.want(rank, i)
		if whole(t) && ref.x.op.Kind.Reduces() {
			b := make([]byte, size)
			reduce.Put(b, t, want) // whole numbers wrap around
			want = reduce.Element(b, t)
		}
		if !(math.Abs(v-want) <= off) {
			return fmt.Sprintf("element %d of %d is %v; want %v within %v", i, len(got)/size, v, want, off)
		}
	}
	return ""
}
