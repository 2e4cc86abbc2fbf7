package step_test

import (
	"math"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// One measured step moves jobs of its kind by four fifths of what it is off, and their bounds; others stay. Measured
// again on top of that, it is what it was.
func TestMeasuredStep(t *testing.T) {
	p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", "zero=3", 2, 8, 1, 64)
	plain, err := p.Price(g)
	if err != nil {
		t.Fatal(err)
	}
	took := p.Took(g, plain.Step, plain.Step*1.5, "a log")
	c := &cluster.Cluster{Calibration: &cluster.Calibration{Figures: []cluster.Calibrated{took}}}
	own := *g
	own.Measure(c)
	r, err := p.Price(&own)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Pow(1.5, 0.8)
	if got := float64(r.Step / plain.Step); math.Abs(got-want) > 1e-9 {
		t.Errorf("the step takes %g times as long; expected %g", got, want)
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
	if again := p.Took(&own, r.Step, plain.Step*1.5, "a log"); math.Abs(again.Value-1.5) > 1e-9 {
		t.Errorf("measured again: %g, at first %g", again.Value, took.Value)
	}
	other := *p.Job()
	other.Kernels = workload.Eager
	if f := own.Measured(&other); f != 1 {
		t.Errorf("eager kernels by a measured step of compiled ones: %g", f)
	}
	if _, err := step.Calibrated(c); err != nil {
		t.Error(err)
	}
}
