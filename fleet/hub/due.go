package hub

import (
	"context"
	"time"

	"busbar.dev/fleet"
)

// due is when an order runs next. Times of an order that repeats lie on a grid from its
// first time on, whoever carries it out and however long a sweep takes. What was missed
// while no hub was there is not made up for: one that comes back would begin with a burst.
func due(o *fleet.Order, given, now time.Time) time.Time {
	first := o.From
	if first.IsZero() {
		first = given
	}
	if o.Every <= 0 || o.Ran.IsZero() && o.From.IsZero() {
		return first
	}
	steps := max(0, (now.Sub(first)+o.Every-1)/o.Every)
	// A time in the future is of a clock that was wrong; it must not hold up what follows.
	if ran := o.Ran.Sub(first); ran >= 0 && o.Ran.Sub(now) <= o.Every {
		steps = max(steps, ran/o.Every+1)
	}
	return first.Add(steps * o.Every)
}

// clockTurn is how often the clock is looked at while an order waits, for it may be set.
const clockTurn = 20 * time.Second

// untilDue waits for an order's time by the clock as it is; false when the context ends. An order that
// repeats and that the clock has overtaken waits for its next time.
func (h *Hub) untilDue(ctx context.Context, o *fleet.Order, given time.Time) bool {
	at := due(o, given, h.cfg.Now())
	for {
		now := h.cfg.Now()
		if next := due(o, given, now); next.Before(at) || now.Sub(at) > 3*clockTurn {
			at = next
		}
		if wait := at.Sub(now); wait <= 0 || !h.sleep(ctx, min(wait, clockTurn)) {
			return ctx.Err() == nil
		}
	}
}
