package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// driver moves everything of a group that is under way: bytes of all links, steps of all lanes
// and the exchanges. One goroutine at a time drives: whoever waits for a call, or one of the
// driver's own where calls were only started.
type driver struct {
	g      *Group
	waiter waiter
	born   time.Time
	spin   time.Duration // how long to look again and again before sleeping
	yields bool          // let others run in between

	inboxMu sync.Mutex
	inbox   []*Call
	mail    atomic.Bool // something is in inbox
	work    chan struct{}
	quit    chan struct{}
	idle    chan struct{} // closed when the background has ended

	reg   registry
	pair  sync.Mutex    // of two ranks in one process that meet
	state atomic.Uint64 // what the group is doing, for heartbeats

	mu     sync.Mutex // held by the goroutine that drives; guards all below
	nextID uint64     // of the call that is prepared next
	calls  map[uint64]*Call
	active []*Call
	ready  []*lane
	links  []*link // with something under way
	all    []*link
	peers  [][]*link     // by rank, then connection
	moved  int64         // bytes, to share turns
	stuck  bool          // nothing has moved for a while: messages are put aside
	still  time.Duration // for how long nothing has moved
	spins  int           // at an exchange, before the processor is given away
}

// Waiting: how long a group looks again and again before it sleeps, when it begins to put
// messages aside, and how often a sleep is interrupted to look at contexts and limits.
//
// Putting aside is what no schedule of ours needs, and costs two copies and fresh memory: a rank
// must not begin with it only because its peer is at another message of some megabytes, or waits
// for a processor.
const (
	stuckAfter = 10 * time.Millisecond
	slice      = 20 * time.Millisecond
)

func (d *driver) init(g *Group, w waiter) {
	d.g, d.waiter, d.born = g, w, time.Now()
	d.calls, d.peers, d.reg = map[uint64]*Call{}, make([][]*link, g.size), newRegistry()
	d.work, d.quit, d.idle = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	d.spins = maxSpins
	d.state.Store(idleState)
}

// maxCalls is how many calls of a group have numbers.
const maxCalls = 1<<24 - 1

// register gives a call its number and lets its messages in.
func (d *driver) register(c *Call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nextID > maxCalls {
		return fmt.Errorf("the group has had %d calls prepared, which is all there are numbers for; keep calls instead of "+
			"preparing them anew", maxCalls)
	}
	c.id = d.nextID
	d.nextID++
	d.calls[c.id] = c
	lanes := 0
	for _, x := range d.calls {
		lanes += len(x.lanes)
	}
	if cap(d.ready) < lanes {
		d.ready = append(make([]*lane, 0, 2*lanes), d.ready...)
	}
	return nil
}

// submit hands a call to whoever drives the group. Where nobody does and the caller will not,
// the group's own goroutine is woken.
func (d *driver) submit(c *Call, alone bool) {
	d.inboxMu.Lock()
	d.inbox = append(d.inbox, c)
	d.inboxMu.Unlock()
	d.mail.Store(true)
	if alone {
		d.wakeBackground()
		d.waiter.wake()
	}
	if alone && d.g.closed.Load() { // nobody drives any more
		d.mu.Lock()
		d.takeSubmitted()
		d.drop()
		d.mu.Unlock()
	}
}

// wakeBackground wakes the goroutine that drives calls which were only started.
func (d *driver) wakeBackground() {
	select {
	case d.work <- struct{}{}:
	default:
	}
}

// background drives calls that nobody waits for in Run.
func (d *driver) background() {
	defer close(d.idle)
	for {
		select {
		case <-d.work:
		case <-d.quit:
			return
		}
		d.mu.Lock()
		d.drive(context.Background(), nil)
		d.mu.Unlock()
	}
}

// drive moves everything that is under way until a call is over, or until all are.
func (d *driver) drive(ctx context.Context, until *Call) {
	var idle time.Time // since when nothing has moved
	for {
		if d.mail.Load() {
			d.takeSubmitted()
		}
		if d.g.ending.broken.Load() {
			d.drop()
			return
		}
		moved, err := d.turn()
		if err != nil {
			d.g.blame(err)
			continue
		}
		if until != nil && until.over || until == nil && len(d.active) == 0 && !d.mail.Load() && !d.mustSend() {
			return
		}
		if moved {
			idle = time.Time{}
			d.stuck = false
			continue
		}
		now := time.Now()
		if idle.IsZero() {
			idle = now
		}
		if now.Sub(idle) < d.spin {
			if d.yields {
				d.waiter.yield()
				d.adaptSpin(time.Since(now))
			}
			continue
		}
		if err := d.checkLimits(ctx, now.Sub(idle)); err != nil {
			d.g.blame(err)
			continue
		}
		d.waiter.arm(d.all, d.armExchanges(1) || d.stuck)
		if moved, err = d.turn(); moved || err != nil || d.mail.Load() || d.g.ending.broken.Load() {
			if err != nil {
				d.g.blame(err)
			}
			d.waiter.disarm()
			d.armExchanges(0)
			idle = time.Time{}
			continue
		}
		nap := slice
		if !d.stuck {
			nap = stuckAfter
		}
		d.publishState()
		d.waiter.sleep(nap)
		d.armExchanges(0)
	}
}

