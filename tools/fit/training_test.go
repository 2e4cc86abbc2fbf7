package main

import (
	"os"
	"path/filepath"
	"testing"

	"busbar.dev/internal/test/corpus"
	"busbar.dev/step"
)

// TestTraining holds steps to published runs.
func TestTraining(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(corpus.Dir(t), "truth", "training.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	runs := readRuns(data)
	if len(runs) != 627 {
		t.Fatalf("%d runs", len(runs))
	}
	if testing.Short() {
		kept := runs[:0]
		for i := 0; i < len(runs); i += 5 {
			kept = append(kept, runs[i])
		}
		runs = kept
	}
	rows, left := predictRuns(runs, step.Default())
	for _, s := range splitRuns(rows, func(r *runRow) string { return r.Cluster }) {
		t.Logf("%-40s %3d runs: median %4.1f%%, 90%% %5.1f%%, predicted over measured %.2f", s.Name, s.Points, 100*s.Median,
			100*s.P90, s.Bias)
	}
	for _, l := range left {
		if l.Gradable {
			t.Logf("not predicted: %s: %s", l.ID, l.Reason)
		}
	}
	s := rateRuns("all", rows)
	t.Logf("%d runs: median %.1f%%, 90th percentile %.1f%%; averaged over clusters %.1f%%, %.1f%%", s.Points, 100*s.Median,
		100*s.P90, 100*s.MachineMedian, 100*s.MachineP90)
	if s.Median > 0.1 || s.P90 > 0.25 {
		t.Errorf("median %.3f, 90th percentile %.3f; expected at most 0.1 and 0.25", s.Median, s.P90)
	}
}
