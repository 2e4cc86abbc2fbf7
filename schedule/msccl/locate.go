package msccl

import (
	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// access is what happens to a chunk next.
type access uint8

const (
	never access = iota
	read
	overwrite
)

// dead finds the sums that are sent on and needed no more: the next that happens to their chunks is
// that they are overwritten, or nothing, and they are no result.
func (l *lowering) dead(x *rank) {
	next := map[int]access{} // by chunk of Data and Temp
	key := func(b schedule.Buffer, c int32) int { return int(c)*4 + int(b) }
	live := func(b schedule.Buffer, c int32) bool {
		switch next[key(b, c)] {
		case never:
			return b == schedule.Data && l.result(x.id, int(c)) || b == schedule.Out
		case read:
			return true
		}
		return false
	}
	for i := len(x.ops) - 1; i >= 0; i-- {
		o := &x.ops[i]
		if o.taken { // the instruction is looked at as a whole, at its receive
			continue
		}
		o.pass = o.next >= 0 && o.Verb == schedule.RecvReduce
		for c := o.From; c < o.To; c++ {
			o.pass = o.pass && !live(o.Buf, c)
			next[key(o.Buf, c)] = read
			if o.Verb == schedule.Recv {
				next[key(o.Buf, c)] = overwrite
			}
		}
		if o.Verb.Local() {
			for k := range o.To - o.From {
				next[key(o.Dst, o.At+k)] = overwrite
				if o.Verb == schedule.Fold {
					next[key(o.Dst, o.At+k)] = read
				}
			}
			for c := o.From; c < o.To; c++ {
				next[key(o.Buf, c)] = read
			}
		}
	}
}

// memory is the place of a chunk of data in the call's vector.
func (l *lowering) memory(chunk int) (at, block, piece int) {
	block, piece = l.s.Layout.Place(chunk)
	return block*l.s.Layout.Pieces() + piece, block, piece
}

// result reports whether a chunk of data is part of what a rank has to end with.
func (l *lowering) result(rank, chunk int) bool {
	_, block, _ := l.memory(chunk)
	switch l.kind {
	case coll.ReduceScatter:
		return block == rank
	case coll.Reduce:
		return rank == l.s.Root
	case coll.AllToAll:
		return false
	}
	return true
}

// given is where a chunk of data lies in the input; none where the rank has no contribution to it.
func (l *lowering) given(rank, chunk int) place {
	at, block, piece := l.memory(chunk)
	switch {
	case l.kind == coll.AllGather && block == rank:
		return place{Input, piece}
	case l.kind == coll.AllGather, l.kind == coll.Broadcast && rank != l.s.Root:
		return place{}
	}
	return place{Input, at}
}

// storageOf is where a chunk of data is stored: in the output where it is a result, else in scratch,
// so that the input stays as it was.
func (l *lowering) storageOf(x *rank, chunk int) place {
	at, _, piece := l.memory(chunk)
	switch {
	case l.result(x.id, chunk) && l.kind == coll.ReduceScatter:
		return place{Output, piece}
	case l.result(x.id, chunk):
		return place{Output, at}
	}
	if _, ok := x.kept[chunk]; !ok {
		x.kept[chunk] = x.spare + len(x.kept)
	}
	return place{Scratch, x.kept[chunk]}
}

// locate follows every chunk through the buffers. What a rank has not written yet is read from the
// input.
func (l *lowering) locate(x *rank) {
	moved := map[int]bool{} // chunks of data that are no longer where they were given
	here := func(b schedule.Buffer, c int) place {
		switch {
		case b == schedule.Temp:
			return place{Scratch, c}
		case b == schedule.Out:
			at, _, _ := l.memory(c)
			return place{Output, at}
		case moved[c]:
			return l.storageOf(x, c)
		}
		return l.given(x.id, c)
	}
	there := func(b schedule.Buffer, c int) place {
		if b != schedule.Data {
			return here(b, c)
		}
		moved[c] = true
		return l.storageOf(x, c)
	}
	ops := make([]op, 0, len(x.ops))
	at := make([]int, len(x.ops)) // new numbers
	for i := range x.ops {
		o := x.ops[i]
		if o.Verb == schedule.Fold && o.Dst == schedule.Data { // it adds to what must be in its home
			ops = l.settle(x, ops, &o, moved)
		}
		o.spots = make([]spot, o.Len())
		for k := range o.spots {
			s, c := &o.spots[k], int(o.From)+k
			switch o.Verb {
			case schedule.Send:
				s.src = here(o.Buf, c)
			case schedule.Recv:
				s.dst = there(o.Buf, c)
			case schedule.RecvReduce:
				s.src = here(o.Buf, c)
				if !o.pass {
					s.dst = there(o.Buf, c)
				}
			default:
				s.src, s.dst = here(o.Buf, c), there(o.Dst, int(o.At)+k)
			}
		}
		at[i] = len(ops)
		ops = append(ops, o)
	}
	for i := range ops {
		if ops[i].next >= 0 {
			ops[i].next = at[ops[i].next]
		}
	}
	x.ops = l.deliver(x, ops, moved)
}

// settle copies chunks that are still in the input to where a local reduction adds to them.
func (l *lowering) settle(x *rank, ops []op, o *op, moved map[int]bool) []op {
	for k := range o.Len() {
		c := int(o.At) + k
		if moved[c] {
			continue
		}
		move := op{lane: o.lane, next: -1, spots: []spot{{l.given(x.id, c), l.storageOf(x, c)}}}
		move.Op = schedule.Op{Verb: schedule.Copy, From: int32(c), To: int32(c + 1), At: int32(c)}
		moved[c] = true
		ops = append(ops, move)
	}
	return ops
}

// deliver copies results that a rank had from the beginning: its own block of an all_gather, the
// root's data of a broadcast.
func (l *lowering) deliver(x *rank, ops []op, moved map[int]bool) []op {
	if l.set.InPlace || l.kind == coll.AllToAll {
		return ops
	}
	for c := range l.s.Layout.Chunks {
		if moved[c] || !l.result(x.id, c) || l.given(x.id, c) == (place{}) {
			continue
		}
		s := spot{l.given(x.id, c), l.storageOf(x, c)}
		if n := len(ops); n > 0 && ops[n-1].Verb == schedule.Nop && ops[n-1].To == int32(c) {
			ops[n-1].To++
			ops[n-1].spots = append(ops[n-1].spots, s)
			continue
		}
		// A nop to the schedule, in whose memory input and output are one.
		ops = append(ops, op{Op: schedule.Op{Verb: schedule.Nop, From: int32(c), To: int32(c + 1)}, next: -1, spots: []spot{s}})
	}
	return ops
}
