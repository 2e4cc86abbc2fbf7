package calibrate

import (
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
)

// Few points move figures by what is known about them: within a factor of two and inside of their ranges.
func TestFewPoints(t *testing.T) {
	for _, c := range published(t) {
		if c.Sweep.ID == "dgxc-h100x8-all_reduce" {
			fewPoints(t, c)
		}
	}
}

func fewPoints(t *testing.T, c *truth.Case) {
	t.Helper()
	some := false
	for _, n := range []int{1, 2, 3, 5, 8} {
		s, err := Cluster([]*truth.Case{c.Pick(func(i int) bool { return i < n })}, sim.Fitted())
		if err != nil || s.Points != n {
			t.Fatalf("%v: %d points", err, s.Points)
		}
		for _, m := range s.Moved {
			if m.Value > 2.001*m.Was || m.Value < m.Was/2.001 || m.Value < m.Low || m.Value > m.High {
				t.Errorf("%d points: %+v", n, m)
			}
			some = true
		}
		if cal := s.Calibration(nil, "x"); n < fewHeld && len(cal.Measured) > 0 {
			t.Errorf("%d points narrow error bars: %+v", n, cal.Measured)
		}
	}
	if !some {
		t.Error("nothing moved")
	}
}
