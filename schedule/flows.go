package schedule

import (
	"iter"

	"busbar.dev/coll"
)

// Flow is what a lane sends to one peer in all.
type Flow struct {
	Peer     int
	Messages int64
	Chunks   int64
}

// AppendFlows appends what a lane of a rank or switch sends to each of its peers. For rings,
// trees, switches and what is put together of them the sums have a closed form, which takes no
// longer for a million ranks than for ten; for the others the ops are added up.
func (s *Schedule) AppendFlows(dst []Flow, rank, lane int) []Flow {
	first := len(dst)
	switch x := s.Program.(type) {
	case *flat:
		return sumOf(x.body, dst, first, &x.seat, x.where(rank), lane)
	case *levels:
		for _, stage := range []int{0, 2, 1} {
			dst = appendEach(dst, first, levelPart{x, stage}, rank, lane)
		}
		return dst
	}
	for i := range s.Len(rank, lane) {
		if o := s.At(rank, lane, i); o.Verb == Send {
			dst = addFlow(dst, first, Flow{int(o.Peer), 1, int64(o.Len())})
		}
	}
	return dst
}

// Ops is the program of a lane as a sequence.
func (s *Schedule) Ops(rank, lane int) iter.Seq2[int, Op] {
	return func(yield func(int, Op) bool) {
		for i := range s.Len(rank, lane) {
			if !yield(i, s.At(rank, lane, i)) {
				return
			}
		}
	}
}

// addFlow adds to the flow of its peer among dst[first:], or appends it.
func addFlow(dst []Flow, first int, f Flow) []Flow {
	// Programs mostly stay with a peer or come back to a recent one.
	for i := len(dst) - 1; i >= first; i-- {
		if dst[i].Peer == f.Peer {
			dst[i].Messages += f.Messages
			dst[i].Chunks += f.Chunks
			return dst
		}
	}
	return append(dst, f)
}

// sums is a body that knows its sums: sent by position p to peers, in messages and in chunks by
// the seat's blocks.
type sums interface {
	sum(dst []Flow, first int, s *seat, p, lane int) []Flow
}

// total is the number of chunks of all blocks.
func (s *seat) total(blocks int) int64 { return int64(s.bound(int32(blocks)) - s.bound(0)) }

func (s *seat) block(b int) int64 { return int64(s.bound(int32(b)+1) - s.bound(int32(b))) }

// A ring sends all blocks but one in each half: the one that it ends with in a reduce-scatter,
// the next one's in an all-gather.
func (r ring) sum(dst []Flow, first int, s *seat, p, lane int) []Flow {
	if r.n == 1 {
		return dst
	}
	d := 1
	if r.both && lane%2 == 1 {
		d = -1
	}
	next := wrap(p+d, r.n)
	f := Flow{Peer: int(s.rank(int32(next)))}
	if r.kind != coll.AllGather {
		f.Messages += int64(r.n - 1)
		f.Chunks += s.total(r.n) - s.block(p)
	}
	if r.kind != coll.ReduceScatter {
		f.Messages += int64(r.n - 1)
		f.Chunks += s.total(r.n) - s.block(next)
	}
	return addFlow(dst, first, f)
}

func (t *tree) sum(dst []Flow, first int, s *seat, p, lane int) []Flow {
	channel, w := t.lane(lane)
	f := Flow{Messages: int64(t.pieces), Chunks: s.total(t.pieces)}
	if parent := t.shape.parent(p, channel); parent >= 0 && w != down {
		f.Peer = int(s.rank(int32(parent)))
		dst = addFlow(dst, first, f)
	}
	if w == up {
		return dst
	}
	for k := range t.shape.children(p, channel) {
		f.Peer = int(s.rank(int32(t.shape.child(p, channel, k))))
		dst = addFlow(dst, first, f)
	}
	return dst
}

func (n nvls) sum(dst []Flow, first int, s *seat, p, _ int) []Flow {
	switch {
	case n.n == 1:
		return dst
	case p < n.n && n.kind == coll.ReduceScatter:
		return addFlow(dst, first, Flow{int(s.rank(int32(n.n))), int64(n.n), s.total(n.n)})
	case p < n.n:
		return addFlow(dst, first, Flow{int(s.rank(int32(n.n))), 1, s.block(p)})
	}
	for q := range n.n {
		f := Flow{int(s.rank(int32(q))), int64(n.n), s.total(n.n)}
		if n.kind == coll.ReduceScatter {
			f.Messages, f.Chunks = 1, s.block(q)
		}
		dst = addFlow(dst, first, f)
	}
	return dst
}

// sumOf is the sum of a body that knows it, or of its ops.
func sumOf(b body, dst []Flow, first int, s *seat, p, lane int) []Flow {
	if b, ok := b.(sums); ok {
		return b.sum(dst, first, s, p, lane)
	}
	for i := range b.size(p, lane) {
		if o := b.op(p, lane, i); o.Verb == Send {
			s.place(&o, 0, 0)
			dst = addFlow(dst, first, Flow{int(o.Peer), 1, int64(o.Len())})
		}
	}
	return dst
}

func (q seq) sum(dst []Flow, first int, s *seat, p, lane int) []Flow {
	return sumOf(q.b, sumOf(q.a, dst, first, s, p, lane), first, s, p, lane)
}
