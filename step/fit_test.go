package step_test

import (
	"testing"

	"busbar.dev/workload"
)

// The parts of a step make up the step, on many ranks too, whose slowest counts.
func TestPartsMakeUpTheStep(t *testing.T) {
	for _, c := range []struct {
		model, split  string
		nodes, global int
	}{
		{"llama2-13b", "tp=4,pp=4", 16, 256},
		{"llama3-8b", "zero=3", 2, 16},
		{"mixtral-8x7b", "ep=8,zero=1,tp=2,pp=2", 8, 256},
	} {
		p, g := prepared(t, "dgx-h100", "h100", c.model, c.split, c.nodes, 8, 1, int64(c.global))
		r := changed(t, p, g, func(*workload.Job) {})
		if sum := r.Compute + r.Exposed + r.Bubble + r.Optimizer + r.Host; sum < r.Step*(1-1e-9) || sum > r.Step*(1+1e-9) {
			t.Errorf("%s %s: parts of %g s in a step of %g s", c.model, c.split, sum, r.Step)
		}
	}
}
