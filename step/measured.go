package step

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// measuredStep begins the names of figures that are how many times as long a step of the user's own took as predicted,
// before the kind of jobs that it holds for.
const measuredStep = "measured "

// MostOff is how many times as long as predicted, or as short, a step may have been measured: what is farther off was
// another job.
const MostOff = 4

// Kind is what jobs of a cluster have in common of which one measured step tells how long others take: the framework
// with its kernels, what kind of model it trains, of which family, and the precision.
func Kind(j *workload.Job, m hardware.GPUModel) string {
	name := "no framework"
	if j.Framework != nil {
		name = j.Framework.Name
	}
	return fmt.Sprintf("%s, %s kernels, %s %s, %s", name, j.Kernels, Class(j, m), family(j.Model.Name), j.Precision)
}

// family is the word that names of a model and its like begin with: llama of meta-llama/Llama-3.1-8B and llama2-70b.
func family(name string) string {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	if end := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }); end > 0 {
		name = name[:end]
	}
	return name
}

// What the logarithm of measured over predicted is made of, as standard deviations: what all steps of a kind have, what
// goes with the share of communication that is exposed, and one measurement alone. Of 92 kinds of published runs with
// three and more, one in turn as the measured one, others were off by 6% in the median, 11% without it, and by 9 and
// 12% in the mean; by two and three measured ones with different shares the mean falls to 8 and 7%.
const (
	ofKind    = 0.12
	ofExposed = 0.6
	ofStep    = 0.06
)

// calibratedBar is the power of an error bar that is left where a step of the kind was measured, but for one that was
// itself farther off: nine of ten of those runs lie within.
const calibratedBar = 0.6

// tookStep is one measured step: which share of it was exposed, and the logarithm of measured over predicted.
type tookStep struct{ share, off float64 }

// measuredKind is what measured steps of a kind say of others: by how much longer than predicted they take, as a
// logarithm, without exposed communication and for all of it, never farther off than any of them.
type measuredKind struct{ level, exposed, least, most float64 }

func newMeasuredKind(list []tookStep) *measuredKind {
	k := &measuredKind{}
	a, b := ofStep*ofStep/(ofKind*ofKind), ofStep*ofStep/(ofExposed*ofExposed)
	var ab, x, y float64
	for _, s := range list {
		a, b, ab = a+1, b+s.share*s.share, ab+s.share
		x, y = x+s.off, y+s.share*s.off
		k.least, k.most = min(k.least, s.off), max(k.most, s.off)
	}
	det := a*b - ab*ab
	k.level, k.exposed = (x*b-y*ab)/det, (y*a-x*ab)/det
	return k
}

// better tells whether each of several measured steps is predicted better by the others than without them; one alone is
// taken at its word.
func better(list []tookStep) bool {
	was, is := 0.0, 0.0
	for i, s := range list {
		was += math.Abs(s.off)
		is += math.Abs(s.off - math.Log(newMeasuredKind(slices.Delete(slices.Clone(list), i, i+1)).at(s.share)))
	}
	return len(list) == 1 || is < was
}

// at is how many times as long a step takes with such a share exposed.
func (k *measuredKind) at(share float64) float64 {
	return math.Exp(min(max(k.level+k.exposed*share, k.least), k.most))
}

// exposedWord is behind the kind in the name of a figure: the percentage of its step that was exposed.
const exposedWord = "% exposed"

// Took is the figure that keeps a measured step of a job, for the cluster's calibration.
func (p *Prepared) Took(g *GPU, predicted *Result, measured unit.Span, source string) cluster.Calibrated {
	share := float64(predicted.Exposed / predicted.Step)
	return cluster.Calibrated{
		Name:  fmt.Sprintf("%s%s%s, %.0f%s", cluster.StepFigure, measuredStep, Kind(p.j, g.Model), 100*share, exposedWord),
		Value: float64(measured/predicted.Step) * g.Measured(p.j, share), Source: source,
	}
}

// Measure has steps on the GPU take as long as the cluster's own measured steps say.
func (g *GPU) Measure(c *cluster.Cluster) {
	if c.Calibration == nil {
		return
	}
	g.measured = map[string]*measuredKind{}
	for kind, list := range byKind(c.Calibration.Figures) {
		if better(list) {
			g.measured[kind] = newMeasuredKind(list)
		}
	}
}

