package bench

import (
	"context"
	"math"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/reduce"
)

// buffers are those of a call, in place or not.
func (m *meter) buffers(op coll.Op, inPlace bool) engine.Buffers {
	n, rank := m.g.Size(), m.g.Rank()
	b := engine.Buffers{Send: m.send[:op.Send(n, rank)], Recv: m.recv[:op.Recv(n, rank)], Factor: factor(rank)}
	if !inPlace {
		return b
	}
	block := int(op.Block(n))
	own := func(p []byte) []byte { return p[rank*block : (rank+1)*block] }
	switch op.Kind {
	case coll.AllReduce:
		b.Recv = b.Send
	case coll.Broadcast, coll.Reduce:
		if rank == op.Root {
			b.Recv = b.Send
		}
	case coll.AllGather, coll.Hypercube:
		b.Send = own(b.Recv)
	case coll.Gather:
		if rank == op.Root {
			b.Send = own(b.Recv)
		}
	case coll.ReduceScatter:
		b.Recv = own(b.Send)
	case coll.Scatter:
		if rank == op.Root {
			b.Recv = own(b.Send)
		}
	}
	return b
}

func factor(rank int) float64 { return float64(1 + rank%2) }

// value is element i of what a rank contributes: small whole numbers, so that most types hold
// their sums exactly; for products, ones and a few twos.
func value(op coll.Op, n, rank, i int) float64 {
	if op.Reduce == coll.Prod && op.Kind.Reduces() {
		if i%n == rank {
			return 2
		}
		return 1
	}
	return float64((i + 3*rank + i>>8) & 3)
}

// want is element i of a rank's result, and how far off it may be.
func want(op coll.Op, n, rank, i int) (v, off float64) {
	per := int(op.Count(n))
	switch op.Kind {
	case coll.AllReduce, coll.Reduce:
		return combined(op, n, i)
	case coll.ReduceScatter:
		return combined(op, n, rank*per+i)
	case coll.Broadcast:
		return value(op, n, op.Root, i), 0
	case coll.AllGather, coll.Gather, coll.Hypercube:
		return value(op, n, i/per, i%per), 0
	case coll.AllToAll, coll.AllToAllV: // the bench has equal blocks only
		return value(op, n, i/per, rank*per+i%per), 0
	case coll.SendRecv:
		return value(op, n, (rank+n-1)%n, i), 0
	case coll.Scatter:
		return value(op, n, op.Root, rank*per+i), 0
	}
	return 0, 0
}

// combined is the reduction of all ranks' element i. Each of n roundings may be off by half a
// unit of the last place of the sum of magnitudes.
func combined(op coll.Op, n, i int) (v, off float64) {
	var most float64
	for r := range n {
		y := value(op, n, r, i)
		if op.Reduce == coll.MulSum {
			y *= factor(r)
		}
		most += y
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
	}
	if op.Reduce == coll.Avg {
		v /= float64(n)
	}
	half, whole := epsilon(op.Type)
	if whole {
		return math.Trunc(v), 0
	}
	return v, float64(n+1) * half * most
}

// epsilon is half the distance from 1 to the next number of a type, or that it has whole
// numbers only.
func epsilon(t coll.Dtype) (half float64, whole bool) {
	switch t {
	case coll.Float:
		return 0x1p-24, false
	case coll.Double:
		return 0x1p-53, false
	case coll.Half:
		return 0x1p-11, false
	case coll.BFloat16:
		return 0x1p-8, false
	case coll.F8E4M3:
		return 0x1p-4, false
	case coll.F8E5M2:
		return 0x1p-3, false
	}
	return 0, true
}

// fill puts known data into the buffers of a rank.
func fill(op coll.Op, n, rank int, b engine.Buffers) {
	clear(b.Recv)
	size := op.Type.Size()
	for i := range len(b.Send) / size {
		reduce.Put(b.Send[i*size:], op.Type, value(op, n, rank, i))
	}
}

// count is the number of wrong elements that came of known data.
func count(op coll.Op, n, rank int, b engine.Buffers) (wrong int64) {
	size := op.Type.Size()
	round := make([]byte, size)
	for i := range len(b.Recv) / size {
		v, off := want(op, n, rank, i)
		if off == 0 { // as the type holds it: whole numbers wrap around
			reduce.Put(round, op.Type, v)
			v = reduce.Element(round, op.Type)
		}
		if !(math.Abs(reduce.Element(b.Recv[i*size:], op.Type)-v) <= off) {
			wrong++
		}
	}
	return wrong
}

// check runs the call once on known data and counts wrong elements of all ranks.
func (m *meter) check(ctx context.Context, call *engine.Call, op coll.Op, inPlace bool) (int64, error) {
	n, rank := m.g.Size(), m.g.Rank()
	b := m.buffers(op, inPlace)
	fill(op, n, rank, b)
	if err := call.Bind(b); err != nil {
		return 0, err
	}
	if _, err := call.Run(ctx); err != nil {
		return 0, err
	}
	return m.total(ctx, count(op, n, rank, b))
}

// total is the sum of a number over all ranks.
func (m *meter) total(ctx context.Context, x int64) (int64, error) {
	m.bad[0] = x
	if _, err := m.wrong.Run(ctx); err != nil {
		return 0, err
	}
	return m.bad[0], nil
}
