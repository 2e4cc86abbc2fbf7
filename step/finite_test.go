package step_test

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/step"
	"busbar.dev/unit"
)

// A part without a finite time is an error that names it, never a result.
func TestStepIsFinite(t *testing.T) {
	job, gpu, fabric := exampleJob()
	r, err := step.Step(job, gpu, fabric)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for what, part := range map[string]func(*step.Result) *unit.Span{
			"computing":     func(r *step.Result) *unit.Span { return &r.Compute },
			"communication": func(r *step.Result) *unit.Span { return &r.Comm },
			"the step":      func(r *step.Result) *unit.Span { return &r.Step },
		} {
			own := *r
			*part(&own) = unit.Span(bad)
			if err := own.Finite(); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s of %v: %v; want an error that names it", what, bad, err)
			}
		}
	}
	own := *r
	own.Step = 0
	if own.Finite() == nil {
		t.Error("a step of nought is taken")
	}
}
