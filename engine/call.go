package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Call is a schedule and an operation made ready to run on a group, as often as wanted.
type Call struct {
	g       *Group // that drives it
	of      *Group // that it was prepared on
	s       *schedule.Schedule
	op      coll.Op
	name    string // for messages
	id      uint64
	program uint32
	elem    int64

	board  *board // in place of the lanes, among ranks of one host
	lanes  []lane
	added  []int // by lane: where there is a step that is no op of the schedule
	left   int   // lanes that have not ended
	waits  bool  // some op waits for another lane
	writes bool  // the program writes Data

	mem     [memories][]byte
	where   [memories]spot // where they are for peers of the same host
	owned   [memories][]byte
	need    [memories]int64
	bound   binding
	initial []seg // of Data that must hold the contribution before the program begins
	arith   kernels
	wire    Wire
	codec   *codec // nil where elements travel as they are
	settles []seg  // of Data that is rounded at the end
	ready   bool

	busy  atomic.Bool
	over  bool // seen by the driver
	met   bool // whoever waits for the end drives the group, and sees it
	done  chan struct{}
	err   error
	begun time.Time

	trace bool
	run   result.Run
	loops int
}

// Prepare makes a call ready: it lays out the program of this rank and connects to the peers
// that it talks to. Without a schedule the engine picks one by the size. All ranks must prepare
// the same calls in the same order.
func (g *Group) Prepare(s *schedule.Schedule, op coll.Op) (*Call, error) {
	return g.PrepareWith(s, op, Options{})
}

// PrepareWith is Prepare with more to say. The options must be the same on all ranks.
func (g *Group) PrepareWith(s *schedule.Schedule, op coll.Op, o Options) (*Call, error) {
	if err := g.failure(); err != nil {
		return nil, err
	}
	wire, err := g.wireFor(op, o)
	if err != nil {
		return nil, err
	}
	if s == nil {
		if s, err = g.pickWire(op, wire); err != nil {
			return nil, err
		}
	}
	g.prepare.Lock()
	defer g.prepare.Unlock()
	if s.Ranks != g.size {
		return nil, fmt.Errorf("a schedule for %d ranks in a group of %d", s.Ranks, g.size)
	}
	k, err := newCompiler(s, op, g.rank)
	if err != nil {
		return nil, err
	}
	c := &Call{g: g.world(), of: g, s: s, op: op, elem: k.elem, wire: wire, program: fingerprint(s, op, wire), done: make(chan struct{}, 1)}
	c.name = fmt.Sprintf("%s by %s of %v", op.Kind, s.Name, op.Size(g.size))
	if c.arith, err = kernelsFor(op, g.size); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	c.run = result.Run{Op: op, Ranks: g.size, Algo: s.Name, Channels: s.Channels}
	if err := k.compress(wire); err != nil {
		return nil, err
	}
	c.codec, c.settles = k.codec, k.settles()
	k.findUntouched()
	c.initial = k.initial
	c.lanes, c.added = make([]lane, s.Lanes), make([]int, s.Lanes)
	for i := range c.lanes {
		steps, err := k.lane(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		sends := 0
		for _, st := range steps {
			if st.verb == send {
				sends++
			}
			c.waits = c.waits || st.op.After.Count > 0
		}
		c.lanes[i] = lane{call: c, id: i, steps: steps, sends: make([]posted, min(max(sends, 1), window))}
		c.added[i] = k.added
	}
	c.writes, c.need = k.writes, k.size
	for _, m := range []memory{tempMem, padMem, sideMem} {
		c.mem[m] = c.own(m)
	}
	if op.Kind == coll.Barrier {
		c.ready = true
	}
	if err := g.connect(c); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if err := g.register(c); err != nil {
		return nil, err
	}
	return c, g.setBoard(c)
}

// setBoard gives a call its board, where it may have one.
func (g *Group) setBoard(c *Call) (err error) {
	w := g.world()
	w.driver.Lock()
	defer w.driver.Unlock()
	if c.board, err = g.newBoard(c); c.board == nil {
		return err
	}
	c.board.vote()
	w.kick() // to send what there was no room for
	return nil
}

// boards reports whether a run goes by the board, or asks whether it may.
func (c *Call) boards() bool { return c.board != nil && c.board.stage != boardIdle }

func (c *Call) closeBoard() {
	if c.board != nil {
		c.board.close()
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

// Schedule is the program.
func (c *Call) Schedule() *schedule.Schedule { return c.s }

// Trace says whether runs from now on collect events.
func (c *Call) Trace(on bool) { c.trace = on }

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
	if err := c.g.complete(ctx, c); err != nil {
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
	c.g.submit(c, true)
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
	if err := c.of.failure(); err != nil {
		c.busy.Store(false)
		return err
	}
	select {
	case <-c.done: // of a run that nobody waited for
	default:
	}
	c.begun = c.g.born.Add(time.Since(c.g.born)) // half the price of Now, which asks two clocks
	c.err, c.over, c.met = nil, false, false
	c.run.Events = c.run.Events[:0]
	return nil
}

// enter puts the call's lanes to work; the driver calls it.
func (c *Call) enter() {
	b := &c.bound
	copy(b.before.dst, b.before.src)
	if c.op.Reduce == coll.MulSum && c.op.Kind.Reduces() {
		c.arith.scale(b.contribution, b.contribution)
	}
	if c.board != nil && (c.board.on || !c.board.asked) {
		c.board.begin()
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
		c.g.wakeLane(ln)
	}
}

// leave finishes what the program left to do.
func (c *Call) leave() {
	b := &c.bound
	for _, x := range c.settles {
		c.codec.round(c.mem[x.mem][x.off:x.off+x.n], c.codec.wire)
	}
	if c.op.Reduce == coll.Avg && c.op.Kind.Reduces() {
		c.arith.divide(b.result, b.result)
	}
	copy(b.after.dst, b.after.src)
	c.run.Time = unit.Time(time.Since(c.begun).Nanoseconds()) * unit.Nanosecond
	c.loops++
}

// land puts what a message brought to its place.
func (c *Call) land(v verb, x seg, off int64, p []byte) {
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
	n, rank := st.bytes, c.of.rank
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
	for i := rank; i < c.of.size-1; i++ {
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
			c.g.wakeLane(&c.lanes[i])
		}
	}
}

// mark notes when an op began.
func (c *Call) mark(ln *lane) {
	if c.trace {
		ln.began = time.Since(c.begun).Nanoseconds()
	}
}

// event records an op that is done.
func (c *Call) event(ln *lane, pc int, st *step) {
	if !c.trace {
		return
	}
	from := ln.began
	for k := range ln.count {
		if p := &ln.sends[(ln.first+k)%len(ln.sends)]; st.verb == send && p.pc == pc && p.step == st {
			from = p.from
		}
	}
	peer := -1
	if st.verb == send || st.verb.receives() {
		peer = int(st.op.Peer)
	}
	c.run.Events = append(c.run.Events, result.Event{
		Rank: c.of.rank, Lane: ln.id, Op: pc, Loop: c.loops, Name: st.op.Verb.String(), Peer: peer, Bytes: unit.Bytes(st.bytes),
		From: unit.Time(from) * unit.Nanosecond, To: unit.Time(time.Since(c.begun).Nanoseconds()) * unit.Nanosecond,
	})
}

// doing says where a call stands, in words.
func (c *Call) doing() string {
	if c.boards() {
		r, what := c.board.awaits()
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
