package predict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/lazyre"
	"busbar.dev/nccl"
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
	for i, r := range c.Calibration.Residuals {
		_, err := coll.ParseKind(r.Op)
		if _, _, bad := ParseLayout(r.Layout); err != nil || bad != nil {
			return nil, fmt.Errorf("calibration of %s: residuals[%d]: %w", c.Name, i, cmp.Or(err, bad))
		}
	}
	for _, x := range own(c.Calibration) {
		i, err := sim.FigureByName(x.Name)
		if err != nil {
			return nil, fmt.Errorf("calibration of %s: %w; `busbar calibrate` writes the names", c.Name, err)
		}
		if about := &sim.FigureTable()[i]; !(x.Value >= about.Least && x.Value <= about.Most) {
			return nil, fmt.Errorf("calibration of %s: %s is %g; expected %g to %g", c.Name, x.Name, x.Value, about.Least,
				about.Most)
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

// Origin says where the figures of predictions on a cluster come from, and what was measured on it.
func Origin(c *cluster.Cluster) string {
	return strings.Join(append([]string{"fitted on published sweeps"}, Calibrated(c)...), ", ")
}

// Calibrated says what of a cluster's collectives was measured, nothing where nothing was.
func Calibrated(c *cluster.Cluster) []string {
	if c.Calibration == nil || len(own(c.Calibration))+len(c.Calibration.Residuals) == 0 {
		return nil
	}
	const most = 3
	var sources, curves []string
	add := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) && len(*list) < most {
			*list = append(*list, text)
		}
	}
	for _, x := range own(c.Calibration) {
		add(&sources, x.Source)
	}
	for i := range c.Calibration.Residuals {
		r := &c.Calibration.Residuals[i]
		add(&sources, r.Source)
		add(&curves, r.String())
	}
	if rest := len(c.Calibration.Residuals) - most; rest > 0 {
		curves = append(curves, fmt.Sprintf("%d more", rest))
	}
	if len(own(c.Calibration)) > 0 {
		curves = append(curves, "launch and links of the rest")
	}
	return []string{
		fmt.Sprintf("calibrated on this cluster (%s): %s", strings.Join(sources, ", "), strings.Join(curves, "; ")),
	}
}

// CalibratedRelease is the release that a cluster was measured with, where nobody says which one runs: curves hold for
// no other. Without measurements, or with several releases, it is usual.
func CalibratedRelease(c *cluster.Cluster, usual nccl.Version) nccl.Version {
	if c.Calibration == nil {
		return usual
	}
	found := ""
	for _, r := range c.Calibration.Residuals {
		if found != "" && r.NCCL != found {
			return usual
		}
		found = r.NCCL
	}
	if v, err := nccl.ParseVersion(found); err == nil {
		return v
	}
	return usual
}

// Curve is what measurements of a call would hold for, without any: the same collective on the same layout, by the same
// release under the same settings.
func (p *Predictor) Curve(kind coll.Kind) cluster.Residual {
	v := p.Plan.Version
	return cluster.Residual{
		Op: kind.String(), Class: p.class(), Layout: p.Shape(), NCCL: fmt.Sprintf("%d.%d", v.Major, v.Minor),
		Settings: p.settings(),
	}
}

// ofMachine are settings that name devices and files of a machine, which change from one to the next.
var ofMachine = lazyre.New(`_(HCA|IFNAME|FILE)$`)

// otherGPUs says how those that take part reach NICs and each other, "" where a node's first ones do alike.
func (p *Predictor) otherGPUs() string {
	t, used := p.Cluster.TypeOf(p.Layout[0].Host), p.firstNode()
	first := t.Of(cluster.GPU)[:len(used)]
	if slices.Equal(used, first) {
		return ""
	}
	way := ways(t, len(p.Plan.Nodes) > 1)
	if text := way(used); text != way(first) {
		return "GPUs " + text
	}
	return ""
}

// settings are those of the library that may change how fast it is, how its GPUs reach NICs, the age of its plugin and
// how calls are timed. One thread for several GPUs is none: what that costs is predicted, and a curve is what is left.
func (p *Predictor) settings() string {
	env := map[string]string{}
	for k, v := range p.asked {
		if !slices.Contains(idle, k) && !ofMachine.MatchString(k) {
			env[k] = v
		}
	}
	list := []string{settingText(env)}
	for _, x := range []struct {
		is   bool
		text string
	}{
		{p.Alone, "each call timed"},
		{p.Graph, "CUDA graph"},
		{p.oldEFA(), "old EFA"},
		{true, p.otherGPUs()},
	} {
		if x.is {
			list = append(list, x.text)
		}
	}
	return strings.TrimSpace(strings.Join(list, " "))
}

// measured is the curve that was measured of such calls, nil where there is none. Of a file of before curves had a
// release, it holds for every one.
func (p *Predictor) measured(kind coll.Kind) *cluster.Residual {
	if p.Cluster.Calibration == nil || len(p.Cluster.Calibration.Residuals) == 0 {
		return nil
	}
	want := p.Curve(kind)
	for i := range p.Cluster.Calibration.Residuals {
		r, like := &p.Cluster.Calibration.Residuals[i], want
		if r.NCCL == "" {
			like.NCCL, like.Settings = "", r.Settings
		}
		if r.Same(&like) {
			return r
		}
	}
	return nil
}

// MeasuredMargin is the error bar, as a factor, of a call whose like was measured on this cluster, in the range of
// sizes that was: the error on sizes that were left out and the noise count. False where there is no such measurement.
func (p *Predictor) MeasuredMargin(op coll.Op) (float64, bool) {
	r := p.measured(op.Kind)
	if r == nil || op.Bytes < r.From || op.Bytes > r.To || r.Error == 0 {
		return 0, false
	}
	return max(1.05, 1+1.5*r.Error, 1+r.Noise), true
}

// calibratedMargin narrows a margin where such calls were measured.
func (p *Predictor) calibratedMargin(margin float64, op coll.Op) float64 {
	if own, ok := p.MeasuredMargin(op); ok {
		return min(margin, own)
	}
	return margin
}

// correct multiplies a prediction by what the cluster's calibration leaves.
func (p *Predictor) correct(run *result.Run) {
	r := p.measured(run.Op.Kind)
	if r == nil {
		return
	}
	f := math.Exp(r.At(run.Op.Bytes))
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

// Shape is nodes x GPUs of each, where they are equal.
func (p *Predictor) Shape() string {
	on := map[int]int{}
	for _, r := range p.Layout {
		on[r.Host]++
	}
	return fmt.Sprintf("%dx%d", len(on), len(p.Layout)/len(on))
}
