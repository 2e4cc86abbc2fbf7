package predict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/words"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Figures are the model's figures for a cluster: the fitted ones, and in their
// place those that the cluster's calibration has.
func Figures(c *cluster.Cluster) (*sim.Figures, error) {
	f := sim.Fitted()
	if c.Calibration == nil {
		return f, nil
	}
	for _, x := range own(c.Calibration) {
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

// own are the figures of a calibration that are about collectives.
func own(c *cluster.Calibration) []cluster.Calibrated {
	return slices.DeleteFunc(slices.Clone(c.Figures),
		func(x cluster.Calibrated) bool { return strings.HasPrefix(x.Name, cluster.StepFigure) })
}

// Origin says where the figures of predictions on a cluster come from.
func Origin(c *cluster.Cluster) string {
	const usual = "fitted on published sweeps"
	if c.Calibration == nil || len(own(c.Calibration))+len(c.Calibration.Residuals) == 0 {
		return usual
	}
	from := map[string]bool{}
	var list []string
	for _, x := range own(c.Calibration) {
		if x.Source != "" && !from[x.Source] && len(list) < 3 {
			from[x.Source] = true
			list = append(list, x.Source)
		}
	}
	s := fmt.Sprintf("%s; %d figures calibrated on this cluster", usual, len(own(c.Calibration)))
	if n := len(c.Calibration.Residuals); n > 0 {
		s += " and " + words.Plural(n, "curve") + " of what they leave"
	}
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
	if c == nil || len(own(c))+len(c.Residuals) == 0 {
		return margin
	}
	for _, m := range c.Measured {
		if m.Op == op.Kind.String() && m.Class == class && op.Bytes >= m.From && op.Bytes <= m.To && m.Points > 0 {
			return min(margin, max(1.05, 1+1.5*m.Error, 1+m.Noise, math.Sqrt(margin)))
		}
	}
	return margin
}

// MeasuredMargin is the error bar, as a factor, of a collective that was itself measured on this layout and in this
// range of sizes: only the error on points that were left out and the noise count. False where the calibration is of
// other layouts, or there is none.
func (p *Predictor) MeasuredMargin(op coll.Op) (float64, bool) {
	c := p.Cluster.Calibration
	if c == nil || !slices.ContainsFunc(c.Residuals, func(r cluster.Residual) bool {
		return r.Class == p.class() && r.Layout == p.Shape() && r.Op == op.Kind.String()
	}) {
		return 0, false
	}
	for _, m := range c.Measured {
		if m.Op == op.Kind.String() && m.Class == p.class() && op.Bytes >= m.From && op.Bytes <= m.To && m.Points > 0 {
			return max(1.05, 1+1.5*m.Error, 1+m.Noise), true
		}
	}
	return 0, false
}

// otherLayout is how much of what a calibration leaves holds for other layouts of the same class. Of other collectives
// it says nothing beyond the figures: with publishers left out, a part of it makes them worse.
const otherLayout = 0.4

// correct multiplies a prediction by what the cluster's calibration leaves.
func (p *Predictor) correct(run *result.Run) {
	f := p.residual(run.Op)
	if f == 1 {
		return
	}
	was := *run
	scale := func(t *unit.Time) { *t = unit.Time(float64(*t) * f) }
	scale(&run.Parts.Launch)
	scale(&run.Parts.Latency)
	scale(&run.Parts.Sync)
	scale(&run.Parts.Moving)
	run.Time = run.Parts.Launch + run.Parts.Latency + run.Parts.Sync + run.Parts.Moving
	for _, part := range [][2]unit.Time{
		{was.Parts.Launch, run.Parts.Launch}, {was.Parts.Latency, run.Parts.Latency}, {was.Parts.Sync, run.Parts.Sync},
	} {
		// What limits it was put into words before.
		run.Limit.Text = strings.Replace(run.Limit.Text, fmt.Sprintf("%v of %v;", part[0], was.Time),
			fmt.Sprintf("%v of %v;", part[1], run.Time), 1)
	}
}

// residual is the factor of a call: by the curves that are about calls most like it.
func (p *Predictor) residual(op coll.Op) float64 {
	if p.Cluster.Calibration == nil || len(p.Cluster.Calibration.Residuals) == 0 {
		return 1
	}
	layout := p.Shape()
	best, sum, n := 0.0, 0.0, 0.0
	for i := range p.Cluster.Calibration.Residuals {
		r := &p.Cluster.Calibration.Residuals[i]
		like := 1.0
		if r.Class != p.class() || r.Op != op.Kind.String() {
			continue
		}
		if r.Layout != layout {
			like *= otherLayout
		}
		switch {
		case like > best:
			best, sum, n = like, r.At(op.Bytes), 1
		case like == best:
			sum, n = sum+r.At(op.Bytes), n+1
		}
	}
	if n == 0 {
		return 1
	}
	return math.Exp(best * sum / n)
}

// Shape is nodes x GPUs of each, where they are equal.
func (p *Predictor) Shape() string {
	on := map[int]int{}
	for _, r := range p.Layout {
		on[r.Host]++
	}
	return fmt.Sprintf("%dx%d", len(on), len(p.Layout)/len(on))
}
