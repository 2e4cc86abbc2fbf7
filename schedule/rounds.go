package schedule

// Rounds is the length of the longest chain of messages, each sent after the one before it
// arrived: the number of latencies that the collective cannot avoid, when sending takes no time. A
// way through a switch counts as two. It is -1 for a schedule that does not come to its end. The
// cost is that of visiting every op once.
func (s *Schedule) Rounds() int {
	n, ok, _ := Chains(s, func(a, b int) int { return max(a, b) },
		func(at, _, _ int, _ Op) (int, error) { return at + 1, nil })
	if !ok {
		return -1
	}
	return n
}

// Chains follows a value along all chains of messages, as if they took no time: a rank's lane
// begins with the zero value, send makes a message's value of that of the lane which sends it, and
// join puts together what a lane has with what it receives or waits for. It returns what all
// lanes have at their end, joined, and whether they came to it.
func Chains[V any](s *Schedule, join func(a, b V) V,
	send func(at V, from, lane int, o Op) (V, error),
) (last V, ok bool, err error) {
	c := follower[V]{
		s: s, join: join, send: send, joined: s.joined(), lanes: make([]chainLane[V], s.Nodes()*s.Lanes),
		queues: map[conn][]V{},
	}
	for i := range c.lanes {
		c.lanes[i].n = s.Len(i/s.Lanes, i%s.Lanes)
		c.ready = append(c.ready, i)
	}
	for len(c.ready) > 0 {
		i := c.ready[len(c.ready)-1]
		c.ready = c.ready[:len(c.ready)-1]
		if err := c.advance(i); err != nil {
			return last, false, err
		}
	}
	ok = true
	for i := range c.lanes {
		ok = ok && c.lanes[i].pc == c.lanes[i].n
		last = join(last, c.lanes[i].at)
	}
	return last, ok, nil
}

// joined reports whether the lanes of a rank may wait for each other; channels of one lane each do not.
func (s *Schedule) joined() bool {
	f, ok := s.Program.(*flat)
	return s.Lanes > 1 && !(ok && f.per == 1)
}

type follower[V any] struct {
	s      *Schedule
	join   func(a, b V) V
	send   func(at V, from, lane int, o Op) (V, error)
	lanes  []chainLane[V]
	joined bool         // lanes of a rank may wait for each other
	queues map[conn][]V // of the messages that nobody has read
	ready  []int
}

type chainLane[V any] struct {
	pc, n int
	at    V
	past  []V // after each op, where another lane may ask for it
}

// advance runs a lane until something that it needs is missing.
func (c *follower[V]) advance(i int) error {
	s, l := c.s, &c.lanes[i]
	rank, ln := i/s.Lanes, i%s.Lanes
	for ; l.pc < l.n; l.pc++ {
		o := s.At(rank, ln, l.pc)
		if w := o.After; w.Count > 0 {
			other := &c.lanes[rank*s.Lanes+int(w.Lane)]
			if other.pc < int(w.Count) {
				return nil
			}
			l.at = c.join(l.at, other.past[w.Count-1])
		}
		switch {
		case o.Verb == Send:
			v, err := c.send(l.at, rank, ln, o)
			if err != nil {
				return err
			}
			key := connect(rank, int(o.Peer), ln)
			c.queues[key] = append(c.queues[key], v)
			c.ready = append(c.ready, int(o.Peer)*s.Lanes+ln)
		case o.Verb.Receives():
			key := connect(int(o.Peer), rank, ln)
			q := c.queues[key]
			if len(q) == 0 {
				return nil
			}
			l.at = c.join(l.at, q[0])
			if c.queues[key] = q[1:]; len(q) == 1 {
				delete(c.queues, key)
			}
		}
		if c.joined {
			l.past = append(l.past, l.at)
			for other := range s.Lanes {
				if k := rank*s.Lanes + other; other != ln && c.lanes[k].pc < c.lanes[k].n {
					c.ready = append(c.ready, k)
				}
			}
		}
	}
	return nil
}
