package step

import (
	"fmt"
	"math"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// measuredStep begins the names of figures that are how many times as long a step of the user's own took as predicted,
// before the kind of jobs that it holds for.
const measuredStep = "measured "

// Kind is what jobs of a cluster have in common of which one measured step tells how long others take: the framework
// with its kernels, what kind of model it trains, and the precision.
func Kind(j *workload.Job, m hardware.GPUModel) string {
	name := "no framework"
	if j.Framework != nil {
		name = j.Framework.Name
	}
	return fmt.Sprintf("%s, %s kernels, %s, %s", name, j.Kernels, Class(j, m), j.Precision)
}

// counted is the share of the difference of one measured step, as a logarithm, that others are expected to have: of 65
// kinds of published jobs with three runs and more, one run in turn as the measured one, others were off by 6% in the
// median, by 11% without it.
const counted = 0.8

// measuredWide is the factor within which steps of a kind with a measured one are expected: four of five of those runs,
// and of mixtures and hybrids, which have more kinds of layers to be off by.
const (
	measuredWide = 1.17
	mixedWide    = 1.25
)

// Took is the figure that keeps a measured step of a job, for the cluster's calibration.
func (p *Prepared) Took(g *GPU, predicted, measured unit.Span, source string) cluster.Calibrated {
	return cluster.Calibrated{
		Name: cluster.StepFigure + measuredStep + Kind(p.j, g.Model), Source: source,
		Value: float64(measured/predicted) * g.Measured(p.j),
	}
}

// Measure has steps on the GPU take as long as the cluster's own measured steps say.
func (g *GPU) Measure(c *cluster.Cluster) {
	if c.Calibration == nil {
		return
	}
	for _, x := range c.Calibration.Figures {
		if kind, ok := strings.CutPrefix(x.Name, cluster.StepFigure+measuredStep); ok && x.Value > 0 {
			if g.measured == nil {
				g.measured = map[string]float64{}
			}
			g.measured[kind] = math.Pow(x.Value, counted)
		}
	}
}

// Measured is how many times as long as predicted steps like a job's take by a measured one; 1 where there is none.
func (g *GPU) Measured(j *workload.Job) float64 {
	if len(g.measured) == 0 {
		return 1
	}
	if f, ok := g.measured[Kind(j, g.Model)]; ok {
		return f
	}
	return 1
}

// measure makes a bound as many times as long.
func (g *GPU) measure(j *workload.Job, b Bound) Bound {
	b.Step *= unit.Span(g.Measured(j))
	return b
}

// Margin is the factor within which the true time of a job's step is expected.
func (g *GPU) Margin(j *workload.Job) float64 {
	f := Margin(j, g.Model)
	if g.Measured(j) == 1 {
		return f
	}
	switch Class(j, g.Model) {
	case "experts", "hybrid":
		return min(f, mixedWide)
	}
	return min(f, measuredWide)
}

// scale makes all of a step so many times as long.
func (r *Result) scale(times unit.Span) {
	for _, x := range []*unit.Span{&r.Step, &r.Compute, &r.Bubble, &r.Optimizer, &r.Host, &r.Comm, &r.Exposed} {
		*x *= times
	}
	for i := range r.Traffic {
		r.Traffic[i].Time *= times
		r.Traffic[i].Exposed *= times
	}
}
