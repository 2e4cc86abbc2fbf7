package schedule

import (
	"fmt"

	"busbar.dev/coll"
)

// maxCells limits the memory of Check: chunks of all ranks.
const maxCells = 1 << 26

// Fault is what Check finds: where, and what is wrong there.
type Fault struct {
	Class FaultClass `json:"class"`
	// Rank, Lane and Op are -1 where the fault has no such place.
	Rank int    `json:"rank"`
	Lane int    `json:"lane"`
	Op   int    `json:"op"`
	What string `json:"text"`
}

// FaultClass sorts faults.
type FaultClass string

// Classes of faults.
const (
	Malformed FaultClass = "malformed" // an op that means nothing: no such peer, chunk, lane
	Deadlock  FaultClass = "deadlock"  // a lane waits for ever
	Unmatched FaultClass = "unmatched" // a message nobody receives, or of another length
	Early     FaultClass = "early"     // read before it is there
	Lost      FaultClass = "lost"      // overwritten before anyone read it
	Race      FaultClass = "race"      // two lanes at one chunk with nothing to order them
	Doubled   FaultClass = "doubled"   // a contribution counted twice
	Mixed     FaultClass = "mixed"     // different chunks added to each other
	Wrong     FaultClass = "wrong"     // the result is not the collective's
	TooBig    FaultClass = "too big"   // more than Check can hold
)

func (f *Fault) Error() string {
	switch {
	case f.Rank < 0:
		return f.What
	case f.Lane < 0:
		return fmt.Sprintf("rank %d %s", f.Rank, f.What)
	}
	return fmt.Sprintf("rank %d lane %d %s", f.Rank, f.Lane, f.What)
}

// Check proves a schedule, or returns a *Fault. It runs the programs on sets of contributions
// ("rank 3's part of chunk 7, once") over queues that hold Depth messages, and shows that every
// rank ends with what the collective's definition says: each contribution exactly once, nothing
// read before it was there, nothing overwritten unread, no two lanes at one chunk without an
// order between them, every send received, no lane waiting for ever.
//
// Programs block on receives of named peers only, so what one order of running finds holds for
// all orders. The order between two lanes of a rank counts only where an After states it
// directly; one that would follow from other ranks' doings, or from a chain of waits, is
// reported as a race.
//
// The cost is that of touching every chunk of every message once.
func (s *Schedule) Check() error {
	if err := s.checkHeader(); err != nil {
		return err
	}
	c := newChecker(s)
	if err := c.run(); err != nil {
		return err
	}
	return c.verify()
}

func (s *Schedule) checkHeader() error {
	bad := func(format string, args ...any) error {
		return &Fault{Malformed, -1, -1, -1, fmt.Sprintf(format, args...)}
	}
	l := s.Layout
	switch {
	case s.Program == nil:
		return bad("the schedule has no program")
	case s.Ranks < 1 || s.Lanes < 1 || s.Channels < 1 || s.Temp < 0:
		return bad("the schedule has %d ranks, %d lanes, %d channels, %d chunks of scratch; at least one rank, lane and "+
			"channel are needed", s.Ranks, s.Lanes, s.Channels, s.Temp)
	case s.Depth < 0:
		return bad("depth %d is negative", s.Depth)
	case s.Root < 0 || s.Root >= s.Ranks:
		return bad("root %d; ranks are 0 to %d", s.Root, s.Ranks-1)
	case !l.ok():
		return bad("%d chunks do not divide into %d blocks of %d channels", l.Chunks, l.Blocks, l.Channels)
	case s.Kind.Blocked() && l.Blocks != s.Ranks, !s.Kind.Blocked() && l.Blocks != 1:
		return bad("%s over %d ranks with %d blocks", s.Kind, s.Ranks, l.Blocks)
	case l.Channels != s.Channels:
		return bad("the layout has %d channels, the schedule %d", l.Channels, s.Channels)
	case s.Lanes > 1<<laneBits-1 || s.Nodes() > 1<<24:
		return bad("%d lanes and %d participants; at most %d and %d", s.Lanes, s.Nodes(), 1<<laneBits-1, 1<<24)
	}
	seen := make([]bool, len(l.Order))
	for _, b := range l.Order {
		if b < 0 || int(b) >= len(seen) || seen[b] {
			return bad("the layout's order of blocks is no permutation: block %d", b)
		}
		seen[b] = true
	}
	per := int64(l.Chunks)*2 + int64(s.Temp)
	if s.Kind.InPlace() {
		per -= int64(l.Chunks)
	}
	if per*int64(s.Nodes()) > maxCells {
		return &Fault{
			TooBig, -1, -1, -1, fmt.Sprintf("%d participants with %d chunks each; check fewer ranks, the programs are the same",
				s.Nodes(), per),
		}
	}
	return nil
}

