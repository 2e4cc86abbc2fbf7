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
