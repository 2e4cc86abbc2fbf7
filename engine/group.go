package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Group is a rank's membership in a job: its number, and its connections to the others.
// Methods may be called from several goroutines, but calls must be prepared in one order.
type Group struct {
	cfg        Config
	rank, size int
	net        *network // nil where all ranks are in one process
	locals     []*Group // of Local
	waiter     waiter
	born       time.Time
	spin       time.Duration // how long to look again and again before sleeping
	yields     bool          // let others run in between
	pid        int

	reg     registry
	pair    sync.Mutex // of two ranks in one process that meet
	dialing sync.Mutex // one goroutine at a time connects
	prepare sync.Mutex // one Prepare at a time
	cached  map[callKey]*Call
	nextID  uint64
	part    // of a group over some of the ranks of another

	inboxMu sync.Mutex
	inbox   []*Call
	mail    atomic.Bool // something is in inbox
	work    chan struct{}
	quit    chan struct{}
	idle    chan struct{} // closed when the background has ended

	driver sync.Mutex // held by the goroutine that moves things; guards all below
	calls  map[uint64]*Call
	active []*Call
	ready  []*lane
	links  []*link // with something under way
	all    []*link
	peers  [][]*link     // by rank, then connection
	moved  int64         // bytes, to share turns
	alone  bool          // takes part in no board; tests say so
	stuck  bool          // nothing has moved for a while: messages are put aside
	still  time.Duration // for how long nothing has moved
	looks  int           // at a board, before the processor is given away

	arenaMu sync.Mutex
	arenas  []*arena

	state atomic.Uint64 // what the group is doing, for heartbeats

	failMu sync.Mutex
	err    error
	broken atomic.Bool
	doomed chan struct{} // closed when broken
	closed atomic.Bool
}

// callKey is what makes two calls of Run the same.
type callKey struct {
	s      *schedule.Schedule
	kind   coll.Kind
	bytes  unit.Bytes
	dtype  coll.Dtype
	reduce coll.Redop
	root   int
	how    Options
}

func keyOf(s *schedule.Schedule, op coll.Op, o Options) callKey {
	return callKey{s, op.Kind, op.Bytes, op.Type, op.Reduce, op.Root, o}
}

func newGroup(cfg Config, w waiter) *Group {
	g := &Group{
		cfg: cfg, rank: cfg.Rank, size: cfg.Size, pid: os.Getpid(), waiter: w, born: time.Now(), looks: mostLooks,
		cached: map[callKey]*Call{}, calls: map[uint64]*Call{}, part: part{names: map[uint64]string{}, times: map[string]int{}, issued: map[uint64]uint64{}}, peers: make([][]*link, cfg.Size),
		reg: newRegistry(), doomed: make(chan struct{}),
		work: make(chan struct{}, 1), quit: make(chan struct{}), idle: make(chan struct{}),
	}
	g.state.Store(idleState)
	go g.background()
	return g
}

// Local makes a group of n ranks within this process, over plain memory. Each rank should be
// used by a goroutine of its own.
func Local(n int) ([]*Group, error) {
	cfg := Config{Size: n, Meet: "memory", Transport: Mem}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	groups := make([]*Group, n)
	bells := make([]*bell, n)
	for r := range groups {
		cfg.Rank = r
		bells[r] = newBell()
		groups[r] = newGroup(cfg, bells[r])
		groups[r].spin, groups[r].yields = 20*time.Microsecond, true
		groups[r].locals = groups
	}
	return groups, nil
}

// Rank is this rank's number.
func (g *Group) Rank() int { return g.rank }

// Size is the number of ranks.
func (g *Group) Size() int { return g.size }

// Run runs a schedule once; nil is the engine's choice by size. Calls that are alike are prepared once, so that repeats cost no
// memory; the record holds until the next run of that call.
func (g *Group) Run(ctx context.Context, s *schedule.Schedule, op coll.Op, b Buffers) (*result.Run, error) {
	return g.runWith(ctx, s, op, Options{}, b)
}

// runWith is Run with more to say.
func (g *Group) runWith(ctx context.Context, s *schedule.Schedule, op coll.Op, o Options, b Buffers) (*result.Run, error) {
	c, err := g.prepared(s, op, o)
	if err != nil {
		return nil, err
	}
	if err := c.Bind(b); err != nil {
		return nil, err
	}
	return c.Run(ctx)
}

// prepared is the call of a schedule and an operation, made when it is first asked for.
func (g *Group) prepared(s *schedule.Schedule, op coll.Op, o Options) (*Call, error) {
	if op.Sizes != nil {
		return g.PrepareWith(s, op, o)
	}
	key := keyOf(s, op, o)
	g.inboxMu.Lock()
	c := g.cached[key]
	g.inboxMu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := g.PrepareWith(s, op, o)
	if err != nil {
		return nil, err
	}
	g.inboxMu.Lock()
	g.cached[key] = c
	g.inboxMu.Unlock()
	return c, nil
}

// connect gives every step of a call its link.
func (g *Group) connect(c *Call) error {
	need := map[int]bool{}
	if g.boarded(c) { // everybody reads everybody's page
		for r := range g.size {
			if r != g.rank {
				need[g.worldRank(r)] = true
			}
		}
	}
	if g.whole != nil {
		g.translate(c)
		g = g.whole
	}
	for i := range c.lanes {
		for _, st := range c.lanes[i].steps {
			if st.verb == send || st.verb.receives() {
				need[int(st.peer)] = true
			}
		}
	}
	if err := g.reach(need); err != nil {
		return err
	}
	g.driver.Lock()
	defer g.driver.Unlock()
	g.adopt()
	for i := range c.lanes {
		for k := range c.lanes[i].steps {
			if st := &c.lanes[i].steps[k]; st.verb == send || st.verb.receives() {
				list := g.peers[st.peer]
				st.link = list[i%len(list)]
				if c.codec != nil && st.link.enc == nil {
					st.link.enc = make([]byte, encStage)
				}
			}
		}
	}
	return nil
}

