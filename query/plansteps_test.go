package query

import (
	"math"
	"slices"
	"strings"
	"testing"

	"busbar.dev/step"
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

// TestOtherFrameworks: what is said of another framework is what its own list puts first, by more than is told apart;
// the framework that is taken unasked is the simplest by the same figures.
func TestOtherFrameworks(t *testing.T) {
	for _, x := range []struct {
		q      Plan
		others string
	}{
		{Plan{Cluster: "dgx-h100:4", Model: "llama3-8b", Framework: "internevo"}, "megatron"},
		{Plan{Cluster: "dgx-h100:2", Model: "params=20B,layers=48,hidden=6144"}, ""},
		{Plan{Cluster: "dgx-h100:2", Model: "llama3-8b", FineTuning: FineTuning{LoRA: "rank=16"}}, "fsdp"},
	} {
		d, err := x.q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		named := ""
		for _, o := range d.Others {
			name, _, _ := strings.Cut(o.Framework, "@")
			named += name + " "
			if x.q.Framework == "" && x.q.LoRA == "" && slices.Contains(simplest, name) {
				t.Errorf("%s: %s is taken, and %s would be %.0f%% better", x.q.Model, d.Framework, name, 100*o.Gain)
			}
			q := x.q
			q.Framework = o.Framework
			own, err := q.Run(t.Context(), Env{})
			if err != nil {
				t.Fatal(err)
			}
			if own.Plans[0].Step != o.Step || o.Step*step.TieMargin >= d.Plans[0].Step {
				t.Errorf("%s takes %s beside %s; its own list begins with %s", name, o.Step, d.Plans[0].Step, own.Plans[0].Step)
			}
		}
		if !strings.Contains(named, x.others) {
			t.Errorf("%s: others are %q; expected %s", x.q.Model, named, x.others)
		}
	}
}

// TestPlanTriesDegrees: a framework without files of busbar's is planned with the degrees that it has, and the reason
// of the first plan is true of the others.
func TestPlanTriesDegrees(t *testing.T) {
	d, err := Plan{Cluster: "dgx-h100:4", Model: "llama3-8b", Framework: "nanotron"}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Plans[0].Parallel; s.TP*s.PP < 2 {
		t.Errorf("nanotron: %s", s)
	}
	d, err = Plan{Cluster: "perlmutter:16", Model: "gpt3-13b", Framework: "deepspeed"}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range d.Plans {
		if fastest := strings.HasPrefix(d.Plans[0].Reason, "fastest"); fastest && !p.Tight && p.Step < d.Plans[0].Step {
			t.Errorf("plan 1 is %q, plan %d %q", d.Plans[0].Reason, i+1, p.Reason)
		}
	}
}
