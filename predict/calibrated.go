package predict

import (
	"fmt"
	"math"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/sim"
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

// calibratedMargin narrows a margin where the cluster was measured: the same
// collective on the same class of layouts, within the sizes that were measured. It
// goes no further than the error on points that were left out of the fit and the
// noise of the measurements allow, nor than half the way, in logarithms: other
// layouts of the class may be farther off than the measured one.
func calibratedMargin(margin float64, c *cluster.Calibration, class string, op coll.Op) float64 {
	if c == nil || len(c.Figures) == 0 {
		return margin
	}
	for _, m := range c.Measured {
		if m.Op == op.Kind.String() && m.Class == class && op.Bytes >= m.From && op.Bytes <= m.To && m.Points > 0 {
			return min(margin, max(1.05, 1+1.5*m.Error, 1+m.Noise, math.Sqrt(margin)))
		}
	}
	return margin
}
