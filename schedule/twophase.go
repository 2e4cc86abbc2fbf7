package schedule

// twoPhase is the all-to-all that goes inside the group first: each member collects there what
// its group has for its rails, and then sends it across, one message for each destination
// instead of one for each pair (as NCCL's PXN does).
//
// Scratch is a slot for what each member of the group hands over, then room for packing, then
// room for what comes.
type twoPhase struct {
	*grouping
	share [][]int32 // by size of group
	slots []int32   // by size of group: chunks of a hand-over slot, the greatest share
	room  int32     // where packing begins
	most  int32     // members of the greatest group
	temp  int32     // scratch of a channel
	width int32     // chunks of a channel
}

func newTwoPhase(g *grouping) *twoPhase {
	t := &twoPhase{
		grouping: g, share: make([][]int32, g.rails+1), slots: make([]int32, g.rails+1), most: int32(g.rails),
		width: g.width(),
	}
	for k := range g.count {
		if size := g.sizeOf(k); t.share[size] == nil {
			t.share[size] = g.shares(size)
			for p := range size {
				t.slots[size] = max(t.slots[size], t.share[size][p+1]-t.share[size][p])
			}
			t.room = max(t.room, int32(size)*t.slots[size])
		}
	}
	t.temp = t.room + 2*t.most
	return t
}

// round is the number of ops with the group k further on: packed sends, and a receive with its
// copies.
func (t *twoPhase) round(rank, k int) (send, recv int) {
	g, m := t.group(rank), t.count
	size := t.sizeOf(g)
	return t.dests(rank, (g+k)%m) * (size + 1), 1 + t.sizeOf(mod(g-k, m))
}

// dests is the number of members of another group on the rails that rank serves.
func (t *twoPhase) dests(rank, group int) int {
	if t.equal {
		return 1
	}
	n := 0
	size, p := t.sizeOf(t.group(rank)), t.pos(rank)
	for rail := t.firstRail(size, p); rail < t.firstRail(size, p+1); rail++ {
		if t.own(rail, group) {
			n++
		}
	}
	return n
}

// local is the number of ops inside the group: the own block, exchanges, and the copies out of
// what was handed over.
func (t *twoPhase) local(rank int) int { return 1 + 3*(t.sizeOf(t.group(rank))-1) }

func (t *twoPhase) Len(rank, _ int) int {
	n := t.local(rank)
	if t.equal {
		send, recv := t.round(rank, 1%t.count)
		return n + (t.count-1)*(send+recv)
	}
	for k := 1; k < t.count; k++ {
		send, recv := t.round(rank, k)
		n += send + recv
	}
	return n
}

func (t *twoPhase) At(rank, lane, i int) Op {
	o := t.op(rank, i)
	data, temp := int32(lane)*t.width, int32(lane)*t.temp
	if o.Buf == Temp {
		o.From, o.To = o.From+temp, o.To+temp
	} else {
		o.From, o.To = o.From+data, o.To+data
	}
	if o.Verb.Local() && o.Dst == Temp {
		o.At += temp
	} else if o.Verb.Local() {
		o.At += data
	}
	return o
}

func (t *twoPhase) op(rank, i int) Op {
	if n := t.local(rank); i >= n {
		return t.across2(rank, i-n)
	}
	g, p := t.group(rank), t.pos(rank)
	size := t.sizeOf(g)
	share := t.share[size]
	mine := t.slot(rank)
	if i == 0 {
		return Op{Verb: Copy, From: mine, To: mine + 1, Dst: Out, At: mine}
	}
	i--
	if i >= 2*(size-1) { // copy out
		q := mod(p-1-(i-2*(size-1)), size)
		from := int32(q)*t.slots[size] + mine - share[p]
		return Op{Verb: Copy, Buf: Temp, From: from, To: from + 1, Dst: Out, At: t.slot(int(t.member(g, q)))}
	}
	if i < size-1 {
		q := (p + 1 + i) % size
		return Op{Verb: Send, Peer: t.member(g, q), From: share[q], To: share[q+1]}
	}
	q := mod(p-1-(i-(size-1)), size)
	from := int32(q) * t.slots[size]
	return Op{Verb: Recv, Peer: t.member(g, q), Buf: Temp, From: from, To: from + share[p+1] - share[p]}
}

// across2 is the second phase: all that is sent, then all that comes.
func (t *twoPhase) across2(rank, i int) Op {
	m := t.count
	if t.equal {
		send, recv := t.round(rank, 1)
		if i < (m-1)*send {
			return t.pack(rank, 1+i/send, i%send)
		}
		i -= (m - 1) * send
		return t.unpack(rank, 1+i/recv, i%recv)
	}
	for k := 1; k < m; k++ {
		send, _ := t.round(rank, k)
		if i < send {
			return t.pack(rank, k, i)
		}
		i -= send
	}
	for k := 1; ; k++ {
		_, recv := t.round(rank, k)
		if i < recv {
			return t.unpack(rank, k, i)
		}
		i -= recv
	}
}

func (t *twoPhase) pack(rank, k, i int) Op {
	g, p, m := t.group(rank), t.pos(rank), t.count
	size, to := t.sizeOf(g), (g+k)%m
	rail := t.firstRail(size, p)
	for skip := i / (size + 1); ; rail++ {
		if !t.own(rail, to) {
			continue
		}
		if skip == 0 {
			break
		}
		skip--
	}
	block, room := t.begin(rail, to), t.room
	q := i % (size + 1)
	switch q {
	case size:
		return Op{Verb: Send, Peer: t.server(rail, to), Buf: Temp, From: room, To: room + int32(size)}
	case p:
		return Op{Verb: Copy, From: block, To: block + 1, Dst: Temp, At: room + int32(q)}
	}
	from := int32(q)*t.slots[size] + block - t.share[size][p]
	return Op{Verb: Copy, Buf: Temp, From: from, To: from + 1, Dst: Temp, At: room + int32(q)}
}

func (t *twoPhase) unpack(rank, k, i int) Op {
	g, p, m := t.group(rank), t.pos(rank), t.count
	from := mod(g-k, m)
	room := t.room + t.most
	if i == 0 {
		rail := t.firstRail(t.sizeOf(g), p)
		return Op{Verb: Recv, Peer: t.server(rail, from), Buf: Temp, From: room, To: room + int32(t.sizeOf(from))}
	}
	q := int32(i - 1)
	return Op{Verb: Copy, Buf: Temp, From: room + q, To: room + q + 1, Dst: Out, At: t.slot(int(t.member(from, int(q))))}
}
