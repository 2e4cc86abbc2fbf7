package step

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
)

// Calibrated are the figures for a cluster: those in use, and in their place those that its calibration measured of its
// GPUs.
func Calibrated(c *cluster.Cluster) (*Figures, error) {
	f := Default()
	if c.Calibration == nil {
		return f, nil
	}
	for _, x := range c.Calibration.Figures {
		name, own := strings.CutPrefix(x.Name, cluster.StepFigure)
		if !own || strings.HasPrefix(name, measuredStep) {
			continue
		}
		i, ok := byName(name)
		if !ok {
			return nil, fmt.Errorf("calibration of %s: no figure of steps is called %s; `busbar calibrate --live` writes the "+
				"names", c.Name, x.Name)
		}
		if _, lo, hi := Range(i); !(x.Value >= lo && x.Value <= hi) {
			return nil, fmt.Errorf("calibration of %s: %s is %g; expected %g to %g", c.Name, x.Name, x.Value, lo, hi)
		}
		f[i] = x.Value
	}
	return f, nil
}

func byName(name string) (int, bool) {
	for i := range nFigures {
		if Name(i) == name {
			return i, true
		}
	}
	return 0, false
}
