package sim

import "busbar.dev/schedule"

// goOn runs all lanes of a rank until each waits for a message, and ends the round when
// all are through.
func (r *socketRank) goOn() {
	if !r.began {
		return
	}
	s := r.job.Schedule
	for moved := true; moved; {
		moved = false
		for l := range r.lanes {
			for r.step(l) {
				moved = true
			}
		}
	}
	for l := range r.lanes {
		if r.lanes[l].pc < s.Len(r.rank, l) {
			return
		}
	}
	r.ended = append(r.ended, r.p.now)
	r.began = false
	if r.round++; r.round < r.p.rounds {
		for l := range r.lanes {
			r.lanes[l] = socketLane{}
		}
		r.p.due = append(r.p.due, socketEvent{at: r.p.now + float64(r.p.m.Call)/second, rank: r})
	}
}

// step does one op of a lane; false when it must wait.
func (r *socketRank) step(l int) bool {
	s, ln := r.job.Schedule, &r.lanes[l]
	if ln.pc >= s.Len(r.rank, l) {
		return false
	}
	op := s.At(r.rank, l, ln.pc)
	if w := op.After; w.Count > 0 && r.lanes[w.Lane].pc < int(w.Count) {
		return false
	}
	switch {
	case op.Verb == schedule.Send:
		r.send(l, op)
	case op.Verb.Receives():
		if at := [2]int{int(op.Peer), l}; r.came[at] > 0 {
			r.came[at]--
			ln.taking = false
			break
		}
		c := r.p.connect(r.job, int(op.Peer), r.rank)
		if c.near && !ln.taking { // the receiver takes it out of the sender's memory
			for _, f := range c.queue {
				if f.to == r && f.lane == l && !f.taken {
					ln.taking, f.taken, f.reduce = true, true, op.Verb == schedule.RecvReduce
					r.p.begin(f)
					break
				}
			}
		}
		return false
	}
	ln.pc++
	return true
}

// send posts a message; it goes when those before it on the connection are through.
func (r *socketRank) send(l int, op schedule.Op) {
	p, j := r.p, r.job
	c := p.connect(j, r.rank, int(op.Peer))
	bytes := float64(j.Schedule.Bytes(j.Op, op))
	f := &socketMessage{conn: c, from: r.rank, to: j.ranks[op.Peer], lane: l, bytes: bytes, left: max(bytes, 1), sender: p.cpu[j.Ranks[r.rank]]}
	c.queue = append(c.queue, f)
	if c.near {
		p.due = append(p.due, socketEvent{at: p.now, rank: f.to, look: true}) // it may wait for this
		return
	}
	f.reduce = true // what a receiver adds it adds as it comes in
	if len(c.queue) == 1 {
		p.begin(f)
	}
}

// arrive hands a message to its lane.
func (p *socketRun) arrive(f *socketMessage) {
	f.to.came[[2]int{f.from, f.lane}]++
	f.to.goOn()
}

// connect finds a connection of a job.
func (p *socketRun) connect(j *socketJob, from, to int) *socketConn {
	key := [2]int{j.Ranks[from], j.Ranks[to]}
	c := p.conns[key]
	if c == nil {
		c = &socketConn{}
		c.resources, c.near = p.w.Route(key[0], key[1])
		p.conns[key] = c
	}
	return c
}
