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
	if o.Ran.IsZero() && (o.Every == 0 || o.From.IsZero()) || o.Every <= 0 {
		return first
	}
	next, ran := now, o.Ran
	if ran.Sub(now) > o.Every {
		ran = time.Time{} // by a clock that was wrong; it must not hold up what follows
	}
	if ran.After(next) {
		next = ran
	}
	if next.Before(first) {
		return first
	}
	steps := next.Sub(first) / o.Every
	at := first.Add(steps * o.Every)
	for at.Before(now) || !at.After(ran) {
		at = at.Add(o.Every)
	}
	return at
}

// clockTurn is how often the clock is looked at while an order waits, for it may be set.
const clockTurn = 20 * time.Second

// untilDue waits for an order's time by the clock as it is; false when the context ends. An order that
// repeats and that the clock has overtaken waits for its next time.
func (h *Hub) untilDue(ctx context.Context, o *fleet.Order, given time.Time) bool {
	at := due(o, given, h.now())
	for {
		now := h.now()
		wait := at.Sub(now)
		next := due(o, given, now)
		switch {
		case wait > 0 && next.Before(at), wait < -3*h.clock.turn && next.After(at):
			at = next
		case wait <= 0:
			return ctx.Err() == nil
		case !h.sleep(ctx, min(wait, h.clock.turn)):
			return false
		}
	}
}
