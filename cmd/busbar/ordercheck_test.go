package main

import (
	"testing"

	"busbar/fleet"
	"busbar/fleet/hub"

	"github.com/google/go-cmp/cmp"
)

// TestOnlyTwice holds a second verdict against the first.
func TestOnlyTwice(t *testing.T) {
	reply := func(good []fleet.Name, bad ...fleet.Out) *hub.OrderReply {
		return &hub.OrderReply{Verdict: &hub.Verdict{Good: good, Bad: bad}}
	}
	a, b := fleet.Out{Node: "a", Why: "slow"}, fleet.Out{Node: "b", Why: "slower"}
	first, second := reply([]fleet.Name{"c"}, a, b), reply([]fleet.Name{"a"}, b, fleet.Out{Node: "c", Why: "now"})
	got := onlyTwice(first, second).Verdict
	want := &hub.Verdict{Good: []fleet.Name{"a", "c"}, Bad: []fleet.Out{b}, Notes: []string{"c was slow in one of two measurements: now"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	silent := reply(nil, a)
	silent.Out = []fleet.Out{a}
	if !measuredSlow(first) || measuredSlow(silent) || measuredSlow(&hub.OrderReply{}) {
		t.Error("who is silent is not measured again, who is slow is")
	}
}
