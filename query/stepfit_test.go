package query

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/internal/failure"
	"busbar.dev/workload"
)

// TestStepFitting checks that where a job does not fit, no time is said, the answer begins with that and names flags
// with which it does, and that it fits with them.
func TestStepFitting(t *testing.T) {
	for _, c := range []struct {
		job  Job
		want string // in the flags
	}{
		{Job{Cluster: "4xa6000", Model: "llama3-8b", Framework: "ddp"}, "--framework fsdp@"},
		{Job{Cluster: "4xa6000", Model: "gpt3-2.7b", Framework: "ddp", Micro: 64}, "--micro-batch "},
		{
			Job{Cluster: "dgx-h100:1", Model: "llama3-8b", Framework: "ddp", Recompute: "none", Seq: 32768}, "--framework fsdp@",
		},
		{Job{Cluster: "dgx-h100:8", Model: "llama3-70b", Framework: "megatron", Parallel: "tp=1,pp=1"}, "--parallel "},
		{Job{Cluster: "4x4090", Model: "llama3-8b", Framework: "fsdp", Offload: "none"}, "--offload parameters"},
		{
			Job{
				Cluster: "4x4090", Model: "llama3-70b", Framework: "hf", Seq: 2048, FineTuning: FineTuning{LoRA: "rank=16"},
				Offload: "none",
			},
			"--lora rank=16,bits=4",
		},
	} {
		d, err := Step{Job: c.job}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		r := d.Rows[0]
		if r.Fits || !d.Wrong() || r.Step != 0 || !strings.HasPrefix(r.Bottleneck.Text, "does not fit: ") {
			t.Errorf("%s on %s: fits %t in %v; %s", c.job.Model, c.job.Cluster, r.Fits, r.Step, r.Bottleneck.Text)
			continue
		}
		f := r.Fitting
		if f == nil || !strings.Contains(f.Settings+" ", c.want) {
			t.Errorf("%s on %s: proposed is %+v; expected flags with %q", c.job.Model, c.job.Cluster, f, c.want)
			continue
		}
		asked, err := Step{Job: withFlags(t, c.job, f.Settings)}.Run(t.Context(), Env{})
		if err != nil {
			t.Errorf("%s: %v", f.Settings, err)
		} else if x := asked.Rows[0]; !x.Fits || x.Memory["total"] != f.Memory {
			t.Errorf("%s: fits %t with %v; said is %v", f.Settings, x.Fits, x.Memory["total"], f.Memory)
		}
	}
}

// TestFitsAlike checks that what fits is the same whether settings are named or searched, by every question, and that
// refusals name no flag of another question.
func TestFitsAlike(t *testing.T) {
	job := Job{
		Cluster: "dgx-h100:2", Model: "gpt2-xl", Framework: "fsdp", Parallel: "zero=3", Micro: 4, Recompute: "none",
		Offload: "none",
	}
	whole, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[bool]int{}
	for _, share := range []float64{0.9, 0.94, 0.948, 0.952, 0.96, 0.99} {
		need := float64(whole.Rows[0].Memory["total"]) / 0.99
		job.Set = []string{"gpu.memory=" + strconv.FormatFloat(need/share/(1<<30), 'f', 3, 64) + "GiB"}
		d, err := Step{Job: job}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		fits := d.Rows[0].Fits
		seen[fits]++
		_, planned := Plan{
			Cluster: job.Cluster, Model: job.Model, Framework: job.Framework, Parallel: job.Parallel, Micro: job.Micro,
			Recompute: job.Recompute, Set: job.Set, Offload: []workload.Offload{"none"},
		}.Run(t.Context(), Env{})
		said, needed := Need{Job: job}.Run(t.Context(), Env{})
		if fits != (planned == nil) || fits != (needed == nil) || fits != (share < 0.95) {
			t.Errorf("%s: fits %t; plan: %v; need: %v", job.Set, fits, planned, needed)
		}
		if fits && share > 0.93 && !strings.Contains(strings.Join(said.Notes, ""), "memory is tight") {
			t.Errorf("%s: need does not say that memory is tight: %q", job.Set, said.Notes)
		}
		if !fits &&
			(strings.Contains(d.Rows[0].Bottleneck.Text, "--reserve") || !strings.Contains(needed.Error(), "left free")) {
			t.Errorf("%s: %s", job.Set, needed)
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("%d fit and %d do not: the test shows nothing", seen[true], seen[false])
	}
}

// TestMisfits checks that no question answers for a job that does not fit as if it ran.
func TestMisfits(t *testing.T) {
	job := Job{Cluster: "dgx-h100:2", Model: "llama3-405b"}
	_, need := Need{Job: job}.Run(t.Context(), Env{})
	_, scale := Scale{Job: job}.Run(t.Context(), Env{})
	_, goodput := Goodput{Job: job}.Run(t.Context(), Env{})
	_, plan := Plan{Cluster: job.Cluster, Model: job.Model}.Run(t.Context(), Env{})
	_, place := Place{Job: job, Nodes: 2}.Run(t.Context(), Env{})
	for _, err := range []error{need, scale, goodput, plan, place} {
		if !errors.Is(err, failure.ErrWrong) ||
			!strings.HasPrefix(err.Error(), "does not fit: llama3-405b on 16 GPUs of 79.2") {
			t.Errorf("answered: %v", err)
		}
	}
}

// withFlags is a job with what flags of busbar step say.
func withFlags(t *testing.T, j Job, flags string) Job {
	t.Helper()
	words := strings.Fields(flags)
	for i := 0; i+1 < len(words); i += 2 {
		n, _ := strconv.ParseInt(words[i+1], 10, 64)
		switch words[i] {
		case "--parallel":
			j.Parallel = Parallel(words[i+1])
		case "--recompute":
			j.Recompute = workload.Recompute(words[i+1])
		case "--lora":
			j.LoRA = words[i+1]
		case "--offload":
			j.Offload = workload.Offload(words[i+1])
		case "--framework":
			j.Framework = words[i+1]
		case "--kernels":
			j.Kernels = workload.Kernels(words[i+1])
		case "--global-batch":
			j.Global = n
		case "--micro-batch":
			j.Micro = n
		default:
			t.Fatalf("%s: a flag that the test does not know", words[i])
		}
	}
	return j
}
