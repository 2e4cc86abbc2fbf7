package engine

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Call is a schedule and an operation made ready to run on a group, as often as wanted.
type Call struct {
	g       *Group
	d       *driver // of the group
	s       *schedule.Schedule
	op      coll.Op
	name    string // for messages
	id      uint64
	program uint32
	elem    int64

	exchange *shmExchange // in place of the lanes, among ranks of one host
	lanes    []lane
	added    []int // by lane: where there is a step that is no op of the schedule
	left     int   // lanes that have not ended
	waits    bool  // some op waits for another lane
	writes   bool  // the program writes Data

	mem     [memories][]byte
	where   [memories]spot // where they are for peers of the same host
	owned   [memories][]byte
	need    [memories]int64
	bound   binding
	initial []seg // of Data that must hold the contribution before the program begins
	arith   kernels
	ready   bool

	busy  atomic.Bool
	over  bool // seen by the driver
	met   bool // whoever waits for the end drives the group, and sees it
	done  chan struct{}
	err   error
	begun time.Time

	run result.Run
}

// messages is the steps of a call that send or receive, each with its lane.
func (c *Call) messages() iter.Seq2[*step, int] {
	return func(yield func(*step, int) bool) {
		for i := range c.lanes {
			for k := range c.lanes[i].steps {
				if st := &c.lanes[i].steps[k]; (st.verb == send || st.verb.receives()) && !yield(st, i) {
					return
				}
			}
		}
	}
}

// usesExchange reports whether a run goes by shared memory, or asks whether it may.
func (c *Call) usesExchange() bool { return c.exchange != nil && c.exchange.stage != exchangeIdle }

func (c *Call) closeExchange() {
	if c.exchange != nil {
		c.exchange.close()
	}
}

// doneAt is the number of steps that a wait for a number of ops means.
func (c *Call) doneAt(w schedule.Wait) int {
	n := int(w.Count)
	if at := c.added[w.Lane]; at > 0 && n >= at {
		n++
	}
	return n
}

// Traffic is what this rank sends in one run, without headers.
func (c *Call) Traffic() (sum unit.Bytes) {
	for st := range c.messages() {
		if st.verb == send {
			sum += unit.Bytes(st.bytes)
		}
	}
	return sum
}

// Run runs the call and waits for its end. The record is the call's own and holds until the
// next run; its time is this rank's. A context that ends in the middle leaves the peers
// without their data: the group has then failed.
func (c *Call) Run(ctx context.Context) (*result.Run, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // the others need not hear of anything else first
		c.g.fail(fmt.Errorf("%s: given up: %w", c.name, context.Cause(ctx)))
		c.busy.Store(false)
		return nil, c.g.failure()
	}
	if err := c.d.complete(ctx, c); err != nil {
		return nil, err
	}
	return &c.run, nil
}

// Start begins the call and returns; it goes on by itself. Several calls of a group may be
// under way, each of them once.
func (c *Call) Start() error {
	if err := c.begin(); err != nil {
		return err
	}
	c.d.submit(c, true)
	return nil
}

// Wait waits for the end of a call that was started. When the context ends first, the call
// stays under way.
func (c *Call) Wait(ctx context.Context) (*result.Run, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c.err != nil {
		return nil, c.err
	}
	return &c.run, nil
}

// begin readies the call for one run.
func (c *Call) begin() error {
	switch {
	case !c.ready:
		return fmt.Errorf("%s: the call has no buffers; Bind them first", c.name)
	case !c.busy.CompareAndSwap(false, true):
		return fmt.Errorf("%s: the call is under way already", c.name)
	}
	if err := c.g.failure(); err != nil {
		c.busy.Store(false)
		return err
	}
	select {
	case <-c.done: // of a run that nobody waited for
	default:
	}
	c.begun = c.d.born.Add(time.Since(c.d.born)) // half the price of Now, which asks two clocks
	c.err, c.over, c.met = nil, false, false
	return nil
}

// enter puts the call's lanes to work; the driver calls it.
func (c *Call) enter() {
	b := &c.bound
	copy(b.before.dst, b.before.src)
	if c.op.Reduce == coll.MulSum && c.op.Kind.Reduces() {
		c.arith.scale(b.contribution, b.contribution)
	}
	if c.exchange != nil && (c.exchange.on || !c.exchange.asked) {
		c.exchange.begin()
		return
	}
	c.enterLanes()
}

