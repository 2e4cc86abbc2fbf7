package query

import (
	"math"
	"testing"

	"busbar.dev/workload"
)

// TestPlanIsItsStep: what a search finds of a job is what busbar step says of it, also where the kernels of a framework
// follow from how replicas are sharded and sharding is searched.
func TestPlanIsItsStep(t *testing.T) {
	for _, x := range []struct{ model, framework string }{{"gpt2", "hf"}, {"bert-base", "hf"}, {"gpt2", "fsdp"}} {
		d, err := Plan{Cluster: "dgx-h100:1", Model: x.model, Framework: x.framework}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Plans[:min(3, len(d.Plans))] {
			j := p.Row.Job
			s, err := Step{Job: Job{
				Cluster: "dgx-h100:1", Model: x.model, Framework: x.framework, Parallel: Parallel(p.Parallel.String()),
				Global: d.Batch, Micro: p.Micro, Seq: j.Seq, Precision: j.Precision, Recompute: workload.Recompute(j.Recompute),
			}}.Run(t.Context(), Env{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := p.Step.Seconds(), s.Rows[0].Step.Seconds(); math.Abs(got/want-1) > 0.02 {
				t.Errorf("%s by %s, %s: plan says %.3f s, step %.3f s", x.model, x.framework, p.Parallel, got, want)
			}
		}
	}
}
