package query

import (
	"strconv"
	"strings"
	"testing"

	"busbar.dev/step"
	"busbar.dev/workload"
)

// TestStepFitting checks that where a job does not fit, the answer names flags with which it does, and that they give
// the step that is said.
func TestStepFitting(t *testing.T) {
	for _, c := range []struct {
		job  Job
		want string // in the flags
		not  string // in what the misfit proposes
	}{
		{Job{Cluster: "dgx-h100:2", Model: "llama3-70b"}, "zero=3 --recompute full", "raise"},
		{Job{Cluster: "dgx-h100:8", Model: "llama3-70b", Framework: "megatron"}, "--parallel tp=", "raise"},
		{Job{Cluster: "4xa6000", Model: "llama3-8b"}, "zero=3", "raise"},
		{Job{Cluster: "4xa6000", Model: "llama3-8b", Framework: "ddp"}, "--framework fsdp", "zero=3"},
		{Job{Cluster: "4xa6000", Model: "gpt3-2.7b", Framework: "ddp", Micro: 8}, "zero=1", "zero=3"},
		{Job{Cluster: "4xa6000", Model: "llama3-70b"}, "--offload parameters", "raise"},
		{Job{Cluster: "4x4080", Model: "llama3-8b"}, "--offload optimizer", "raise"},
		{Job{Cluster: "4x4090", Model: "llama3-405b"}, "", "would fit"},
		{
			Job{Cluster: "4x4090", Model: "llama3-8b", Framework: "hf", Seq: 2048, FineTuning: FineTuning{LoRA: "rank=16"}},
			"bits=4", "raise",
		},
		{Job{
			Cluster: "4x4090", Model: "llama3-8b", Framework: "hf", Seq: 2048,
			FineTuning: FineTuning{LoRA: "rank=16", Method: "dpo"},
		}, "bits=4", "raise"},
	} {
		d, err := Step{Job: c.job}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		r := d.Rows[0]
		if r.Fits || strings.Contains(r.Bottleneck.Text, c.not) {
			t.Errorf("%s on %s: fits %t; %s", c.job.Model, c.job.Cluster, r.Fits, r.Bottleneck.Text)
		}
		switch f := r.Fitting; {
		case f == nil && c.want == "":
		case f == nil || c.want == "" || !strings.Contains(f.Settings, c.want):
			t.Errorf("%s on %s: proposed is %+v; expected flags with %q", c.job.Model, c.job.Cluster, f, c.want)
		default:
			asked, err := Step{Job: withFlags(t, c.job, f.Settings)}.Run(t.Context(), Env{})
			if err != nil {
				t.Errorf("%s: %v", f.Settings, err)
			} else if x := asked.Rows[0]; !x.Fits || x.Step != f.Step || x.Memory["total"] != f.Memory ||
				x.Job.Global != r.Job.Global {
				t.Errorf("%s: fits %t, step %v and %v with global batch %d; said are %v, %v and %d", f.Settings, x.Fits, x.Step,
					x.Memory["total"], x.Job.Global, f.Step, f.Memory, r.Job.Global)
			}
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

// TestStepFittingFastest checks that what is proposed is not slower than other settings that fit too.
func TestStepFittingFastest(t *testing.T) {
	job := Job{
		Cluster: "4x4090", Model: "llama3-8b", Framework: "hf", Seq: 2048, Micro: 2,
		FineTuning: FineTuning{LoRA: "rank=16,targets=attention"},
	}
	d, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	fit, some := d.Rows[0].Fitting, 0
	for _, flags := range []string{
		"--recompute full", "--parallel zero=3", "--micro-batch 1 --recompute full",
		"--lora rank=16,targets=attention,bits=4 --recompute full", "--lora rank=16,targets=attention,bits=4 --micro-batch 1",
	} {
		other := withFlags(t, job, "--global-batch 8 "+flags)
		d, err := Step{Job: other}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(flags, err)
		}
		r := d.Rows[0]
		if r.Memory["total"] > step.Room(r.Has, step.Reserve).Bytes() {
			continue
		}
		if some++; fit == nil || r.Step < fit.Step {
			t.Errorf("%s fits and takes %v; proposed is %+v", flags, r.Step, fit)
		}
	}
	if some < 3 {
		t.Errorf("%d of the settings fit: the test shows nothing", some)
	}
}
