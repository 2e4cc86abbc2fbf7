package calibrate

import (
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
)

// Few points move few figures: fewer than half as many, and one point one only.
func TestFewPoints(t *testing.T) {
	for _, c := range published(t) {
		if c.Sweep.ID != "dgxc-h100x8-all_reduce" {
			continue
		}
		for n := 1; n <= min(12, len(c.Ops)); n++ {
			part := c.Pick(func(i int) bool { return i < n })
			s, err := Cluster([]*truth.Case{part}, sim.Fitted())
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Moved) > 1 && 2*len(s.Moved) >= n {
				t.Errorf("%d points moved %d figures", n, len(s.Moved))
			}
			for _, m := range s.Moved {
				if n > 1 && m.Points < 2 {
					t.Errorf("%s moved, which %d points depend on", m.Name, m.Points)
				}
			}
			if cal := s.Calibration(nil, "x"); n < fewHeld && len(cal.Measured) > 0 {
				t.Errorf("%d points narrow error bars: %+v", n, cal.Measured)
			}
		}
	}
}
