package schedule

import (
	"fmt"

	"busbar.dev/coll"
)

// checker runs a schedule on symbolic values.
type checker struct {
	s     *Schedule
	nodes int
	sets  arena
	cells []value // of all participants, each with its buffers one after the other
	per   int     // cells of a participant
	at    [buffers]int
	size  [buffers]int

	lanes  []lane // by participant, then lane
	queues map[conn]*queue
	idle   []*queue // emptied ones
	spare  [][]value
	flight int     // messages in queues
	ready  []int32 // lanes that may go on
	races  *races  // nil with one lane
}

// lane is how far a lane has come.
type lane struct {
	pc, n  int32
	state  laneState
	queued bool
	on     conn // of a lane that waits for a message or for room
	sent   Op   // of a switch: the last op, if it was a send
}

type laneState uint8

const (
	running laneState = iota
	awaitsMessage
	awaitsRoom
	awaitsLane
	ended
)

// conn is a connection: sender, receiver and lane in one number, which maps hash faster than a
// struct.
type conn uint64

const laneBits = 15

func connect(from, to, lane int) conn {
	return conn(from)<<(24+laneBits+1) | conn(to)<<laneBits | conn(lane)
}

func (c conn) ends() (from, to, lane int) {
	return int(c >> (24 + laneBits + 1)), int(c >> laneBits & (1<<25 - 1)), int(c & (1<<laneBits - 1))
}

// queue is the unread messages of a connection, oldest first.
type queue struct{ msgs []message }

type message struct {
	vals  []value
	class int32
	op    int32 // of the sender
}

func newChecker(s *Schedule) *checker {
	c := &checker{s: s, nodes: s.Nodes(), queues: map[conn]*queue{}}
	c.sets = arena{n: s.Ranks, words: (s.Ranks + 63) / 64}
	c.size = [buffers]int{Data: s.Layout.Chunks, Temp: s.Temp}
	if !s.Kind.InPlace() {
		c.size[Out] = s.Layout.Chunks
	}
	for b := range c.size {
		c.at[b] = c.per
		c.per += c.size[b]
	}
	c.cells = make([]value, c.per*c.nodes)
	for r := range s.Ranks {
		for chunk := range s.Layout.Chunks {
			if block, _ := s.Layout.Place(chunk); s.initial(r, block) {
				*c.cell(r, Data, chunk) = value{origin: int32(chunk), lo: int32(r), count: 1, fresh: true}
			}
		}
	}
	c.lanes = make([]lane, c.nodes*s.Lanes)
	for i := range c.lanes {
		c.lanes[i].n = int32(s.Len(i/s.Lanes, i%s.Lanes))
		c.wake(i)
	}
	if s.Lanes > 1 {
		c.races = newRaces(c)
	}
	return c
}

func (c *checker) cell(rank int, buf Buffer, chunk int) *value {
	return &c.cells[rank*c.per+c.at[buf]+chunk]
}

func (c *checker) wake(i int) {
	if l := &c.lanes[i]; !l.queued {
		l.queued = true
		c.ready = append(c.ready, int32(i))
	}
}

// run lets lanes go on until none can.
func (c *checker) run() error {
	for len(c.ready) > 0 {
		i := int(c.ready[len(c.ready)-1])
		c.ready = c.ready[:len(c.ready)-1]
		c.lanes[i].queued = false
		if err := c.advance(i); err != nil {
			return err
		}
	}
	return c.stuck()
}

// advance runs one lane until it must wait.
func (c *checker) advance(i int) error {
	l, rank, ln := &c.lanes[i], i/c.s.Lanes, i%c.s.Lanes
	for l.pc < l.n {
		o := c.s.At(rank, ln, int(l.pc))
		if err := c.sane(rank, ln, o); err != nil {
			return err
		}
		l.state = running
		if o.After.Count > 0 {
			if c.lanes[rank*c.s.Lanes+int(o.After.Lane)].pc < o.After.Count {
				l.state = awaitsLane
				return nil
			}
			c.races.learn(rank, ln, o.After)
		}
		if rank >= c.s.Ranks {
			c.forget(rank, l, o)
		}
		done, err := c.do(rank, ln, l, o)
		if err != nil || !done {
			return err
		}
		l.pc++
		if c.s.Lanes > 1 {
			for other := range c.s.Lanes {
				if k := rank*c.s.Lanes + other; c.lanes[k].state == awaitsLane {
					c.wake(k)
				}
			}
		}
	}
	if rank >= c.s.Ranks {
		c.forget(rank, l, Op{})
	}
	l.state = ended
	return nil
}

// forget empties what a switch has sent, once it goes on to something else: a multicast leaves
// nothing behind.
func (c *checker) forget(rank int, l *lane, o Op) {
	if s := l.sent; s.Verb == Send && (o.Verb != Send || o.Buf != s.Buf || o.From != s.From || o.To != s.To) {
		for chunk := s.From; chunk < s.To; chunk++ {
			*c.cell(rank, s.Buf, int(chunk)) = value{}
		}
	}
	l.sent = o
}

// do runs an op, or reports that it must wait.
func (c *checker) do(rank, ln int, l *lane, o Op) (bool, error) {
	switch o.Verb {
	case Send:
		return c.send(rank, ln, l, o)
	case Recv, RecvReduce:
		return c.recv(rank, ln, l, o)
	case Copy, Fold:
		vals := c.buffer(o.Len())
		if err := c.read(rank, ln, o, vals); err != nil {
			return false, err
		}
		return true, c.write(rank, ln, o, o.Dst, int(o.At), vals, o.Verb == Fold)
	}
	return true, nil
}