func (c *Call) enterLanes() {
	if b := &c.bound; b.apart {
		for _, x := range c.initial {
			copy(c.mem[dataMem][x.off:x.off+x.n], c.mem[srcMem][x.off:x.off+x.n])
		}
	}
	c.left = len(c.lanes)
	for i := range c.lanes {
		ln := &c.lanes[i]
		ln.pc, ln.state, ln.first, ln.count, ln.gate = 0, runs, 0, 0, nil
		c.d.wakeLane(ln)
	}
}

// leave finishes what the program left to do.
func (c *Call) leave() {
	b := &c.bound
	if c.op.Reduce == coll.Avg && c.op.Kind.Reduces() {
		c.arith.divide(b.result, b.result)
	}
	copy(b.after.dst, b.after.src)
	c.run.Time = unit.Time(time.Since(c.begun).Nanoseconds()) * unit.Nanosecond
}

// receiveInto puts what a message brought to its place.
func (c *Call) receiveInto(v verb, x seg, off int64, p []byte) {
	at := c.mem[x.mem][x.off+off : x.off+off+int64(len(p))]
	if v == recvReduce {
		a := at
		if x.first {
			a = c.mem[srcMem][x.off+off : x.off+off+int64(len(p))]
		}
		c.arith.combine(at, a, p)
		return
	}
	copy(at, p)
}

// receiveWhole puts a whole message to its place.
func (c *Call) receiveWhole(st *step, data []byte) {
	for _, x := range st.segs {
		c.receiveInto(st.verb, x, 0, data[:x.n])
		data = data[x.n:]
	}
}

// local runs a step that touches no other rank.
func (c *Call) local(st *step) {
	if st.verb == sumAll {
		c.sumAll(st)
		return
	}
	for i, x := range st.segs {
		y := st.dst[i]
		src, dst := c.mem[x.mem][x.off:x.off+x.n], c.mem[y.mem][y.off:y.off+y.n]
		if st.verb == fold {
			c.arith.combine(dst, dst, src)
		} else {
			copy(dst, src)
		}
	}
}

// sumAll adds the contributions that lie beside each other, and the own one at its turn, in
// the order of ranks. The result takes the place of the own one.
func (c *Call) sumAll(st *step) {
	n, rank := st.bytes, c.g.rank
	if n == 0 {
		return
	}
	side := c.mem[sideMem][st.segs[0].off : st.segs[0].off+st.segs[0].n]
	slot := func(i int) []byte { return side[int64(i)*n : int64(i+1)*n] }
	sum := c.arith.combine
	if rank > 0 {
		for i := 1; i < rank; i++ {
			sum(slot(0), slot(0), slot(i))
		}
		at := slot(0)
		for _, y := range st.dst { // the sum of those before this rank, then its own
			own := c.mem[y.mem][y.off : y.off+y.n]
			sum(own, at[:y.n], c.contribution(y))
			at = at[y.n:]
		}
	}
	for i := rank; i < c.g.size-1; i++ {
		from := slot(i)
		for _, y := range st.dst {
			own := c.mem[y.mem][y.off : y.off+y.n]
			a := own
			if i == 0 {
				a = c.contribution(y)
			}
			sum(own, a, from[:y.n])
			from = from[y.n:]
		}
	}
}

// contribution is where the rank's own part of a piece of Data lies before the first write.
func (c *Call) contribution(y seg) []byte {
	m := y.mem
	if y.first {
		m = srcMem
	}
	return c.mem[m][y.off : y.off+y.n]
}

// wakeWaiting lets lanes look again that wait for another.
func (c *Call) wakeWaiting() {
	for i := range c.lanes {
		if c.lanes[i].state == awaitsLane {
			c.d.wakeLane(&c.lanes[i])
		}
	}
}

// doing says where a call stands, in words.
func (c *Call) activity() string {
	if c.usesExchange() {
		r, what := c.exchange.waitingFor()
		if r < 0 {
			return "in " + c.name
		}
		return fmt.Sprintf("in %s: waiting for rank %d: %s", c.name, r, what)
	}
	for i := range c.lanes {
		if ln := &c.lanes[i]; ln.pc < len(ln.steps) {
			return fmt.Sprintf("at step %d of channel %d of %s: %s", ln.pc+1, i, c.name, ln.steps[ln.pc].op)
		}
	}
	return "at the last sends of " + c.name
}
