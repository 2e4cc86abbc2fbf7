package main

import (
	"bytes"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// TestPlaceOfCollectives: a size that was measured out of place and in place has two rows that differ.
func TestPlaceOfCollectives(t *testing.T) {
	s := &result.Sweep{Op: coll.AllReduce, Ranks: 4, Points: []result.Point{{Size: unit.MiB, Algo: "ring", Out: result.Time(100), In: result.Time(100)}}}
	var b bytes.Buffer
	if err := (&figures{Results: result.Sweeps{s}}).print(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "place") || strings.Fields(lines[1])[4] != "out" || strings.Fields(lines[2])[4] != "in" {
		t.Errorf("%s", b.String())
	}
}

// TestReasonsAreShown: the summary of a sweep counts every part, and says why some were not measured.
func TestReasonsAreShown(t *testing.T) {
	got := &fleet.OrderReply{OrderState: fleet.OrderState{Good: 3, Bad: 2, Left: 1}, Verdict: &fleet.Verdict{Good: []fleet.Name{"n2"}, Unmeasured: []fleet.Name{"n1", "n3"}}}
	got.ID, got.State, got.Parts = "9b3d", fleet.Done, 6
	got.Reasons = []fleet.Reason{
		{Parts: 2, Nodes: []fleet.Name{"n1"}, Why: "port 7643 is in use"},
		{Parts: 1, Left: true, Nodes: []fleet.Name{"n3", "n4"}, Why: "does not answer"},
	}
	var b bytes.Buffer
	if err := printOutcome(&b, got); err != nil {
		t.Fatal(err)
	}
	want := `9b3d: done, 3 of 6 parts measured, 2 failed, 1 left out
2 parts failed: n1: port 7643 is in use
1 part left out: n[3-4]: does not answer
good: n2
not measured: n[1,3]
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}
