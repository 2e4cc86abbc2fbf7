package calibrate

import (
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/predict"
	"busbar.dev/sim"
)

// Every other size of a sweep teaches the rest: the error on sizes that the fit did
// not see falls, on a cluster that sim.Fitted was not fitted on either.
func TestHeldOutSizes(t *testing.T) {
	all := published(t)
	var in, out []*truth.Case
	for _, c := range all {
		if c.Sweep.ID == "nf5688-h800-1x8-broadcast" {
			out = append(out, c)
		} else if c.Machine() != "nf5688/h800" {
			in = append(in, c)
		}
	}
	p := Published(&Problem{Cases: in})
	p.Quick = true
	a, err := p.Solve()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Cluster(out, &a.Figures)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("all: median %.3f to %.3f, p90 %.3f to %.3f; held out: median %.3f to %.3f, p90 %.3f to %.3f", s.Before.Median, s.After.Median, s.Before.P90, s.After.P90,
		s.HeldBefore.Median, s.HeldAfter.Median, s.HeldBefore.P90, s.HeldAfter.P90)
	for _, m := range s.Moved {
		t.Logf("%s %.4g to %.4g (%.4g to %.4g) %s", m.Name, m.Was, m.Value, m.Low, m.High, m.Unit)
	}
	t.Log("loose", s.Loose)
	if s.HeldAfter.Median > 0.7*s.HeldBefore.Median {
		t.Errorf("on sizes that were held out the median error goes from %.3f to %.3f only", s.HeldBefore.Median, s.HeldAfter.Median)
	}
}

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
