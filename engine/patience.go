package engine

import (
	"context"
	"fmt"
	"time"
)

// patience looks at what limits a wait.
func (d *driver) patience(ctx context.Context, idle time.Duration) error {
	d.stuck, d.still = idle > stuckAfter, idle
	if ctx.Err() != nil {
		return fmt.Errorf("given up %s: %w", d.doing(), context.Cause(ctx))
	}
	if err := d.deserted(idle); err != nil {
		return err
	}
	if idle > d.g.cfg.Timeout/2 {
		for _, l := range d.all {
			if s, ok := l.s.(interface{ unheard() time.Duration }); ok && l.ended == nil && s.unheard() > d.g.cfg.Timeout/2 {
				return &linkError{l, fmt.Errorf("nothing was acknowledged for %.1f s", s.unheard().Seconds())}
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
	return fmt.Sprintf("no progress for %.1f s though all ranks are alive; does every rank make the same calls?", e.after.Seconds())
}

// A rank that leaves while others wait for it on a board sends nothing that they could miss:
// no message is expected of it. What tells them is the end of its link or, of rank 0, which
// keeps its links until the others have left, the word that it would like to go.

// deserted is an error when some call waits for a rank that has left. It is asked when nothing
// has moved for a while: the last that such a rank wrote on its pages has been seen by then.
func (d *driver) deserted(idle time.Duration) error {
	g := d.g
	parting := g.net != nil && g.net.parting.Load() && idle > g.cfg.Timeout/4
	for _, c := range d.active {
		if c.boards() {
			for r := range c.board.pages {
				l := c.board.pages[r].link
				if l == nil || c.board.lacks(r) == "" {
					continue
				}
				if l.ended != nil && c.board.stage != boardVotes { // votes that have come are still counted
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

// stalled names the rank that the first waiting lane waits for.
func (d *driver) stalled(e *stallError) error {
	for _, c := range d.active {
		if c.boards() {
			if r, what := c.board.awaits(); r >= 0 {
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

// doing says what the group is at, in words.
func (d *driver) doing() string {
	if len(d.active) == 0 {
		return "between calls"
	}
	return d.active[0].doing()
}

// States that heartbeats carry.
const idleState = ^uint64(0)

// note keeps what the group is doing for heartbeats.
func (d *driver) note() {
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

// describe puts a state into words.
func describe(x uint64) string {
	if x == idleState {
		return "between calls"
	}
	return fmt.Sprintf("at step %d of channel %d of call %d, counted as they were prepared", x&(1<<24-1)+1, x>>24&0xffff, x>>40+1)
}
