package query_test

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/query"
	"busbar.dev/workload"
)

// A plan under busbar's tuner plugin names a command that prices it the same.
func TestTunedPlanIsPricedAgain(t *testing.T) {
	d, err := query.Plan{
		Cluster: "dgx-h200:2", Layout: "2x1", Model: "gpt2", Global: 8, Micro: 2, Framework: "fsdp", Parallel: "zero=3",
		Tuner: true, Top: 1,
	}.Run(t.Context(), query.Env{})
	if err != nil {
		t.Fatal(err)
	}
	p := d.Plans[0]
	if !strings.HasSuffix(p.Command, " --tuner") {
		t.Errorf("the command %q does not say --tuner", p.Command)
	}
	j := query.Job{
		Cluster: "dgx-h200:2", Layout: "2x1", Model: "gpt2", Global: 8, Micro: p.Micro, Framework: d.Framework,
		Parallel: query.Parallel(p.Row.Job.Parallel.String()), Recompute: workload.Recompute(p.Recompute),
		Precision: p.Row.Job.Precision,
	}
	steps := map[bool]float64{}
	for _, tuner := range []bool{false, true} {
		s, err := query.Step{Job: j, Tuner: tuner}.Run(t.Context(), query.Env{})
		if err != nil {
			t.Fatal(err)
		}
		steps[tuner] = s.Rows[0].Step.Seconds()
	}
	if got := steps[true]; math.Abs(got/p.Step.Seconds()-1) > 1e-9 {
		t.Errorf("step --tuner takes %g s; the plan %g s", got, p.Step.Seconds())
	}
	if steps[true] >= steps[false] {
		t.Errorf("the tuner gains nothing here (%g and %g s): the test would not see it missing", steps[true], steps[false])
	}
}
