package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

func gosched() { runtime.Gosched() }

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

// submit hands a call to whoever drives the group. Where nobody does and the caller will not,
// the group's own goroutine is woken.
func (g *Group) submit(c *Call, alone bool) {
	g.inboxMu.Lock()
	g.inbox = append(g.inbox, c)
	g.inboxMu.Unlock()
	g.mail.Store(true)
	if alone {
		g.kick()
		g.waiter.wake()
	}
	if alone && g.closed.Load() { // nobody drives any more
		g.driver.Lock()
		g.intake()
		g.drop()
		g.driver.Unlock()
	}
}

// kick wakes the goroutine that drives calls which were only started.
func (g *Group) kick() {
	select {
	case g.work <- struct{}{}:
	default:
	}
}

// background drives calls that nobody waits for in Run.
func (g *Group) background() {
	defer close(g.idle)
	for {
		select {
		case <-g.work:
		case <-g.quit:
			return
		}
		g.driver.Lock()
		g.drive(context.Background(), nil)
		g.driver.Unlock()
	}
}

// drive moves everything that is under way until a call is over, or until all are.
func (g *Group) drive(ctx context.Context, until *Call) {
	var idle time.Time // since when nothing has moved
	for {
		if g.mail.Load() {
			g.intake()
		}
		if g.broken.Load() {
			g.drop()
			return
		}
		moved, err := g.turn()
		if err != nil {
			g.blame(err)
			continue
		}
		if until != nil && until.over || until == nil && len(g.active) == 0 && !g.mail.Load() && !g.owes() {
			return
		}
		if moved {
			idle = time.Time{}
			g.stuck = false
			continue
		}
		now := time.Now()
		if idle.IsZero() {
			idle = now
		}
		if now.Sub(idle) < g.spin {
			if g.yields {
				g.waiter.yield()
				g.learn(time.Since(now))
			}
			continue
		}
		if err := g.patience(ctx, now.Sub(idle)); err != nil {
			g.blame(err)
			continue
		}
		g.waiter.arm(g.all, g.armBoards(1) || g.stuck)
		if moved, err = g.turn(); moved || err != nil || g.mail.Load() || g.broken.Load() {
			if err != nil {
				g.blame(err)
			}
			g.waiter.disarm()
			g.armBoards(0)
			idle = time.Time{}
			continue
		}
		d := slice
		if !g.stuck {
			d = stuckAfter
		}
		g.note()
		g.waiter.sleep(d)
		g.armBoards(0)
	}
}

// armBoards says on all boards in use whether this rank sleeps, and whether there are any.
func (g *Group) armBoards(asleep uint32) (any bool) {
	for _, c := range g.active {
		if c.boards() {
			c.board.arm(asleep)
			any = true
		}
	}
	return any
}

// patience looks at what limits a wait.
func (g *Group) patience(ctx context.Context, idle time.Duration) error {
	g.stuck, g.still = idle > stuckAfter, idle
	if ctx.Err() != nil {
		return fmt.Errorf("given up %s: %w", g.doing(), context.Cause(ctx))
	}
	if err := g.deserted(idle); err != nil {
		return err
	}
	if idle > g.cfg.Timeout/2 {
		for _, l := range g.all {
			if s, ok := l.s.(interface{ unheard() time.Duration }); ok && l.ended == nil && s.unheard() > g.cfg.Timeout/2 {
				return &linkError{l, fmt.Errorf("nothing was acknowledged for %.1f s", s.unheard().Seconds())}
			}
		}
	}
	if idle > g.cfg.Stall {
		return &stallError{idle}
	}
	return nil
}

// stallError is a call that makes no progress though all ranks are alive.
type stallError struct{ after time.Duration }

func (e *stallError) Error() string {
	return fmt.Sprintf("no progress for %.1f s though all ranks are alive; does every rank make the same calls?", e.after.Seconds())
}

// linkError is a connection that broke.
type linkError struct {
	l   *link
	err error
}

func (e *linkError) Error() string { return e.err.Error() }

