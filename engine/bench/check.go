package bench

import (
	"context"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/reduce"
)

// buffers are those of a call, in place or not.
func (m *meter) buffers(op coll.Op, inPlace bool) engine.Buffers {
	n, rank := m.g.Size(), m.g.Rank()
	b := engine.Buffers{
		Send: m.send[:op.Send(n, rank)], Recv: m.recv[:op.Recv(n, rank)], Factor: reduce.Known{}.Factor(rank),
	}
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

// check runs the call once on known data and counts wrong elements of all ranks.
func (m *meter) check(ctx context.Context, call *engine.Call, op coll.Op, inPlace bool) (int64, error) {
	rank, size := m.g.Rank(), op.Type.Size()
	k := reduce.Known{Op: op, Ranks: m.g.Size()}
	b := m.buffers(op, inPlace)
	for i := range b.Recv { // what is not written must not pass
		b.Recv[i] = 0xA5
	}
	for tile, at := k.Tile(k.Sent(rank)), b.Send; len(at) > 0; {
		at = at[copy(at, tile):]
	}
	if err := call.Bind(b); err != nil {
		return 0, err
	}
	if _, err := call.Run(ctx); err != nil {
		return 0, err
	}
	var wrong int64
	for _, x := range k.Expected(rank) {
		wrong += reduce.Differing(b.Recv[int(x.At)*size:int(x.At+x.Count)*size], k.Tile(x), size)
	}
	return m.total(ctx, wrong)
}

// total is the sum of a number over all ranks.
func (m *meter) total(ctx context.Context, x int64) (int64, error) {
	m.bad[0] = x
	if _, err := m.wrong.Run(ctx); err != nil {
		return 0, err
	}
	return m.bad[0], nil
}
