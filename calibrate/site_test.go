package calibrate

import (
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/predict"
	"busbar.dev/sim"
)

// A calibration that is written and applied gives the same predictions.
func TestCalibrationApplies(t *testing.T) {
	for _, c := range published(t) {
		if c.Sweep.ID != "dgxc-h100x8-all_reduce" {
			continue
		}
		s, err := Cluster([]*truth.Case{c}, sim.Fitted())
		if err != nil {
			t.Fatal(err)
		}
		cl := *c.Predictor.Cluster
		cl.Calibration = s.Calibration(nil, "sweep.log")
		f, err := predict.Figures(&cl)
		if err != nil {
			t.Fatal(err)
		}
		old := c.Predictor.Cluster
		c.Predictor.Cluster = &cl
		rows, err := c.Predict(f)
		c.Predictor.Cluster = old
		if err != nil {
			t.Fatal(err)
		}
		if got := truth.Rate(rows); got.Median != s.After.Median || got.Median >= s.Before.Median {
			t.Errorf("median error %.4f before, %.4f in the fit, %.4f applied", s.Before.Median, s.After.Median, got.Median)
		}
	}
}
