package schedule

// Rounds is the length of the longest chain of messages, each sent after the one before it
// arrived: the number of latencies that the collective cannot avoid, when sending takes no time. A
// way through a switch counts as two. It is -1 for a schedule that does not come to its end. The
// cost is that of visiting every op once.
func (s *Schedule) Rounds() int {
	r := rounds{s: s, lanes: make([]roundLane, s.Nodes()*s.Lanes), queues: map[conn][]int32{}}
	for i := range r.lanes {
		r.lanes[i].n = s.Len(i/s.Lanes, i%s.Lanes)
		r.ready = append(r.ready, i)
	}
	for len(r.ready) > 0 {
		i := r.ready[len(r.ready)-1]
		r.ready = r.ready[:len(r.ready)-1]
		r.advance(i)
	}
	most := int32(0)
	for _, l := range r.lanes {
		if l.pc < l.n {
			return -1
		}
		most = max(most, l.clock)
	}
	return int(most)
}

type rounds struct {
	s      *Schedule
	lanes  []roundLane
	queues map[conn][]int32 // when the unread messages arrive
	ready  []int
}

type roundLane struct {
	pc, n int
	clock int32
	past  []int32 // the clock after each op, where another lane may ask for it
}

// advance runs a lane until something that it needs is missing.
func (r *rounds) advance(i int) {
	s, l := r.s, &r.lanes[i]
	rank, ln := i/s.Lanes, i%s.Lanes
	for ; l.pc < l.n; l.pc++ {
		o := s.At(rank, ln, l.pc)
		if w := o.After; w.Count > 0 {
			other := &r.lanes[rank*s.Lanes+int(w.Lane)]
			if other.pc < int(w.Count) {
				return
			}
			l.clock = max(l.clock, other.past[w.Count-1])
		}
		switch {
		case o.Verb == Send:
			key := connect(rank, int(o.Peer), ln)
			r.queues[key] = append(r.queues[key], l.clock+1)
			r.ready = append(r.ready, int(o.Peer)*s.Lanes+ln)
		case o.Verb.Receives():
			key := connect(int(o.Peer), rank, ln)
			q := r.queues[key]
			if len(q) == 0 {
				return
			}
			l.clock = max(l.clock, q[0])
			if r.queues[key] = q[1:]; len(q) == 1 {
				delete(r.queues, key)
			}
		}
		if s.Lanes > 1 {
			l.past = append(l.past, l.clock)
			for other := range s.Lanes {
				if k := rank*s.Lanes + other; other != ln && r.lanes[k].pc < r.lanes[k].n {
					r.ready = append(r.ready, k)
				}
			}
		}
	}
}