// byKind are measured steps of a calibration by kind.
func byKind(figures []cluster.Calibrated) map[string][]tookStep {
	kinds := map[string][]tookStep{}
	for _, x := range figures {
		kind, ok := strings.CutPrefix(x.Name, cluster.StepFigure+measuredStep)
		at := strings.LastIndex(kind, ", ")
		if !ok || at < 0 || !(x.Value >= 1.0/MostOff && x.Value <= MostOff) {
			continue
		}
		share, err := strconv.ParseFloat(strings.TrimSuffix(kind[at+2:], exposedWord), 64)
		if err == nil && share >= 0 && share <= 100 {
			kinds[kind[:at]] = append(kinds[kind[:at]], tookStep{share / 100, math.Log(x.Value)})
		}
	}
	return kinds
}

// Agree is one figure for several measured steps of a kind, their mean; ok is false where they do not foretell each
// other better than predictions do without them, or are no farther off than one measurement is alone: so much one model
// may be off by its shapes, which steps of it that are left out have too.
func Agree(figures []cluster.Calibrated) (one cluster.Calibrated, ok bool) {
	kinds := byKind(figures)
	for kind, list := range kinds {
		share, off := 0.0, 0.0
		for _, s := range list {
			share, off = share+s.share/float64(len(list)), off+s.off/float64(len(list))
		}
		one = cluster.Calibrated{
			Name:  fmt.Sprintf("%s%s%s, %.0f%s", cluster.StepFigure, measuredStep, kind, 100*share, exposedWord),
			Value: math.Exp(off), Source: fmt.Sprintf("%d steps, as of %s", len(list), figures[0].Source),
		}
		ok = len(list) > 1 && better(list) && math.Abs(off) > ofStep
	}
	return one, ok && len(kinds) == 1
}

// kind is what measured steps say of a job, nil where none is of its kind.
func (g *GPU) kind(j *workload.Job) *measuredKind {
	if len(g.measured) == 0 {
		return nil
	}
	return g.measured[Kind(j, g.Model)]
}

// AsPredicted is the GPU without the measured steps; itself where it has none.
func (g *GPU) AsPredicted() *GPU {
	if len(g.measured) == 0 {
		return g
	}
	own := *g
	own.measured = nil
	return &own
}

// MeasuredBy says which measured steps of a cluster change how long a step of a job takes, and by how much, or why none
// does; nothing where there is none.
func (g *GPU) MeasuredBy(c *cluster.Cluster, j *workload.Job, share float64) []string {
	if c.Calibration == nil {
		return nil
	}
	kinds := byKind(c.Calibration.Figures)
	own := Kind(j, g.Model)
	switch list := kinds[own]; {
	case len(kinds) == 0:
		return nil
	case g.HasMeasured(j):
		return []string{fmt.Sprintf("%s of %s: %.2f times as long as predicted without, error bar ×%.2f instead of ×%.2f",
			words.Plural(len(list), "measured step"), own, g.Measured(j, share), g.Margin(j), Margin(j, g.Model))}
	case len(list) > 0:
		return []string{fmt.Sprintf("%d measured steps of %s change nothing: they foretell each other no better than without",
			len(list), own)}
	}
	return []string{fmt.Sprintf("measured steps of the cluster do not apply to %s: they are of %s", own,
		strings.Join(slices.Sorted(maps.Keys(kinds)), "; "))}
}

// HasMeasured reports that a step like a job's was measured.
func (g *GPU) HasMeasured(j *workload.Job) bool { return g.kind(j) != nil }

// Measured is how many times as long as predicted a step like a job's takes, of which a share is exposed, by measured
// ones; 1 where there is none.
func (g *GPU) Measured(j *workload.Job, share float64) float64 {
	if k := g.kind(j); k != nil {
		return k.at(share)
	}
	return 1
}

// measure makes a bound as many times as long, whatever share is exposed.
func (g *GPU) measure(j *workload.Job, b Bound) Bound {
	if k := g.kind(j); k != nil {
		b.Step *= unit.Span(min(k.at(0), k.at(1)))
	}
	return b
}

// Margin is the factor within which the true time of a job's step is expected.
func (g *GPU) Margin(j *workload.Job) float64 {
	f := Margin(j, g.Model)
	if k := g.kind(j); k != nil {
		f = min(f, max(math.Pow(f, calibratedBar), math.Exp(max(-k.least, k.most))))
	}
	return f
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
