package plan_test

import (
	"errors"
	"fmt"
	"testing"

	"busbar.dev/plan"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// frameworkRules are what documents of frameworks say they cannot run, written down apart from the table that the
// search reads.
var frameworkRules = map[string]func(j *workload.Job) string{
	"megatron": func(j *workload.Job) string {
		s := j.Split
		switch {
		case s.ZeRO > 1:
			return "its distributed optimizer is zero=1"
		case s.Shard < s.DP*s.CP && s.ZeRO > 0:
			return "it divides among all replicas"
		case s.PP > 1 && j.Schedule != pipeline.Alternate && j.Schedule != pipeline.Interleaved:
			return "schedule"
		case s.Chunks > 1 && j.Micros()%int64(s.PP) != 0:
			return "micro-batches of an interleaved pipeline"
		case s.CP > 1 && j.Seq%int64(2*s.CP) != 0:
			return "2 × cp divides sequences"
		case s.SeqParallel && s.TP == 1:
			return "sequence parallelism without tp"
		case j.Offload == workload.OffloadParams:
			return "offload of parameters"
		case j.Offloads() && s.ZeRO != 1:
			return "offload without the distributed optimizer"
		}
		return ""
	},
	"torchtitan": func(j *workload.Job) string {
		s := j.Split
		switch {
		case s.ZeRO == 1 || s.ZeRO == 2:
			return "FSDP2 is zero=3"
		case s.ZeRO == 0 && s.DP > 1 && (s.TP > 1 || s.PP > 1 || s.CP > 1):
			return "DDP with other degrees"
		case s.Order == workload.TensorPipelineData && s.PP > 1 && s.DP > 1:
			return "its mesh has pp outermost"
		case j.Context == workload.Ulysses:
			return "ulysses"
		}
		return ""
	},
	"fsdp": func(j *workload.Job) string {
		if s := j.Split; s.PP > 1 || s.CP > 1 || s.EP > 1 || s.DP > 1 && s.ZeRO < 2 {
			return "pipelines, cp, ep or replicas without sharding"
		}
		return ""
	},
	"deepspeed": func(j *workload.Job) string {
		if s := j.Split; s.PP > 1 || s.TP > 1 || s.CP > 1 || s.EP > 1 || j.Kernels == workload.Fused {
			return "more than replicas, which its configuration does not say"
		}
		return ""
	},
	"ddp": func(j *workload.Job) string {
		if s := j.Split; s.PP > 1 || s.TP > 1 || s.CP > 1 || s.EP > 1 || s.ZeRO > 0 || j.Offloads() {
			return "more than replicas"
		}
		return ""
	},
	"hf": func(j *workload.Job) string {
		if s := j.Split; s.PP > 1 || s.TP > 1 || s.CP > 1 || s.EP > 1 || j.Compresses() {
			return "more than replicas"
		}
		return ""
	},
}

// No plan is one that the framework refuses, on three clusters and for four models: neither by its own rules as the
// table has them, nor by those that its documents state.
func TestFrameworksRunTheirPlans(t *testing.T) {
	if testing.Short() {
		t.Skip("searches 84 spaces, minutes under the race detector")
	}
	frameworkRules["nemo"] = frameworkRules["megatron"]
	found := map[string]int{}
	for _, c := range []struct {
		preset, gpu string
		nodes       int
	}{{"dgx-h100", "h100", 1}, {"dgx-h100", "h100", 2}, {"dgx-a100", "a100-80", 2}} {
		for _, model := range []string{"gpt3-1.3b", "llama2-7b", "mixtral-8x7b", "llama3-70b"} {
			for name, rule := range frameworkRules {
				f, err := workload.ParseFramework(name)
				if err != nil {
					t.Fatal(err)
				}
				q := query(t, c.preset, c.gpu, model, c.nodes, 128)
				s := q.Spaces[0]
				if f.RefusesModel(s.Base.Model) != nil {
					continue
				}
				s.Base.Kernels = ""
				s.Micro, s.Chunks, s.Order = []int64{1}, []int{1, 2}, s.Order[:1]
				s.Restrict(f, q.GPU.Model.Name, q.GPU.Model.SM)
				q.Top = 4
				a, err := plan.Search(t.Context(), q)
				if errors.Is(err, plan.ErrNone) {
					continue // it does not fit
				}
				if err != nil {
					t.Fatalf("%s, %s on %d nodes: %v", name, model, c.nodes, err)
				}
				for _, p := range a.Plans {
					found[name]++
					what := fmt.Sprintf("%s, %s on %d nodes: %v, %s", name, model, c.nodes, p.Job.Split, p.Job.Schedule)
					if err := f.Refuses(&p.Job); err != nil {
						t.Errorf("%s: %v", what, err)
					}
					if why := rule(&p.Job); why != "" {
						t.Errorf("%s: %s", what, why)
					}
				}
			}
		}
	}
	for name := range frameworkRules {
		if found[name] == 0 {
			t.Errorf("%s: no plan at all", name)
		}
	}
	t.Log(found)
}
