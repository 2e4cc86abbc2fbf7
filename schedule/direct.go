package schedule

import "busbar.dev/coll"

// direct is everyone with everyone, without detours. An all-to-all sends each block to its
// owner; an all-gather sends the own block to all; a reduce-scatter sends each block to the
// rank that sums it; an all-reduce is the latter two. All sends come first, to the next
// position first so that no two start at one receiver.
//
// When paired, each send is followed by a receive from the position as far on the other side;
// for powers of two the partners are the same (pairwise exchange, Thakur et al. 2005). When
// whole, an all-reduce sends the whole vector to everyone (one shot).
type direct struct {
	n      int
	kind   coll.Kind
	paired bool
	whole  bool
}

func (d direct) size(_, _ int) int {
	n := 2 * (d.n - 1)
	switch {
	case d.kind == coll.AllToAll:
		n++ // the own block
	case d.kind == coll.AllReduce && !d.whole:
		n *= 2
	}
	return n
}

func (d direct) op(p, _, i int) Op {
	if d.kind == coll.AllToAll {
		if i == 0 {
			return Op{Verb: Copy, From: int32(p), To: int32(p + 1), Dst: Out, At: int32(p)}
		}
		i--
	}
	kind, half := d.kind, 2*(d.n-1)
	if kind == coll.AllReduce && !d.whole {
		kind = coll.ReduceScatter
		if i >= half {
			kind = coll.AllGather
			i -= half
		}
	}
	step, receive := i%(d.n-1)+1, i >= d.n-1
	if d.paired {
		step, receive = i/2+1, i%2 == 1
	}
	q := d.partner(p, step, receive)
	o := Op{Verb: Send, Peer: int32(q)}
	block := q
	switch kind {
	case coll.AllToAll:
		if receive {
			o.Verb, o.Buf = Recv, Out
		}
	case coll.AllGather:
		if receive {
			o.Verb = Recv
		} else {
			block = p
		}
	case coll.ReduceScatter:
		if receive {
			o.Verb = RecvReduce
			block = p
		}
	default: // the whole vector
		if receive {
			o.Verb = RecvReduce
		}
		block = 0
	}
	o.From, o.To = int32(block), int32(block+1)
	return o
}

func (d direct) partner(p, step int, receive bool) int {
	switch {
	case d.paired && d.n&(d.n-1) == 0:
		return p ^ step
	case receive:
		return wrap(p-step, d.n)
	}
	return wrap(p+step, d.n)
}

// shift is sendrecv: to the next, from the one before.
type shift struct{ n int }

func (s shift) size(_, _ int) int {
	if s.n == 1 {
		return 1
	}
	return 2
}

func (s shift) op(p, _, i int) Op {
	switch {
	case s.n == 1:
		return Op{Verb: Copy, To: 1, Dst: Out}
	case i == 0:
		return Op{Verb: Send, Peer: int32(wrap(p+1, s.n)), To: 1}
	}
	return Op{Verb: Recv, Buf: Out, Peer: int32(wrap(p-1, s.n)), To: 1}
}

// collect is the gather in which everyone sends to position 0.
type collect struct{ n int }

func (c collect) size(p, _ int) int {
	if p == 0 {
		return c.n - 1
	}
	return 1
}

func (c collect) op(p, _, i int) Op {
	if p == 0 {
		return Op{Verb: Recv, Peer: int32(i + 1), From: int32(i + 1), To: int32(i + 2)}
	}
	return Op{Verb: Send, From: int32(p), To: int32(p + 1)}
}

// collectTree is the gather along a binomial tree: what lies below a position is one range of
// blocks.
type collectTree struct{ binomial }

func (c collectTree) size(p, _ int) int {
	n := c.children(p, 0)
	if p > 0 {
		n++
	}
	return n
}

func (c collectTree) op(p, _, i int) Op {
	if i < c.children(p, 0) {
		q := c.child(p, 0, i)
		return Op{Verb: Recv, Peer: int32(q), From: int32(q), To: int32(min(q+1<<i, c.n))}
	}
	return Op{Verb: Send, Peer: int32(c.parent(p, 0)), From: int32(p), To: int32(min(p+p&-p, c.n))}
}
