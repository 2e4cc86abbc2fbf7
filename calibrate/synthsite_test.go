package calibrate

import (
	"slices"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/sim"
)

// A site whose network is slower and whose launches are later than usual is found to be so: the figures that differ
// move to their values, errors fall on sizes that the fit did not see too, and the calibration applies.
func TestSyntheticSite(t *testing.T) {
	by := map[string]float64{"infiniband_share": 0.75, "hopper.launch": 1.8}
	want := figures(t, by)
	cases := synthetic(t, want, 0.005, 0)
	s, err := Cluster(cases, sim.Fitted())
	if err != nil {
		t.Fatal(err)
	}
	if !s.Better() || s.After.Median > 0.02 || s.After.Median > s.Before.Median/3 ||
		s.HeldOut.After.Median > s.HeldOut.Before.Median/2 || s.Points != 20 {
		t.Errorf("before %+v, after %+v; held out %+v, %+v", s.Before, s.After, s.HeldOut.Before, s.HeldOut.After)
	}
	// A port that is slower and channels that are slower through it are hard to tell apart, like a launch and the hops
	// behind it.
	k := slices.IndexFunc(s.Moved, func(m Moved) bool { return m.Name == "infiniband_share" || m.Name == "net_lane" })
	if k < 0 {
		t.Errorf("neither infiniband_share nor net_lane moved; moved %+v", s.Moved)
	} else if m := s.Moved[k]; m.Value >= m.Was || m.Value < m.Low || m.Value > m.High {
		t.Errorf("%+v; made with a slower network", m)
	}
	n := 0
	for _, z := range s.Sizes {
		if n += z.Before.Points; z.Before.Points != z.After.Points || z.Name == "" {
			t.Errorf("%+v", z)
		}
	}
	if n != s.Points {
		t.Errorf("%d points by size, want %d", n, s.Points)
	}

	c := *cases[0].Predictor.Cluster
	c.Calibration = s.Calibration(nil, "synthetic.jsonl")
	if len(c.Calibration.Measured) != 2 || c.Calibration.Measured[0].Points == 0 || c.Calibration.Measured[0].Error > 0.2 {
		t.Errorf("%+v", c.Calibration.Measured)
	}
	f, err := predict.Figures(&c)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := corrected(cases, f, c.Calibration.Residuals)
	if err != nil {
		t.Fatal(err)
	}
	if got := truth.Rate(rows); got.Median != s.After.Median {
		t.Errorf("median error %.4f in the fit, %.4f applied", s.After.Median, got.Median)
	}
	// What an earlier calibration said about other figures stays.
	old := *c.Calibration
	old.Figures = slices.Clone(old.Figures)
	old.Figures[0].Name = "efa_share"
	if next := s.Calibration(&old, "x"); len(next.Figures) != len(c.Calibration.Figures)+1 {
		t.Errorf("%d figures, want one more than %d", len(next.Figures), len(c.Calibration.Figures))
	}
}

// Where predictions are right already, nothing moves that matters and nothing is called better than it was; a run that
// is five times as slow as any host is reported as figures at their ends, or not explained at all.
func TestSyntheticSiteUnchanged(t *testing.T) {
	s, err := Cluster(synthetic(t, sim.Fitted(), 0, 0), sim.Fitted())
	if err != nil || len(s.Moved) != 0 || s.Better() || s.After.Median > 1e-6 {
		t.Errorf("%v: moved %+v, median %.4f", err, s.Moved, s.After.Median)
	}
	if cal := s.Calibration(nil, "x"); len(cal.Figures) != 0 || cal.Measured != nil {
		t.Errorf("%+v", cal)
	}
	if _, err := Cluster(nil, sim.Fitted()); err == nil {
		t.Error("no points were fitted")
	}
	slow := synthetic(t, sim.Fitted(), 0, 0)
	for _, c := range slow {
		for i := range c.Times {
			c.Times[i] *= 12
		}
	}
	if s, err = Cluster(slow, sim.Fitted()); err != nil || len(s.Ends) == 0 && s.After.Median < 0.2 {
		t.Errorf("%v: ends %v, median %.3f", err, s.Ends, s.After.Median)
	}
}

// Sizes that are held out are predicted by the other sizes alone: their own times do not matter.
func TestSyntheticHeldOut(t *testing.T) {
	c := synthetic(t, figures(t, map[string]float64{"hopper.launch": 1.8, "infiniband_share": 0.75}), 0.01, 0)[0]
	odd := func() (list []int64) {
		s, err := Cluster([]*truth.Case{c}, sim.Fitted())
		if err != nil || len(s.held) != len(c.Ops) {
			t.Fatalf("%v: %d points held out of %d", err, len(s.held), len(c.Ops))
		}
		for i := range s.held {
			if size := slices.IndexFunc(c.Ops, func(o coll.Op) bool { return o.Bytes == s.held[i].Size() }); size%2 == 1 {
				list = append(list, int64(s.held[i].Predicted))
			}
		}
		return list
	}
	want := odd()
	for i := range c.Times {
		if i%2 == 1 {
			c.Times[i] *= 2
		}
	}
	if got := odd(); len(want) != 5 || !slices.Equal(got, want) {
		t.Errorf("%v, were %v", got, want)
	}
}

// The same without anybody's measurements.
func TestSyntheticFewPoints(t *testing.T) {
	fewPoints(t, synthetic(t, figures(t, map[string]float64{"hopper.launch": 1.8, "infiniband_share": 0.75}), 0.01, 0)[0])
}
