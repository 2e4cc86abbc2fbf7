package report

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// TestPlaceOfCollectives: a size that was measured out of place and in place has two rows that differ.
func TestPlaceOfCollectives(t *testing.T) {
	s := &result.Sweep{
		Op: coll.AllReduce, Ranks: 4,
		Points: []result.Point{{Size: unit.MiB, Algo: "ring", Out: result.Time(100), In: result.Time(100)}},
	}
	var b bytes.Buffer
	if err := Print(&b, TextOptions{}, orderFigures, &query.OrderDoc{Results: result.Sweeps{s}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "place") || strings.Fields(lines[1])[4] != "out" ||
		strings.Fields(lines[2])[4] != "in" {
		t.Errorf("%s", b.String())
	}
}

// TestReasonsAreShown: the summary of a sweep counts every part, and says why some were not measured.
func TestReasonsAreShown(t *testing.T) {
	got := &fleet.OrderReply{
		OrderState: fleet.OrderState{Measured: 3, Failed: 2, LeftOut: 1},
		Verdict:    &fleet.Verdict{Healthy: []fleet.Name{"n2"}, Unmeasured: []fleet.Name{"n1", "n3"}},
	}
	got.ID, got.State, got.Parts = "9b3d", fleet.Done, 6
	got.Reasons = []fleet.Reason{
		{Parts: 2, Nodes: []fleet.Name{"n1"}, Why: "port 7643 is in use"},
		{Parts: 1, LeftOut: true, Nodes: []fleet.Name{"n3", "n4"}, Why: "does not answer"},
	}
	var b bytes.Buffer
	if err := Print(&b, TextOptions{}, Order, &query.OrderDoc{OrderReply: got}); err != nil {
		t.Fatal(err)
	}
	want := `9b3d: done, 3 of 6 parts measured, 2 failed, 1 left out
2 parts failed: n1: port 7643 is in use
1 part left out: n[3-4]: does not answer
healthy: n2
not measured: n[1,3]
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}

// TestEveryText prints a schedule as it was given.
func TestEveryText(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"10s": 10 * time.Second, "90s": 90 * time.Second, "30min": 30 * time.Minute, "90min": 90 * time.Minute,
		"1h": time.Hour, "36h": 36 * time.Hour, "1d": 24 * time.Hour, "30d": 720 * time.Hour,
	} {
		if got := everyText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestOrderProgress(t *testing.T) {
	now := time.Now()
	later := query.OrderProgress{}
	later.State, later.Next = fleet.Waiting, now.Add(time.Hour)
	soon, runs := later, later
	soon.Next = now
	runs.State, runs.Parts = fleet.Running, 28
	for want, p := range map[string]query.OrderProgress{
		"waiting; sweep 1 starts at " + clockText(later.Next): later,
		"queued": soon,
		"running, sweep 0: 0 of 28 parts measured, 0 failed":  runs,
		"the server answers again":                            {Back: true},
		"no answer: EOF; asked again until " + clockText(now): {Gone: io.EOF, Until: now},
	} {
		if got := OrderProgress(p, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
