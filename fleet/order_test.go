package fleet

import (
	"testing"
	"time"
)

// TestOrderBounds: how many parts a round has, and how long an order may take.
func TestOrderBounds(t *testing.T) {
	now := time.Now()
	state := func(change func(*OrderState)) *OrderState {
		o := &OrderState{}
		o.ID, o.State, o.Parts = "x", Running, 28
		if change != nil {
			change(o)
		}
		return o
	}
	for _, c := range []struct {
		name  string
		o     *OrderState
		round int
		most  time.Duration
	}{
		{"all pairs of 8", state(nil), 4, 7 * 20 * time.Second},
		{"all pairs of 5", state(func(o *OrderState) { o.Parts = 10 }), 2, 5 * 20 * time.Second},
		{"two rounds of 8", state(func(o *OrderState) { o.Parts, o.Rounds = 8, 2 }), 4, time.Minute},
		{"more rounds than there are", state(func(o *OrderState) { o.Rounds = 28 }), 4, 7 * 20 * time.Second},
		{"two at once", state(func(o *OrderState) { o.AtOnce = 2 }), 4, 14 * 20 * time.Second},
		{"a collective", state(func(o *OrderState) { o.Parts, o.Caps.Time = 1, 5*time.Minute }), 1, 5 * time.Minute},
		{"not begun", state(func(o *OrderState) { o.Parts, o.State = 0, Waiting }), 1, time.Minute},
		{
			"later", state(func(o *OrderState) { o.Parts, o.State, o.Next = 0, Waiting, now.Add(time.Hour) }), 1,
			time.Hour,
		},
	} {
		if r, m := c.o.PerRound(), c.o.MostTime(now); r != c.round || m != c.most {
			t.Errorf("%s: %d a round, %v at most", c.name, r, m)
		}
	}
}
