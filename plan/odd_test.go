package plan_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Odd models on odd numbers of GPUs: the search finds what pricing everything does, or says that
// there is nothing.
func TestOddSpaces(t *testing.T) {
	gpu, _ := hardware.GPUByName("a100-40")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	rapid.Check(t, func(rt *rapid.T) {
		if tried++; tried > 40 || tried > 5 && testing.Short() {
			return // each prices all there is
		}
		pick := func(name string, list ...int) int { return rapid.SampledFrom(list).Draw(rt, name) }
		config := fmt.Sprintf(`{"model_type":"mixtral","hidden_size":%d,"intermediate_size":1792,"num_attention_heads":%d,"num_hidden_layers":%d,"num_key_value_heads":1,"num_local_experts":%d,"num_experts_per_tok":2,"vocab_size":32003,"max_position_embeddings":4096}`,
			pick("width", 64, 96)*21, pick("heads", 7, 12, 21), pick("layers", 1, 7, 12), pick("experts", 2, 3, 7))
		m, err := workload.ReadConfig("odd", []byte(config))
		if err != nil {
			rt.Fatal(err)
		}
		nodes, gpus := pick("nodes", 1, 1, 2, 3), pick("gpus", 1, 2, 3, 7, 8)
		c, err := hardware.Preset("dgx-a100-40", nodes)
		if err != nil {
			rt.Fatal(err)
		}
		l, err := nccl.Block(c, nodes, gpus)
		if err != nil {
			rt.Fatal(err)
		}
		base := workload.Job{
			Model: m, Seq: int64(pick("seq", 7, 1024, 4096)), GlobalBatch: int64(pick("batch", 1, 6, 7, 42)),
			Precision: rapid.SampledFrom([]workload.Precision{
				workload.FP32, workload.TF32, workload.FP16, workload.BF16, workload.FP8, workload.AMP, workload.AMPH,
			}).Draw(rt, "precision"), Kernels: workload.Compiled,
		}
		if base.Precision == workload.FP8 {
			base.Precision = workload.BF16
		}
		s := plan.NewSpace(base, nodes*gpus, gpus)
		s.Micro = s.Micro[:min(2, len(s.Micro))]
		s.Chunks, s.Bucket = s.Chunks[:min(2, len(s.Chunks))], s.Bucket[:2]
		q := &plan.Query{
			Spaces: []*plan.Space{s}, Cluster: c, Layout: l, Version: nccl.Newest, GPU: g, Top: pick("top", 1, 3), Reserve: 0.05,
			Objective:  plan.Shortest,
			HostMemory: unit.Bytes(pick("host", 0, 1, 100)) * unit.GB,
		}
		a, err := plan.Search(context.Background(), q)
		settings, want := everything(t, q)
		if settings != a.Considered || len(want) != len(a.Plans) || (err != nil) != (len(want) == 0) {
			rt.Fatalf("%d considered of %d, %d plans of %d: %v", a.Considered, settings, len(a.Plans), len(want), err)
		}
		for i, p := range a.Plans {
			if math.Abs(p.Value/want[i]-1) > 1e-9 {
				rt.Fatalf("plan %d has %g; the best but %d have %g", i+1, p.Value, i, want[i])
			}
		}
	})
}

// A search that is ended before it begins has nothing, and says why.
func TestSearchIsEndedAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, err := plan.Search(ctx, query(t, "dgx-h100", "h100", "llama2-7b", 2, 64))
	if err == nil || len(a.Plans) != 0 || a.Whole {
		t.Errorf("%+v, %v", a, err)
	}
}