// register gives a call its number and lets its messages in.
func (g *Group) register(c *Call) error {
	if g.nextID > maxCalls {
		return fmt.Errorf("the group has had %d calls prepared, which is all there are numbers for; keep calls instead of preparing them anew", maxCalls)
	}
	c.id = g.number<<callBits | g.nextID
	g.nextID++
	w := g.world()
	w.driver.Lock()
	defer w.driver.Unlock()
	w.issued[g.number] = g.nextID
	w.calls[c.id] = c
	lanes := 0
	for _, x := range w.calls {
		lanes += len(x.lanes)
	}
	if cap(w.ready) < lanes {
		w.ready = append(make([]*lane, 0, 2*lanes), w.ready...)
	}
	return nil
}

// Forget gives back what a call holds. It must not be under way, and its number is not used
// again.
func (g *Group) Forget(c *Call) error {
	if c.busy.Load() {
		return fmt.Errorf("%s: the call is under way", c.name)
	}
	g.inboxMu.Lock()
	for k, x := range g.cached {
		if x == c {
			delete(g.cached, k)
		}
	}
	g.inboxMu.Unlock()
	g = g.world()
	g.driver.Lock()
	delete(g.calls, c.id)
	c.closeBoard()
	g.driver.Unlock()
	c.ready = false
	return nil
}

// failure is why the group refuses calls, nil when it does not.
func (g *Group) failure() error {
	if g.whole != nil {
		if g.closed.Load() {
			return ErrClosed
		}
		g = g.whole
	}
	if !g.broken.Load() {
		return nil
	}
	g.failMu.Lock()
	defer g.failMu.Unlock()
	return g.err
}

// fail ends the group, and tells the others. The first reason counts.
func (g *Group) fail(err error) {
	if g.end(err) && g.net != nil {
		g.net.tell(err)
	}
}

// end ends the group for this rank; false when it had ended already.
func (g *Group) end(err error) bool {
	g.failMu.Lock()
	first := g.err == nil
	if first {
		g.err = err
		g.broken.Store(true)
		close(g.doomed)
	}
	g.failMu.Unlock()
	g.waiter.wake()
	g.kick()
	return first
}

// blame finds who is behind an error that the driver met, and fails the group.
func (g *Group) blame(err error) {
	var lost *linkError
	var bad *protocolError
	var stall *stallError
	switch {
	case errors.As(err, &bad):
		g.fail(g.peerError(bad.peer, Failed, bad.text))
	case errors.As(err, &lost) && g.net != nil:
		g.net.suspect(lost.l.peer, lost.err)
	case errors.As(err, &lost):
		g.fail(g.peerError(lost.l.peer, Left, ""))
	case errors.As(err, &stall):
		g.fail(g.stalled(stall))
	default:
		g.fail(err)
	}
}

// stalled names the rank that the first waiting lane waits for.
func (g *Group) stalled(e *stallError) error {
	for _, c := range g.active {
		if c.boards() {
			if r, what := c.board.awaits(); r >= 0 {
				return g.peerError(c.of.worldRank(r), Stuck, "waiting for "+what+": "+e.Error())
			}
		}
		for i := range c.lanes {
			if ln := &c.lanes[i]; ln.state == awaitsMessage || ln.state == receives {
				return g.peerError(int(ln.steps[ln.pc].peer), Stuck, e.Error())
			}
		}
	}
	return e
}

func (g *Group) peerError(rank int, cause Cause, text string) *PeerError {
	e := &PeerError{Rank: rank, Cause: cause, Text: text}
	if g.net != nil {
		m := g.net.member(rank)
		e.Host, e.Pid = m.Host, m.Pid
	}
	return e
}

// Close leaves the job. Calls that are under way fail. Of a group that Sub made, it only gives
// back what its calls hold.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	if g.whole != nil {
		g.leavePart()
		return nil
	}
	if g.net != nil {
		g.net.farewell()
	}
	g.failMu.Lock()
	if g.err == nil {
		g.err = ErrClosed
		g.broken.Store(true)
		close(g.doomed)
	}
	g.failMu.Unlock()
	g.waiter.wake()
	close(g.quit)
	<-g.idle
	g.driver.Lock()
	defer g.driver.Unlock()
	g.intake()
	g.drop()
	for _, c := range g.calls {
		c.closeBoard()
	}
	for _, l := range g.all {
		l.s.close()
		for _, seg := range l.maps {
			seg.Close()
		}
		for _, v := range l.votes {
			if v.seg != nil {
				v.seg.Close()
			}
		}
	}
	g.settle()
	if g.net != nil {
		g.net.close()
	}
	g.waiter.close()
	return nil
}

// States that heartbeats carry.
const idleState = ^uint64(0)

// note keeps what the group is doing for heartbeats.
func (g *Group) note() {
	x := idleState
	if len(g.active) > 0 {
		c := g.active[0]
		x = c.id << 40
		for i := range c.lanes {
			if ln := &c.lanes[i]; ln.pc < len(ln.steps) {
				x |= uint64(i)<<24 | uint64(ln.pc)&(1<<24-1)
				break
			}
		}
	}
	if g.state.Load() != x {
		g.state.Store(x)
	}
}

// describe puts a state into words.
func describe(x uint64) string {
	if x == idleState {
		return "between calls"
	}
	return fmt.Sprintf("at step %d of channel %d of call %d, counted as they were prepared", x&(1<<24-1)+1, x>>24&0xffff, x>>40+1)
}
