package main

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// One run of a cluster in turn is kept as calibrate --step keeps it, and predicts the others of its kind there. The
// form was chosen on these runs, and most of them are in the fit.
func TestOneMeasuredStep(t *testing.T) {
	by := map[string][]*runRow{}
	for _, name := range []string{"training", "training-2", "training-3", "training-nanotron", "ultrascale"} {
		data, err := os.ReadFile(filepath.Join(corpus.Dir(t), "truth", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		runs := slices.DeleteFunc(readRuns(data),
			func(r *training) bool { return name == "ultrascale" && r.Hardware.Nodes > 2 })
		rows, _ := predictRuns(runs, step.Default())
		for _, r := range rows {
			key := r.Cluster + ", " + step.Kind(r.Step.Job(), r.GPU)
			by[key] = append(by[key], r)
		}
	}
	var before, after, bars []float64
	in, all, worse := 0.0, 0.0, 0
	for _, key := range slices.Sorted(maps.Keys(by)) {
		list := by[key]
		if len(list) < 3 {
			continue
		}
		var was, is []float64
		for i, one := range list {
			if off := one.Seconds() / one.Predicted; off < 0.25 || off > 4 {
				continue // calibrate refuses it
			}
			g := measured(t, one)
			for k, r := range list {
				if k == i {
					continue
				}
				times := g.Measured(r.Step.Job(), float64(r.Result.Exposed/r.Result.Step))
				ratio := r.Predicted * times / r.Seconds()
				bar := g.Margin(r.Step.Job())
				if bar > r.Margin || !g.HasMeasured(r.Step.Job()) {
					t.Fatalf("%s: bar ×%.2f by a measured step, ×%.2f without", key, bar, r.Margin)
				}
				was, is, bars = append(was, r.APE), append(is, math.Abs(ratio-1)), append(bars, bar/r.Margin)
				weight := 1 / float64(len(list)*(len(list)-1)) // of a kind with many runs no more than of one with few
				if all += weight; max(ratio, 1/ratio) <= bar {
					in += weight
				}
			}
		}
		before, after = append(before, stats.Median(was)), append(after, stats.Median(is))
		if after[len(after)-1] > 1.2*before[len(before)-1] {
			worse++
		}
		t.Logf("%5.1f%% before, %5.1f%% after: %d runs of %s", 100*stats.Median(was), 100*stats.Median(is), len(list), key)
	}
	t.Logf("%d kinds: median %.1f%% before, %.1f%% after; mean %.1f%%, %.1f%%; %.0f%% in the bar, which is %.2f of the "+
		"one before; %d kinds off by a fifth more",
		len(before), 100*stats.Median(before), 100*stats.Median(after), 100*mean(before), 100*mean(after), 100*in/all,
		stats.Median(bars), worse)
	if len(before) < 30 || stats.Median(after) > 0.08 || mean(after) > 0.85*mean(before) || in < 0.85*all {
		t.Errorf("%d kinds of jobs: median error %.3f before, %.3f after, %.2f in the bar; expected 30 kinds, 0.08 and 0.85",
			len(before), stats.Median(before), stats.Median(after), in/all)
	}
}

// measured is the GPU of a run where that is the one measured step.
func measured(t *testing.T, r *runRow) *step.GPU {
	t.Helper()
	g, err := step.NewGPU(r.GPU, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	kept := r.Step.Took(g, r.Result, unit.Span(r.Seconds()), "published")
	g.Measure(&cluster.Cluster{Calibration: &cluster.Calibration{Figures: []cluster.Calibrated{kept}}})
	return g
}
