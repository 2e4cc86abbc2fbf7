package step_test

import (
	"math"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// One measured step moves jobs of its kind by most of what it is off, and their bounds; others stay. Measured again on
// top of that, it is what it was. A second one with more exposed communication tells that from the rest.
func TestMeasuredStep(t *testing.T) {
	p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", "zero=3", 2, 8, 1, 64)
	plain, err := p.Price(g)
	if err != nil {
		t.Fatal(err)
	}
	took := p.Took(g, plain, plain.Step*1.2, "a log")
	c := &cluster.Cluster{Calibration: &cluster.Calibration{Figures: []cluster.Calibrated{took}}}
	own := *g
	own.Measure(c)
	r, err := p.Price(&own)
	if err != nil {
		t.Fatal(err)
	}
	share := float64(plain.Exposed / plain.Step)
	if got := float64(r.Step / plain.Step); got < math.Pow(1.2, 0.75) || got > math.Pow(1.2, 0.95) {
		t.Errorf("the step takes %g times as long; expected most of 1.2", got)
	}
	if sum := r.Compute + r.Bubble + r.Optimizer + r.Host + r.Exposed; math.Abs(float64(sum/r.Step)-1) > 1e-9 {
		t.Errorf("parts add up to %v of %v", sum, r.Step)
	}
	if b := step.NewBounds(p.Job().Model, &own).Family(p.Job()).Bound(p.Job()); b.Step > r.Step || b.Step < r.Step/2 {
		t.Errorf("the bound is %v, the price %v", b.Step, r.Step)
	}
	if m := own.Margin(p.Job()); m >= g.Margin(p.Job()) {
		t.Errorf("margin ×%g with a measured step, ×%g without", m, g.Margin(p.Job()))
	}
	if again := p.Took(&own, r, plain.Step*1.2, "a log"); math.Abs(again.Value-1.2) > 1e-9 ||
		again.Name != took.Name {
		t.Errorf("measured again: %g, at first %g", again.Value, took.Value)
	}
	other := *p.Job()
	other.Kernels = workload.Eager
	if f := own.Measured(&other, share); f != 1 || own.HasMeasured(&other) {
		t.Errorf("eager kernels by a measured step of compiled ones: %g", f)
	}
	if _, err := step.Calibrated(c); err != nil {
		t.Error(err)
	}
	waits := *plain
	waits.Exposed = plain.Step / 2
	c.Calibration.Figures = append(c.Calibration.Figures, p.Took(g, &waits, plain.Step*2, "a log"))
	both := *g
	both.Measure(c)
	low, high := both.Measured(p.Job(), share), both.Measured(p.Job(), 0.5)
	if low > 1.3 || high < 1.7 || high > 2 || both.Measured(p.Job(), 1) > 2 {
		t.Errorf("measured 1.2 and 2 times as long, half of the other exposed: %g and %g", low, high)
	}
	// Steps that do not bear each other out say nothing.
	waits.Exposed *= 0.9
	c.Calibration.Figures = append(c.Calibration.Figures[1:], p.Took(g, &waits, plain.Step/2, "a log"))
	if both.Measure(c); both.HasMeasured(p.Job()) {
		t.Errorf("measured twice as long and half as long: others take %g times", both.Measured(p.Job(), 0.5))
	}
	for _, name := range []string{"step.measured ", "step.measured x, y% exposed", "step.measured x, 1e9% exposed"} {
		own = *g
		own.Measure(&cluster.Cluster{Calibration: &cluster.Calibration{Figures: []cluster.Calibrated{{
			Name: name, Value: 2,
		}}}})
		if f := own.Measured(p.Job(), share); f != 1 {
			t.Errorf("%q: %g", name, f)
		}
	}
}
