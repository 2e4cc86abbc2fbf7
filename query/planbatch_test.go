package query

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

// TestPlanDefaultBatch checks that a step of few GPUs is one that people train by, that its origin is said, and that a
// batch that was named is not explained.
func TestPlanDefaultBatch(t *testing.T) {
	ask := func(global int64) *PlanDoc {
		d, err := Plan{Cluster: "4xa6000", Model: "gpt2-large", Framework: "ddp", Global: global}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := ask(0); d.Batch != 256 || d.BatchRule != workload.DefaultBatchRule {
		t.Errorf("global batch %d by %q; expected 64 sequences of 1024 tokens per GPU", d.Batch, d.BatchRule)
	}
	if d := ask(64); d.Batch != 64 || d.BatchRule != "" {
		t.Errorf("global batch %d by %q; expected the 64 that were asked for", d.Batch, d.BatchRule)
	}
}

// TestPlanKernels checks that where another framework is faster, its kernels and precision are named: with the same
// kernels, precision, micro-batch and width of sums, nothing is left of the difference to DDP.
func TestPlanKernels(t *testing.T) {
	q := Plan{Cluster: "4xa6000", Model: "gpt2-large", Framework: "ddp", Global: 64}
	d, err := q.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, o := range d.Others {
		if strings.HasPrefix(o.Framework, "fsdp@") {
			found = true
			if !strings.HasSuffix(o.Settings, ", compiled kernels and bf16") {
				t.Errorf("%s: %s; expected its kernels and precision", o.Framework, o.Settings)
			}
		}
	}
	if !found {
		t.Fatalf("FSDP is not among %+v", d.Others)
	}
	q.Kernels, q.Precision = "compiled", "bf16"
	q.Micro, q.Compress = 8, []workload.Wire{"bf16"} // as FSDP sums, which has memory for more
	if d, err = q.Run(t.Context(), Env{}); err != nil {
		t.Fatal(err)
	}
	for _, o := range d.Others {
		if strings.HasPrefix(o.Framework, "fsdp@") {
			t.Errorf("%s gains %.0f%% over DDP with its kernels and precision", o.Framework, 100*o.Gain)
		}
	}
}

// TestPlanOneOrder checks that what is written without --pick is what the text calls best: whatever else speaks for
// another plan says why that is not the first.
func TestPlanOneOrder(t *testing.T) {
	behind := 0
	for _, q := range []Plan{
		{Cluster: "dgx-h100:2", Model: "qwen3-30b-a3b", Framework: "deepspeed"},
		{
			Cluster: "4xa6000", Model: "llama3-8b", Framework: "torchtitan", Seq: 2048, Global: 512,
			Offload: []workload.Offload{"none"},
		},
		{Cluster: "4xa6000:2", NIC: "25GbE", Model: "llama3-8b", Framework: "fsdp", Seq: 2048, Global: 64},
		{Cluster: "dgx-h100:4", Model: "llama2-13b", Global: 512},
	} {
		d, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Plans[1:] {
			if strings.HasPrefix(p.Reason, "as fast as 1") != p.Tied || p.Reason == "" {
				t.Errorf("%s on %s: plan %d, tied %t: %s", q.Model, q.Cluster, p.Rank, p.Tied, p.Reason)
			}
			if d.Plans[0].Tight && p.Tied && !p.Tight {
				t.Errorf("%s on %s: plan 1 is tight and %d is as fast", q.Model, q.Cluster, p.Rank)
			}
			if p.Tied {
				behind++
			}
		}
	}
	if behind == 0 {
		t.Error("no plan ties with the first in any of these: the test shows nothing")
	}
}

// TestPlanRoomy checks that a tight plan does not hide the fastest that is not tight and has its degrees: none is
// better than the first that has memory to spare, which a search for those alone finds.
func TestPlanRoomy(t *testing.T) {
	reserve, hidden := 0.09, 0
	for _, q := range []Plan{
		{Cluster: "dgx-h100:2", Model: "qwen3-30b-a3b", Framework: "deepspeed"},
		{Cluster: "dgx-h100:1", Model: "llama3-8b", Framework: "deepspeed"},
		{Cluster: "dgx-h100:1", Model: "qwen3-30b-a3b", Framework: "hf"},
	} {
		d, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		q.Reserve = &reserve
		roomy, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		first, want := &d.Plans[0], &roomy.Plans[0]
		if first.Tight || float64(first.Step) > 1.1*float64(want.Step) {
			t.Errorf("%s by %s: plan 1 takes %s, tight %t; with memory to spare %s", q.Model, q.Framework, first.Step,
				first.Tight, want.Step)
		}
		if last := &d.Plans[len(d.Plans)-1]; last.Tight && last.Parallel == first.Parallel {
			hidden++
		}
	}
	if hidden == 0 {
		t.Error("no tight plan has the degrees of the first in any of these: the test shows nothing")
	}
}
