package schedule

import "busbar.dev/coll"

// levels is a collective in two levels: a reduce-scatter inside every group, which leaves each
// member with its rails' part, the collective among the members of each rail, and an all-gather
// inside. Any algorithm may serve either level. (Thakur et al. 2005; the usual two-level
// all-reduce, and with a multicast switch inside and trees across NCCL's NVLSTree.)
//
// A tree or a switch across takes two lanes a channel: the even one reduces inside and goes up,
// the odd one comes down and gathers inside.
type levels struct {
	*grouping
	kind   coll.Kind // AllReduce, ReduceScatter, AllGather
	reduce []body    // inside, by size of group
	gather []body    // inside, by size of group
	share  [][]int32 // inside, by size of group: bounds of the members' shares
	cross  body      // across a rail
	blocks int32     // of outer in a rail's part; 0: the rail's slots are the blocks
	two    bool      // two lanes a channel
	inside bool      // a switch for each group
	beyond bool      // a switch for each rail
}

// has reports which inner stages a lane runs.
func (l *levels) has(lane int) (reduce, gather bool) {
	reduce, gather = l.kind != coll.AllGather, l.kind != coll.ReduceScatter
	if l.two {
		reduce, gather = reduce && lane%2 == 0, gather && lane%2 == 1
	}
	return reduce, gather
}

// who tells a participant's part: its group and place (the group's size for the group's
// switch), or group -1, and the rails it serves.
func (l *levels) who(rank int) (group, place, rail0, rail1 int) {
	if rank < l.ranks {
		group, place = l.group(rank), l.pos(rank)
		size := l.sizeOf(group)
		return group, place, l.firstRail(size, place), l.firstRail(size, place+1)
	}
	k := rank - l.ranks
	if l.inside {
		if k < l.count {
			return k, l.sizeOf(k), 0, 0
		}
		k -= l.count
	}
	return -1, 0, k, k + 1
}

// spans is the number of ops of a lane's stages: inside, across a rail, inside.
func (l *levels) spans(rank, lane int) (reduce, rail, rails, gather int) {
	group, place, r0, r1 := l.who(rank)
	outerPlace := group
	if group < 0 {
		outerPlace = l.count
	} else {
		size := l.sizeOf(group)
		first, last := l.has(lane)
		if first {
			reduce = l.reduce[size].size(place, lane)
		}
		if last {
			gather = l.gather[size].size(place, lane)
		}
	}
	if r1 > r0 {
		rail = l.cross.size(outerPlace, lane)
	}
	return reduce, rail, r1 - r0, gather
}

// Len implements Program.
func (l *levels) Len(rank, lane int) int {
	reduce, rail, rails, gather := l.spans(rank, lane)
	return reduce + rail*rails + gather
}

// At implements Program.
func (l *levels) At(rank, lane, i int) Op {
	reduce, rail, rails, _ := l.spans(rank, lane)
	group, place, r0, _ := l.who(rank)
	channel := lane
	if l.two {
		channel /= 2
	}
	shift := int32(channel) * l.width()
	if i < reduce {
		s := l.innerSeat(group)
		o := l.reduce[l.sizeOf(group)].op(place, lane, i)
		s.place(&o, shift, 0)
		return o
	}
	i -= reduce
	if i < rail*rails {
		if group < 0 {
			group = l.count
		}
		s := l.outerSeat(r0 + i/rail)
		o := l.cross.op(group, lane, i%rail)
		s.place(&o, shift, 0)
		if o.After.Count > 0 { // counted from where this rail begins in the other lane
			reduce, rail, _, _ := l.spans(rank, lane-1)
			o.After.Count += int32(reduce + i/l.cross.size(group, lane)*rail)
		}
		return o
	}
	i -= rail * rails
	s := l.innerSeat(group)
	o := l.gather[l.sizeOf(group)].op(place, lane, i)
	s.place(&o, shift, 0)
	if l.two && i == 0 && rail*rails == 0 { // else the way down has waited for all of the other lane
		o.After = Wait{int32(lane - 1), int32(l.Len(rank, lane-1))}
	}
	return o
}

func (l *levels) innerSeat(group int) seat {
	s := l.inner(group)
	s.switches, s.bounds = int32(l.ranks+group), l.share[s.n]
	return s
}

func (l *levels) outerSeat(rail int) seat {
	s := l.outer(rail)
	s.switches = int32(l.ranks + rail)
	if l.inside {
		s.switches += int32(l.count)
	}
	if l.blocks != 0 {
		s.bounds, s.blocks = nil, l.blocks
	}
	return s
}