// armExchanges says on all exchanges in use whether this rank sleeps, and whether there are any.
func (d *driver) armExchanges(asleep uint32) (any bool) {
	for _, c := range d.active {
		if c.usesExchange() {
			c.exchange.arm(asleep)
			any = true
		}
	}
	return any
}

// takeSubmitted takes over the calls that were submitted.
func (d *driver) takeSubmitted() {
	d.inboxMu.Lock()
	d.mail.Store(false)
	n := len(d.active)
	d.active = append(d.active, d.inbox...)
	clear(d.inbox)
	d.inbox = d.inbox[:0]
	d.inboxMu.Unlock()
	if d.g.ending.broken.Load() { // they end before they begin; what they would touch may have been given back
		return
	}
	// The lane that was woken last goes on first, so that calls send in the order of their start.
	for _, c := range slices.Backward(d.active[n:]) {
		c.enter()
	}
}

// turn lets every lane and link go on once.
func (d *driver) turn() (moved bool, err error) {
	moved = len(d.ready) > 0
	if err := d.runLanes(); err != nil {
		return true, err
	}
	for i := 0; i < len(d.active); i++ {
		if c := d.active[i]; c.usesExchange() {
			ok, err := c.exchange.poll()
			if err != nil {
				return true, err
			}
			moved = moved || ok
		}
	}
	list := d.links
	if d.stuck {
		list = d.all
	}
	for i := 0; i < len(list); i++ {
		l := list[i]
		if l.writing() {
			ok, err := l.tx()
			if err != nil {
				return true, &linkError{l, err}
			}
			moved = moved || ok
		}
		if d.stuck && len(l.kept) > 0 && l.copyKept() {
			moved = true
		}
		if d.stuck && l.ungate(d.still) {
			moved = true
		}
		if l.ended == nil && (l.expects() || d.stuck) {
			ok, err := l.rx()
			if err != nil {
				if err := l.end(err); err != nil {
					return true, err
				}
			}
			if ok {
				moved = true
				if err := d.runLanes(); err != nil {
					return true, err
				}
			}
		}
	}
	d.prune()
	return moved, nil
}

// runLanes lets lanes go on that have a reason to.
func (d *driver) runLanes() error {
	for len(d.ready) > 0 {
		ln := d.ready[len(d.ready)-1]
		d.ready = d.ready[:len(d.ready)-1]
		ln.queue = false
		if err := ln.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) wakeLane(ln *lane) {
	if !ln.queue {
		ln.queue = true
		d.ready = append(d.ready, ln)
	}
}

// list puts a link among those that are looked at.
func (d *driver) list(l *link) {
	if !l.listed {
		l.listed = true
		d.links = append(d.links, l)
	}
}

// prune forgets links with nothing to do, once the list is longer than a few.
func (d *driver) prune() {
	if len(d.links) <= 4 {
		return
	}
	keep := d.links[:0]
	for _, l := range d.links {
		if l.expects() || l.head < len(l.queue) {
			keep = append(keep, l)
		} else {
			l.listed = false
		}
	}
	d.links = keep
}

// mustSend reports whether something is still to be sent: the acknowledgement of a call that is
// over, for which a peer waits.
func (d *driver) mustSend() bool {
	for _, l := range d.links {
		if l.writing() {
			return true
		}
	}
	return false
}

// finish ends a call.
func (d *driver) finish(c *Call, err error) {
	if c.over {
		return
	}
	for i, a := range d.active {
		if a == c {
			d.active = append(d.active[:i], d.active[i+1:]...)
			break
		}
	}
	if err == nil {
		c.leave()
	}
	c.err, c.over = err, true
	c.busy.Store(false)
	if !c.met {
		c.done <- struct{}{}
	}
}

// drop ends all calls of a group that has failed.
func (d *driver) drop() {
	err := d.g.failure()
	for len(d.active) > 0 {
		c := d.active[0]
		var peer *PeerError
		if errors.As(err, &peer) {
			e := *peer
			e.Here = fmt.Sprintf("rank %d was %s", d.g.rank, c.activity())
			d.finish(c, &e)
			continue
		}
		d.finish(c, err)
	}
}

// stop ends the background.
func (d *driver) stop() {
	close(d.quit)
	<-d.idle
}

// close ends all calls and closes all links. The caller holds the lock.
func (d *driver) close() {
	d.takeSubmitted()
	d.drop()
	for _, c := range d.calls {
		c.closeExchange()
	}
	for _, l := range d.all {
		l.close()
	}
}
