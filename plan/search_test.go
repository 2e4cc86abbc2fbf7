package plan_test

import (
	"testing"
	"time"

	"busbar/hardware"
	"busbar/nccl"
	"busbar/plan"
	"busbar/step"
	"busbar/workload"
)

func query(t testing.TB, preset, gpu, model string, nodes int, global int64) *plan.Query {
	t.Helper()
	m, err := workload.Find(model)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, 8)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := hardware.GPUByName(gpu)
	g, err := step.NewGPU(x, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	base := workload.Job{Model: m, Seq: m.Seq, GlobalBatch: global, Precision: workload.BF16, Framework: workload.Fused}
	return &plan.Query{Space: plan.NewSpace(base, 8*nodes, 8), Cluster: c, Layout: l, Version: nccl.Newest, GPU: g, Top: 10, Reserve: 0.05}
}

func TestBig(t *testing.T) {
	for _, nodes := range []int{128} {
		q := query(t, "dgx-a100", "a100-80", "gpt3-175b", nodes, 1536)
		at := time.Now()
		a, err := plan.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d GPUs: %v: considered %d, fit %d, priced %d", 8*nodes, time.Since(at), a.Considered, a.Fit, a.Priced)
		for _, p := range a.Plans {
			t.Logf("%v %s mb %d %s %s: %.3f s, MFU %.1f%%, %.1f GB", p.Job.Split, p.Job.Split.Order, p.Job.MicroBatch, p.Job.Recompute, p.Job.Schedule, p.Result.Step, 100*p.Result.MFU, p.Result.Memory.Total()/1e9)
		}
	}
}