// intake takes over the calls that were submitted.
func (g *Group) intake() {
	g.inboxMu.Lock()
	g.mail.Store(false)
	n := len(g.active)
	g.active = append(g.active, g.inbox...)
	clear(g.inbox)
	g.inbox = g.inbox[:0]
	g.inboxMu.Unlock()
	if g.broken.Load() { // they end before they begin; what they would touch may have been given back
		return
	}
	// The lane that was woken last goes on first, so that calls send in the order of their start.
	for _, c := range slices.Backward(g.active[n:]) {
		c.enter()
	}
}

// turn lets every lane and link go on once.
func (g *Group) turn() (moved bool, err error) {
	moved = len(g.ready) > 0
	if err := g.runLanes(); err != nil {
		return true, err
	}
	for i := 0; i < len(g.active); i++ {
		if c := g.active[i]; c.boards() {
			ok, err := c.board.poll()
			if err != nil {
				return true, err
			}
			moved = moved || ok
		}
	}
	list := g.links
	if g.stuck {
		list = g.all
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
		if g.stuck && len(l.kept) > 0 && l.copyKept() {
			moved = true
		}
		if g.stuck && l.ungate(g.still) {
			moved = true
		}
		if l.ended == nil && (l.waiting > 0 || l.unacked > 0 || l.cur != nil || l.aside != nil || g.stuck) {
			ok, err := l.rx()
			if err != nil {
				if err := l.end(err); err != nil {
					return true, err
				}
			}
			if ok {
				moved = true
				if err := g.runLanes(); err != nil {
					return true, err
				}
			}
		}
	}
	g.prune()
	return moved, nil
}

// end notes that nothing more will come over a link. That is an error only where somebody
// waits for it.
func (l *link) end(err error) error {
	var bad *protocolError
	if errors.As(err, &bad) {
		return err
	}
	l.ended = err
	if l.waiting == 0 && l.unacked == 0 && l.cur == nil && l.aside == nil && !(l.head < len(l.queue)) {
		return nil
	}
	return &linkError{l, err}
}

// runLanes lets lanes go on that have a reason to.
func (g *Group) runLanes() error {
	for len(g.ready) > 0 {
		ln := g.ready[len(g.ready)-1]
		g.ready = g.ready[:len(g.ready)-1]
		ln.queue = false
		if err := ln.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) wakeLane(ln *lane) {
	if !ln.queue {
		ln.queue = true
		g.ready = append(g.ready, ln)
	}
}

// list puts a link among those that are looked at.
func (g *Group) list(l *link) {
	if !l.listed {
		l.listed = true
		g.links = append(g.links, l)
	}
}

// prune forgets links with nothing to do, once the list is longer than a few.
func (g *Group) prune() {
	if len(g.links) <= 4 {
		return
	}
	keep := g.links[:0]
	for _, l := range g.links {
		if l.waiting > 0 || l.unacked > 0 || l.cur != nil || l.aside != nil || l.head < len(l.queue) {
			keep = append(keep, l)
		} else {
			l.listed = false
		}
	}
	g.links = keep
}

// owes reports whether something is still to be sent: the acknowledgement of a call that is
// over, for which a peer waits.
func (g *Group) owes() bool {
	for _, l := range g.links {
		if l.writing() {
			return true
		}
	}
	return false
}

// finish ends a call.
func (g *Group) finish(c *Call, err error) {
	if c.over {
		return
	}
	for i, a := range g.active {
		if a == c {
			g.active = append(g.active[:i], g.active[i+1:]...)
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
func (g *Group) drop() {
	err := g.failure()
	for len(g.active) > 0 {
		c := g.active[0]
		var peer *PeerError
		if errors.As(err, &peer) {
			e := *peer
			e.Here = fmt.Sprintf("rank %d was %s", g.rank, c.doing())
			g.finish(c, &e)
			continue
		}
		g.finish(c, err)
	}
}

// doing says what the group is at, in words.
func (g *Group) doing() string {
	if len(g.active) == 0 {
		return "between calls"
	}
	return g.active[0].doing()
}
