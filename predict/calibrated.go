package predict

import (
	"fmt"
	"math"
	"strings"

	"busbar/cluster"
	"busbar/sim"
	"busbar/unit"
)

// Figures are the model's figures for a cluster: the fitted ones, and in their
// place those that the cluster's calibration has.
func Figures(c *cluster.Cluster) (*sim.Figures, error) {
	f := sim.Fitted()
	if c.Calibration == nil {
		return f, nil
	}
	for _, x := range c.Calibration.Figures {
		i, err := sim.FigureByName(x.Name)
		if err != nil {
			return nil, fmt.Errorf("calibration of %s: %w; `busbar calibrate` writes the names", c.Name, err)
		}
		_, lo, hi := sim.FigureRange(i)
		if !(x.Value >= lo && x.Value <= hi) {
			return nil, fmt.Errorf("calibration of %s: %s is %g; expected %g to %g", c.Name, x.Name, x.Value, lo, hi)
		}
		f[i] = x.Value
	}
	return f, nil
}

// Origin says where the figures of predictions on a cluster come from.
func Origin(c *cluster.Cluster) string {
	const usual = "fitted on published sweeps"
	if c.Calibration == nil || len(c.Calibration.Figures) == 0 {
		return usual
	}
	from := map[string]bool{}
	var list []string
	for _, x := range c.Calibration.Figures {
		if x.Source != "" && !from[x.Source] && len(list) < 3 {
			from[x.Source] = true
			list = append(list, x.Source)
		}
	}
	s := fmt.Sprintf("%s; %d figures calibrated on this cluster", usual, len(c.Calibration.Figures))
	if len(list) > 0 {
		s += " (" + strings.Join(list, ", ") + ")"
	}
	return s
}

// calibratedMargin narrows a margin by what calibration on the same cluster left of
// the error. Layouts and sizes that were not measured may be farther off than those
// that were, so it goes no further than half the way there, in logarithms.
func calibratedMargin(margin float64, c *cluster.Calibration, size unit.Bytes) float64 {
	if c == nil || c.Points == 0 || len(c.Figures) == 0 || size == 0 {
		return margin
	}
	left := max(1.05, 1+1.5*c.P90)
	return min(margin, max(left, math.Sqrt(margin)))
}