func (c *checker) send(rank, ln int, l *lane, o Op) (bool, error) {
	key := connect(rank, int(o.Peer), ln)
	there := &c.lanes[int(o.Peer)*c.s.Lanes+ln]
	q := c.queues[key]
	held := 0
	if q != nil {
		held = len(q.msgs)
	}
	met := there.state == awaitsMessage && there.on == key
	if held >= c.s.Depth && !(held == 0 && met) {
		l.state, l.on = awaitsRoom, key
		return false, nil
	}
	if q == nil {
		q = c.newQueue()
		c.queues[key] = q
	}
	q.msgs = append(q.msgs, message{})
	m := &q.msgs[len(q.msgs)-1]
	m.vals = c.buffer(o.Len())
	m.class, m.op = o.Class, l.pc
	c.flight++
	if met {
		c.wake(int(o.Peer)*c.s.Lanes + ln)
	}
	return true, c.read(rank, ln, o, m.vals)
}

func (c *checker) recv(rank, ln int, l *lane, o Op) (bool, error) {
	key := connect(int(o.Peer), rank, ln)
	from := int(o.Peer)*c.s.Lanes + ln
	q := c.queues[key]
	if q == nil {
		l.state, l.on = awaitsMessage, key
		if s := &c.lanes[from]; s.state == awaitsRoom && s.on == key {
			c.wake(from)
		}
		return false, nil
	}
	m := q.msgs[0]
	q.msgs = q.msgs[:copy(q.msgs, q.msgs[1:])]
	c.flight--
	if len(q.msgs) == 0 {
		delete(c.queues, key)
		c.idle = append(c.idle, q)
	}
	if s := &c.lanes[from]; s.state == awaitsRoom && s.on == key {
		c.wake(from)
	}
	if len(m.vals) != o.Len() || m.class != o.Class {
		return false, c.fault(Unmatched, rank, ln, o, fmt.Sprintf("takes %d chunks of class %d; the message from rank %d (its op %d) has %d of class %d",
			o.Len(), o.Class, o.Peer, m.op, len(m.vals), m.class))
	}
	return true, c.write(rank, ln, o, o.Buf, int(o.From), m.vals, o.Verb == RecvReduce)
}

func (c *checker) newQueue() *queue {
	if n := len(c.idle); n > 0 {
		q := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return q
	}
	return &queue{}
}

// buffer is room for n values; release gives it back.
func (c *checker) buffer(n int) []value {
	if k := len(c.spare); k > 0 && cap(c.spare[k-1]) >= n {
		v := c.spare[k-1][:n]
		c.spare = c.spare[:k-1]
		return v
	}
	return make([]value, n)
}

func (c *checker) release(v []value) { c.spare = append(c.spare, v) }

// read takes the values of an op's range.
func (c *checker) read(rank, ln int, o Op, vals []value) error {
	for k := range vals {
		chunk := int(o.From) + k
		v := c.cell(rank, o.Buf, chunk)
		if v.count == 0 {
			return c.fault(Early, rank, ln, o, fmt.Sprintf("reads %s[%d], which holds nothing yet", o.Buf, chunk))
		}
		if err := c.class(rank, ln, o, *v); err != nil {
			return err
		}
		v.fresh = false
		vals[k] = *v
		if err := c.races.touch(rank, ln, o, o.Buf, chunk, false); err != nil {
			return err
		}
	}
	return nil
}

// class holds an op of all_to_all_v to the pair whose data it moves.
func (c *checker) class(rank, ln int, o Op, v value) error {
	want := int32(0)
	if c.s.Kind == coll.AllToAllV {
		block, _ := c.s.Layout.Place(int(v.origin))
		want = 1 + v.lo*int32(c.s.Ranks) + int32(block)
	}
	if o.Class != want {
		return c.fault(Malformed, rank, ln, o, fmt.Sprintf("has size class %d; what it moves has %d", o.Class, want))
	}
	return nil
}

// write puts values into a range, or adds them to it.
func (c *checker) write(rank, ln int, o Op, buf Buffer, at int, vals []value, add bool) error {
	defer c.release(vals)
	var x, y, z value // the last sum, which is mostly the next one too
	for k, v := range vals {
		chunk := at + k
		dst := c.cell(rank, buf, chunk)
		if err := c.races.touch(rank, ln, o, buf, chunk, true); err != nil {
			return err
		}
		if !add {
			if dst.fresh {
				return c.fault(Lost, rank, ln, o, fmt.Sprintf("overwrites %s[%d] before anyone has read it", buf, chunk))
			}
			*dst = v
			dst.fresh = true
			continue
		}
		switch {
		case dst.count == 0:
			return c.fault(Early, rank, ln, o, fmt.Sprintf("adds to %s[%d], which holds nothing yet", buf, chunk))
		case dst.origin != v.origin:
			return c.fault(Mixed, rank, ln, o, fmt.Sprintf("adds chunk %d to chunk %d", v.origin, dst.origin))
		}
		if k == 0 || !sameSet(*dst, x) || !sameSet(v, y) {
			x, y = *dst, v
			var overlap bool
			if z, overlap = c.sets.sum(x, y); overlap && c.s.Kind != coll.Barrier {
				return c.fault(Doubled, rank, ln, o, fmt.Sprintf("adds %s to %s of chunk %d", c.describe(y), c.describe(x), v.origin))
			}
		}
		z.origin = v.origin
		*dst = z
		dst.fresh = true
	}
	return nil
}

// sameSet reports whether two values are the same set by their form; different forms of a set
// count as different.
func sameSet(a, b value) bool { return a.lo == b.lo && a.count == b.count && a.bits == b.bits }
