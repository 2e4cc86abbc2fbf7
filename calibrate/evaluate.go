package calibrate

import (
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/sim"
)

// Evaluate calibrates with some points and predicts others of the same machine: by the figures of before, by fitted figures
// alone, by the curve alone, and by what a calibration keeps, which is nothing where it is no better.
func Evaluate(in, out []*truth.Case, start *sim.Figures) (rows [4][]truth.Row, err error) {
	x, err := (&Site{}).fit(in, start)
	if err != nil {
		return rows, err
	}
	site, err := Cluster(in, start)
	if err != nil {
		return rows, err
	}
	at, err := truth.Rows(in, start)
	if err != nil {
		return rows, err
	}
	if !site.Better() {
		site.figures, site.Residuals = *start, nil
	}
	curve, _ := keep(curves(in, logs(at)))
	for i, way := range []struct {
		f    *sim.Figures
		list []cluster.Residual
	}{{start, nil}, {x, nil}, {start, curve}, {&site.figures, site.Residuals}} {
		if rows[i], err = corrected(out, way.f, way.list); err != nil {
			return rows, err
		}
	}
	return rows, nil
}
