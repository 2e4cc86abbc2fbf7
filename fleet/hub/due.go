package hub

import (
	"time"

	"busbar/fleet"
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
	next := now
	if o.Ran.After(next) {
		next = o.Ran
	}
	if next.Before(first) {
		return first
	}
	steps := next.Sub(first) / o.Every
	at := first.Add(steps * o.Every)
	for at.Before(now) || !at.After(o.Ran) {
		at = at.Add(o.Every)
	}
	return at
}
