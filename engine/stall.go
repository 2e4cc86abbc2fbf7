package engine

import (
	"context"
	"fmt"
	"time"
)

// checkLimits looks at what limits a wait.
func (d *driver) checkLimits(ctx context.Context, idle time.Duration) error {
	d.stuck, d.still = idle > stuckAfter, idle
	if ctx.Err() != nil {
		return fmt.Errorf("given up %s: %w", d.activity(), context.Cause(ctx))
	}
	if err := d.peerLeft(idle); err != nil {
		return err
	}
	if idle > d.g.cfg.Timeout/2 {
		for _, l := range d.all {
			if s, ok := l.s.(interface{ silentFor() time.Duration }); ok && l.ended == nil && s.silentFor() > d.g.cfg.Timeout/2 {
				return &linkError{l, fmt.Errorf("nothing was acknowledged for %.1f s", s.silentFor().Seconds())}
			}
		}
	}
	if idle > d.g.cfg.Stall {
		return &stallError{idle}
	}
	return nil
}

// stallError is a call that makes no progress though all ranks are alive.
type stallError struct{ after time.Duration }

func (e *stallError) Error() string {
	return fmt.Sprintf("no progress for %.1f s though all ranks are alive; does every rank make the same calls?",
		e.after.Seconds())
}

// A rank that leaves while others wait for it on an exchange sends nothing that they could miss:
// no message is expected of it. What tells them is the end of its link or, of rank 0, which
// keeps its links until the others have left, the word that it would like to go.

// peerLeft is an error when some call waits for a rank that has left. It is asked when nothing
// has moved for a while: the last that such a rank wrote on its pages has been seen by then.
func (d *driver) peerLeft(idle time.Duration) error {
	g := d.g
	parting := g.net != nil && g.net.parting.Load() && idle > g.cfg.Timeout/4
	for _, c := range d.active {
		if c.usesExchange() {
			for r := range c.exchange.pages {
				l := c.exchange.pages[r].link
				if l == nil || c.exchange.missingFrom(r) == "" {
					continue
				}
				if l.ended != nil && c.exchange.stage != exchangeHandles { // votes that have come are still counted
					return &linkError{l, l.ended}
				}
				if parting && l.peer == 0 {
					return g.peerError(0, Left, "while others still needed it")
				}
			}
		}
		for i := range c.lanes {
			if ln := &c.lanes[i]; parting && (ln.state == awaitsMessage || ln.state == receives) && ln.steps[ln.pc].peer == 0 {
				return g.peerError(0, Left, "while others still needed it")
			}
		}
	}
	return nil
}

// stallCause names the rank that the first waiting lane waits for.
func (d *driver) stallCause(e *stallError) error {
	for _, c := range d.active {
		if c.usesExchange() {
			if r, what := c.exchange.waitingFor(); r >= 0 {
				return d.g.peerError(r, Stuck, "waiting for "+what+": "+e.Error())
			}
		}
		for i := range c.lanes {
			if ln := &c.lanes[i]; ln.state == awaitsMessage || ln.state == receives {
				return d.g.peerError(int(ln.steps[ln.pc].peer), Stuck, e.Error())
			}
		}
	}
	return e
}

// activity says what the group is at, in words.
func (d *driver) activity() string {
	if len(d.active) == 0 {
		return "between calls"
	}
	return d.active[0].activity()
}

// States that heartbeats carry.
const idleState = ^uint64(0)

// publishState keeps what the group is doing for heartbeats.
func (d *driver) publishState() {
	x := idleState
	if len(d.active) > 0 {
		c := d.active[0]
		x = c.id << 40
		for i := range c.lanes {
			if ln := &c.lanes[i]; ln.pc < len(ln.steps) {
				x |= uint64(i)<<24 | uint64(ln.pc)&(1<<24-1)
				break
			}
		}
	}
	if d.state.Load() != x {
		d.state.Store(x)
	}
}

// stateText puts a state into words.
func stateText(x uint64) string {
	if x == idleState {
		return "between calls"
	}
	return fmt.Sprintf("at step %d of channel %d of call %d, counted as they were prepared", x&(1<<24-1)+1, x>>24&0xffff,
		x>>40+1)
}
