package schedule

import "busbar.dev/coll"

// nvls is NVLink SHARP: the switch, position n, sums the members' copies of a block for the
// member that owns it (multimem.ld_reduce), and spreads what an owner stores to all members,
// the owner included (multimem.st). Every member owns a block.
type nvls struct {
	n    int
	kind coll.Kind // ReduceScatter, AllGather
}

func (s nvls) size(p, _ int) int {
	switch {
	case s.n == 1:
		return 0
	case p == s.n:
		return s.n * (s.n + 1)
	}
	return s.n + 1
}

func (s nvls) op(p, _, i int) Op {
	if p == s.n {
		return s.inSwitch(i/(s.n+1), i%(s.n+1))
	}
	o := Op{Peer: int32(s.n), From: int32(i), To: int32(i + 1)}
	if s.kind == coll.ReduceScatter {
		o.Verb = Send
		if i == s.n {
			o.Verb, o.From, o.To = Recv, int32(p), int32(p+1)
		}
		return o
	}
	if i == 0 {
		o.Verb, o.From = Send, int32(p)
	} else {
		o.Verb, o.From = Recv, int32(i-1)
	}
	o.To = o.From + 1
	return o
}

// inSwitch is what the switch does for one block.
func (s nvls) inSwitch(block, k int) Op {
	o := Op{Verb: Send, Peer: int32(k), From: int32(block), To: int32(block + 1)}
	if s.kind == coll.ReduceScatter {
		switch {
		case k == 0:
			o.Verb = Recv
		case k < s.n:
			o.Verb = RecvReduce
		default:
			o.Peer = int32(block)
		}
		return o
	}
	if k == 0 {
		o.Verb, o.Peer = Recv, int32(block)
	} else {
		o.Peer = int32(k - 1)
	}
	return o
}

// nvlsBoth is an all-reduce in two lanes a channel, as NCCL has two groups of
// threads: the even lane reduces, the odd one spreads what is reduced, so that one
// loop of the data is spread while the next is reduced.
type nvlsBoth struct{ reduce, gather nvls }

// half is what a lane does.
func (b nvlsBoth) half(lane int) nvls {
	if lane%2 == 0 {
		return b.reduce
	}
	return b.gather
}

func (b nvlsBoth) size(p, lane int) int { return b.half(lane).size(p, lane) }

func (b nvlsBoth) op(p, lane, i int) Op {
	o := b.half(lane).op(p, lane, i)
	switch n := b.reduce.n; {
	case lane%2 == 0:
	case i == 0 && p < n:
		o.After = Wait{int32(lane - 1), int32(b.reduce.size(p, lane-1))}
	case p == n && i%(n+1) == 0: // the switch has passed the block on
		o.After = Wait{int32(lane - 1), int32(i + n + 1)}
	}
	return o
}

func (b nvlsBoth) sum(dst []Flow, first int, s *seat, p, lane int) []Flow {
	return b.half(lane).sum(dst, first, s, p, lane)
}