// initial reports whether a rank's Data holds its contribution to a block at first.
func (s *Schedule) initial(rank, block int) bool {
	switch s.Kind {
	case coll.AllGather, coll.Gather, coll.Hypercube:
		return block == rank
	case coll.Broadcast, coll.Scatter:
		return rank == s.Root
	}
	return true
}

// result tells what a rank must hold of a block in the end: nothing (need false), one rank's
// contribution, or all ranks' (from -1).
func (s *Schedule) result(rank, block int) (need bool, from int) {
	switch s.Kind {
	case coll.AllReduce, coll.Barrier:
		return true, -1
	case coll.ReduceScatter:
		return block == rank, -1
	case coll.Reduce:
		return rank == s.Root, -1
	case coll.AllGather, coll.Hypercube, coll.AllToAll, coll.AllToAllV:
		return true, block
	case coll.Gather:
		return rank == s.Root, block
	case coll.Broadcast:
		return true, s.Root
	case coll.Scatter:
		return block == rank, s.Root
	case coll.SendRecv:
		return true, (rank - 1 + s.Ranks) % s.Ranks
	}
	return false, 0
}

// verify compares what every rank holds in the end with the definition.
func (c *checker) verify() error {
	s := c.s
	buf := Data
	if !s.Kind.InPlace() {
		buf = Out
	}
	for r := range s.Ranks {
		for chunk := range s.Layout.Chunks {
			block, piece := s.Layout.Place(chunk)
			need, from := s.result(r, block)
			if !need {
				continue
			}
			v := c.cell(r, buf, chunk)
			want := c.all(int32(chunk))
			if from >= 0 {
				want = value{origin: int32(chunk), lo: int32(from), count: 1}
			}
			if s.Kind == coll.AllToAll || s.Kind == coll.AllToAllV {
				if b, p := s.Layout.Place(int(v.origin)); v.count > 0 && (b != r || p != piece) {
					return c.wrong(r, buf, chunk,
						fmt.Sprintf("holds piece %d of the block for rank %d; want piece %d of the block for rank %d", p, b, piece, r))
				}
				want.origin = v.origin
			}
			if v.count == 0 {
				return c.wrong(r, buf, chunk, "holds nothing; want "+c.describe(want))
			}
			if v.origin != want.origin {
				return c.wrong(r, buf, chunk, fmt.Sprintf("holds chunk %d in its place", v.origin))
			}
			if !c.equal(*v, want) {
				return c.wrong(r, buf, chunk, fmt.Sprintf("holds %s; want %s", c.describe(*v), c.describe(want)))
			}
		}
	}
	return nil
}

func (c *checker) wrong(rank int, buf Buffer, chunk int, what string) error {
	return &Fault{Wrong, rank, -1, -1, fmt.Sprintf("ends wrong: %s[%d] %s", buf, chunk, what)}
}

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
		return false, c.fault(Unmatched, rank, ln, o,
			fmt.Sprintf("takes %d chunks of class %d; the message from rank %d (its op %d) has %d of class %d",
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
				return c.fault(Doubled, rank, ln, o,
					fmt.Sprintf("adds %s to %s of chunk %d", c.describe(y), c.describe(x), v.origin))
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

// ok reports whether the numbers divide.
func (l Layout) ok() bool {
	return l.Chunks >= 0 && l.Blocks >= 1 && l.Channels >= 1 && l.Chunks%(l.Blocks*l.Channels) == 0 &&
		(l.Order == nil || len(l.Order) == l.Blocks)
}
