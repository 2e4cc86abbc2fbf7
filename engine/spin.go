package engine

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/internal/shm"
)

// How a rank looks at an exchange before it gives the processor away: a look is an instruction that
// waits and a few that read. A peer that runs answers within some hundred nanoseconds, and giving
// way takes as long even where nobody wants the processor.
const (
	maxSpins  = 64
	spinStep  = 8
	spinPause = 1
	// aloneYield is less than it takes to let another process run, and more than to find none.
	aloneYield = 1200 * time.Nanosecond
)

// complete runs a call to its end: where nobody drives the group, the caller does.
func (d *driver) complete(ctx context.Context, c *Call) error {
	if !d.mu.TryLock() {
		d.submit(c, false)
		d.waiter.wake()
		d.wakeBackground() // in case the driver stops without having seen the call
		return c.ended(ctx)
	}
	c.met = true
	if len(d.active) > 0 || d.mail.Load() || d.g.ending.broken.Load() { // those that came before begin first
		d.submit(c, false)
	} else {
		d.active = append(d.active, c)
		c.enter()
		d.pollBriefly(c)
	}
	if !c.over {
		d.drive(ctx, c)
	}
	err := c.err
	more := len(d.active) > 0 || d.mail.Load() || d.mustSend()
	d.mu.Unlock()
	if more {
		d.wakeBackground()
	}
	return err
}

// ended waits for a call that somebody else drives.
func (c *Call) ended(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		c.g.fail(fmt.Errorf("%s: given up: %w", c.name, context.Cause(ctx)))
		<-c.done
		return c.err
	}
}

// pollBriefly lets a call that has the group for itself go on by its exchange as long as its peers answer
// at once. What is then left is for drive, which looks at all that can happen.
func (d *driver) pollBriefly(c *Call) {
	for left := d.spins; c.usesExchange(); left-- {
		moved, err := c.exchange.poll()
		switch {
		case err != nil:
			d.g.blame(err)
			return
		case moved:
			left = d.spins
		case left <= 0:
			return
		default:
			shm.Pause(spinPause)
		}
	}
}

// adaptSpin is told how long the processor was given away. Where nobody else wants it, looking without
// giving way is quicker; where others do, that only keeps them waiting.
func (d *driver) adaptSpin(took time.Duration) {
	if took < aloneYield {
		d.spins = min(d.spins+spinStep, maxSpins)
	} else {
		d.spins /= 4
	}
}
