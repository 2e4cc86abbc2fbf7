package step_test

import (
	"testing"

	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload/pipeline"
)

// A pipeline's schedules cost what their papers say of each other: in time, and in memory.
func TestSchedules(t *testing.T) {
	got := map[pipeline.Schedule]*step.Result{}
	for _, s := range pipeline.Schedules() {
		split := "tp=4,pp=4"
		if s == pipeline.Interleaved {
			split += ",vpp=2"
		}
		p, g := prepared(t, "dgx-h100", "h100", "llama2-13b", split, 2, 8, 1, 16)
		j := *p.Job()
		j.Schedule = s
		if err := j.Check(); err != nil {
			t.Fatal(err)
		}
		x := step.Prepare(&j, p.Fabric())
		r, err := x.Price(g)
		if err != nil {
			t.Fatal(s, err)
		}
		bars, err := x.Timeline(g)
		if err != nil {
			t.Fatal(s, err)
		}
		kinds := map[step.BarKind]int{}
		for _, b := range bars {
			kinds[b.Kind]++
		}
		passes := 4 * 16
		if s == pipeline.Interleaved || s == pipeline.ZeroBubbleV {
			passes *= 2
		}
		weights := 0
		if s.Splits() {
			weights = passes
		}
		if kinds['f'] != passes || kinds['b'] != passes || kinds['w'] != weights || kinds['u'] != 4 {
			t.Errorf("%s: bars %v", s, kinds)
		}
		got[s] = r
		t.Logf("%-12s %.0f ms, bubble %.0f ms, activations %.1f GB", s, r.Step*1e3, r.Bubble*1e3, r.Memory.Activations/1e9)
	}
	time := func(s pipeline.Schedule) unit.Span { return got[s].Step }
	held := func(s pipeline.Schedule) unit.Volume { return got[s].Memory.Activations }
	plain := pipeline.Alternate
	// Where the last stage is the fullest, what the head takes counts too.
	about := func(a, b unit.Volume) bool { return a >= b && a < 1.05*b }
	switch {
	case !about(held(pipeline.GPipe), 4*held(plain)): // 16 micro-batches against 4
		t.Errorf("GPipe holds %g, 1F1B %g", held(pipeline.GPipe), held(plain))
	case !about(held(pipeline.ZeroBubble), held(plain)) || !about(held(pipeline.ZeroBubbleV), held(plain)) ||
		held(pipeline.Interleaved) <= held(plain):
		t.Error("ZB-H1 and ZB-V hold as much as 1F1B, an interleaved schedule more")
	case !about(held(pipeline.ZeroBubble2), 7*held(plain)/4):
		t.Errorf("ZB-H2 holds %g, 1F1B %g", held(pipeline.ZeroBubble2), held(plain))
	case !(time(pipeline.ZeroBubbleV) < time(pipeline.ZeroBubble2) &&
		time(pipeline.ZeroBubble2) < time(pipeline.ZeroBubble) && time(pipeline.ZeroBubble) < time(plain) &&
		time(pipeline.Interleaved) < time(plain)):
		t.Error("the bubble is not smaller where the papers say so")
	}
}
