package query

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"busbar.dev/fleet"
)

// TestFrom has a time of day mean the next one, whether the order repeats or not.
func TestFrom(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 15, 23, 5, 0, 0, zone)
	for _, c := range []struct {
		every, from, want string
	}{
		{"", "", ""},
		{"1h", "", ""},
		{"", "02:30", "2026-11-16T02:30:00+01:00"},
		{"1h", "02:30", "2026-11-16T02:30:00+01:00"},
		{"1d", "02:30", "2026-11-16T02:30:00+01:00"},
		{"1h", "23:30", "2026-11-15T23:30:00+01:00"},
		{"1h", "23:05", "2026-11-15T23:05:00+01:00"},
		{"1h", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"}, // times are counted from there
	} {
		var o fleet.Order
		f := OrderTimes{Every: c.every, From: c.from}
		if err := f.schedule(&o, now); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		got := ""
		if !o.From.IsZero() {
			got = o.From.Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("--every %q --from %q at %v: %s, want %s", c.every, c.from, now, got, c.want)
		}
	}
}

// TestBounds: how many parts a round has, and how long an order may take.
func TestBounds(t *testing.T) {
	now := time.Now()
	state := func(change func(*fleet.OrderState)) *fleet.OrderState {
		o := &fleet.OrderState{}
		o.ID, o.State, o.Parts = "x", fleet.Running, 28
		if change != nil {
			change(o)
		}
		return o
	}
	for _, c := range []struct {
		name  string
		o     *fleet.OrderState
		round int
		most  time.Duration
	}{
		{"all pairs of 8", state(nil), 4, 7 * 20 * time.Second},
		{"all pairs of 5", state(func(o *fleet.OrderState) { o.Parts = 10 }), 2, 5 * 20 * time.Second},
		{"two rounds of 8", state(func(o *fleet.OrderState) { o.Parts, o.Rounds = 8, 2 }), 4, time.Minute},
		{"more rounds than there are", state(func(o *fleet.OrderState) { o.Rounds = 28 }), 4, 7 * 20 * time.Second},
		{"two at once", state(func(o *fleet.OrderState) { o.AtOnce = 2 }), 4, 14 * 20 * time.Second},
		{"a collective", state(func(o *fleet.OrderState) { o.Parts, o.Caps.Time = 1, 5*time.Minute }), 1, 5 * time.Minute},
		{"not begun", state(func(o *fleet.OrderState) { o.Parts, o.State = 0, fleet.Waiting }), 1, time.Minute},
		{
			"later", state(func(o *fleet.OrderState) { o.Parts, o.State, o.Next = 0, fleet.Waiting, now.Add(time.Hour) }), 1,
			time.Hour,
		},
	} {
		if r, m := perRound(c.o), mostTime(c.o, now); r != c.round || m != c.most {
			t.Errorf("%s: %d a round, %v at most", c.name, r, m)
		}
	}
}

// TestOnlyTwice holds a second verdict against the first.
func TestOnlyTwice(t *testing.T) {
	reply := func(good []fleet.Name, bad ...fleet.Out) *fleet.OrderReply {
		return &fleet.OrderReply{Verdict: &fleet.Verdict{Healthy: good, Unhealthy: bad}}
	}
	a, b := fleet.Out{Node: "a", Why: "slow"}, fleet.Out{Node: "b", Why: "slower"}
	first, second := reply([]fleet.Name{"c"}, a, b), reply([]fleet.Name{"a"}, b, fleet.Out{Node: "c", Why: "now"})
	got := onlyTwice(first, second).Verdict
	want := &fleet.Verdict{
		Healthy: []fleet.Name{"a", "c"}, Unhealthy: []fleet.Out{b},
		Notes: []string{"c was slow in one of two measurements: now"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	silent := reply(nil, a)
	silent.Out = []fleet.Out{a}
	if !measuredSlow(first) || measuredSlow(silent) || measuredSlow(&fleet.OrderReply{}) {
		t.Error("who is silent is not measured again, who is slow is")
	}
}
