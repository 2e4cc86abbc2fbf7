package step

import (
	"fmt"
	"slices"
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
		if strings.HasPrefix(name, measuredStep) && len(byKind([]cluster.Calibrated{x})) == 0 {
			return nil,
				fmt.Errorf("calibration of %s: %s is %g; expected a value of %g to %g, and a name that ends in \", N%s\", N "+
					"from 0 to 100", c.Name, x.Name, x.Value, 1.0/MostOff, 1.0*MostOff, exposedWord)
		}
		if !own || strings.HasPrefix(name, measuredStep) {
			continue
		}
		i := slices.IndexFunc(FigureTable(), func(f Figure) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("calibration of %s: no figure of steps is called %s; `busbar calibrate --live` writes the "+
				"names", c.Name, x.Name)
		}
		if at := FigureTable()[i]; !(x.Value >= at.Least && x.Value <= at.Most) {
			return nil, fmt.Errorf("calibration of %s: %s is %g; expected %g to %g", c.Name, x.Name, x.Value, at.Least,
				at.Most)
		}
		f[i] = x.Value
	}
	return f, nil
}
