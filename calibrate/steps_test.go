package calibrate

import (
	"os"
	"path/filepath"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/step"
)

// The second collection with every cluster left out of the fit, as busbar calibrate --cross scores it, stays within what docs/accuracy.md says.
func TestStepsLeftOut(t *testing.T) {
	if os.Getenv("BUSBAR_LONG") == "" {
		t.Skip("fits the model to all published runs; set BUSBAR_LONG")
	}
	var runs []*truth.Training
	recent := map[string]bool{}
	for _, name := range []string{"training.jsonl", "training-2.jsonl"} {
		f, err := os.Open(filepath.Join(corpus.Dir(t), "truth", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		list, err := truth.Runs(name, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			recent[r.ID] = name == "training-2.jsonl"
		}
		runs = append(runs, list...)
	}
	rows, _ := truth.PredictRuns(runs, step.Guess())
	fit, err := FitSteps(rows, step.Guess())
	if err != nil {
		t.Fatal(err)
	}
	if err := fit.Cross(ByCluster); err != nil {
		t.Fatal(err)
	}
	var scored []*truth.RunRow
	for _, r := range rows {
		if recent[r.ID] {
			scored = append(scored, r)
		}
	}
	s, c := truth.RateRuns("", scored), truth.RateChoices(scored)
	if s.Median > 0.12 || s.P90 > 0.4 || s.ClusterMedian > 0.18 || 100*c.Right < 65*c.Pairs || s.Covered < 0.8 {
		t.Errorf("clusters left out: median %.3f, 90th percentile %.3f, averaged over clusters %.3f, %d of %d pairs in order, %.3f inside bars; expected at most 0.12, 0.4 and 0.18, and 65%% and 80%%", s.Median, s.P90, s.ClusterMedian, c.Right, c.Pairs, s.Covered)
	}
}
