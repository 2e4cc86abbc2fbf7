package step_test

import (
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// anyJob draws a job that can be, on eight GPUs of each of some nodes.
func anyJob(t *rapid.T, m *workload.Model, nodes int) (*workload.Job, bool) {
	pick := func(name string, list ...int) int { return rapid.SampledFrom(list).Draw(t, name) }
	s := workload.Split{
		TP: pick("tp", 1, 2, 4, 8), PP: pick("pp", 1, 1, 2, 4), CP: pick("cp", 1, 1, 2), EP: pick("ep", 1, 1, 2, 4),
		Chunks: pick("vpp", 1, 1, 2),
		ZeRO:   pick("zero", 0, 1, 2, 3), SeqParallel: rapid.Bool().Draw(t, "sp"),
	}
	s, err := s.On(8 * nodes)
	if err != nil {
		return nil, false
	}
	j := &workload.Job{
		Model: m, Split: s, Seq: 2048, MicroBatch: int64(pick("micro", 1, 2, 4)),
		Precision: rapid.SampledFrom([]workload.Precision{
			workload.FP32, workload.TF32, workload.FP16, workload.BF16, workload.FP8, workload.AMP, workload.AMPH,
		}).Draw(t, "precision"),
		Recompute: rapid.SampledFrom([]workload.Recompute{workload.None, workload.Selective, workload.Full}).Draw(t,
			"recompute"),
		Kernels: rapid.SampledFrom([]workload.Kernels{workload.Eager, workload.Compiled, workload.Fused}).Draw(t,
			"framework"),
		Schedule: rapid.SampledFrom(append(pipeline.Schedules(), "", "", "")).Draw(t, "schedule"),
		Context:  rapid.SampledFrom([]workload.Context{"", "", workload.Gather, workload.Ulysses}).Draw(t, "context"),
		Offload: rapid.SampledFrom([]workload.Offload{"", "", workload.OffloadOptimizer, workload.OffloadParams}).Draw(t,
			"offload"),
		Compress: rapid.SampledFrom([]workload.Wire{"", "", workload.WireBF16, workload.WireInt8}).Draw(t, "compress"),
		Unfused:  rapid.Bool().Draw(t, "unfused"), Sync: rapid.Bool().Draw(t, "sync"),
	}
	j.GlobalBatch = j.MicroBatch * int64(s.DP) * int64(pick("micros", 1, 4, 8, 64))
	// What cannot be is given up, one setting after the other.
	for _, drop := range []func(){
		func() {},
		func() { j.Compress = "" },
		func() { j.Offload = "" },
		func() { j.Context = "" },
		func() { j.Split.SeqParallel = false },
		func() { j.Schedule = "" },
		func() { j.Split.Chunks = 1 },
		func() { j.Split.EP = 1 },
		func() { j.Split.ZeRO = 1 },
	} {
		if drop(); j.Check() == nil {
			return j, true
		}
	}
	return j, false
}

// The bound is never above the price, and its memory is the same.
func TestBoundIsBelowPrice(t *testing.T) {
	gpu, _ := hardware.GPUByName("h100")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*workload.Model{}
	bounds := map[string]*step.Bounds{}
	for _, name := range []string{"gpt2-xl", "llama2-7b", "mixtral-8x7b"} {
		if models[name], err = workload.Find(name); err != nil {
			t.Fatal(err)
		}
		bounds[name] = step.NewBounds(models[name], g)
	}
	tried, share := 0, [5]float64{}
	f := step.NewFabric(c, l, workload.Split{}, nccl.Newest)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"gpt2-xl", "llama2-7b", "mixtral-8x7b"}).Draw(t, "model")
		j, ok := anyJob(t, models[name], 2)
		if !ok {
			t.Skip("no such job")
		}
		r, err := step.Step(j, g, f.With(j.Split))
		if err != nil {
			t.Fatal(err)
		}
		trunk := bounds[name].Family(j)
		quiet, silent := trunk.Bound(j), trunk.Least()
		if err := trunk.AddTraffic(f.With(j.Split)); err != nil {
			t.Fatal(err)
		}
		begun, err := step.Prepare(j, f.With(j.Split)).Begin(g, nil)
		if err != nil {
			t.Fatal(err)
		}
		last, err := begun.Least()
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range []step.Bound{silent, quiet, trunk.Least(), trunk.Bound(j), last} {
			if b.Step > r.Step || b.Step <= 0 {
				t.Fatalf("%s, %+v: bound %d is %g s, the price %g s", j.Split, j, i, b.Step, r.Step)
			}
			if b.Memory != r.Memory && b.Memory != (workload.Memory{}) {
				t.Fatalf("%s: bound %d has memory %+v, the price %+v", j.Split, i, b.Memory, r.Memory)
			}
			share[i] += float64(b.Step / r.Step)
		}
		if x, err := begun.Finish(); err != nil || x.Step != r.Step {
			t.Fatalf("%s: %v s in two parts (%v), %v s in one", j.Split, x.Step, err, r.Step)
		}
		tried++
	})
	for i := range share {
		share[i] *= 100 / float64(max(1, tried))
	}
	t.Logf("%d jobs; of the price, a trunk's bound is %.0f%%, a job's %.0f%%; with traffic inside layers %.0f%% and "+
		"%.0f%%; without the pipeline's play %.0f%%", tried, share[0], share[1], share[2], share[3], share[4])
}

// Of several sizes of buckets the best is taken.
func TestBucketsAreTried(t *testing.T) {
	p, g := prepared(t, "dgx-h100", "h100", "gpt2-xl", "zero=1", 2, 8, 1, 64)
	sizes := []unit.Bytes{1 << 20, 25 << 20, 400 << 20}
	x, err := p.Begin(g, sizes)
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var best unit.Span
	var size unit.Bytes
	for _, s := range sizes {
		j := *p.Job()
		j.Bucket = s
		r, err := step.Step(&j, g, p.Fabric())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes: %g s", s, r.Step)
		if best == 0 || r.Step < best {
			best, size = r.Step, s
		}
	}
	if got.Step != best || x.Bucket() != size {
		t.Errorf("%d bytes with %g s; the best is %d with %g s", x.Bucket(), got.Step, size, best)
	}
}

func BenchmarkBound(b *testing.B) {
	for _, split := range []string{"zero=3", "tp=4,pp=4"} {
		p, g := prepared(b, "dgx-h100", "h100", "llama2-13b", split, 4, 8, 1, 256)
		j := p.Job()
		x := step.NewBounds(j.Model, g)
		b.Run("alone/"+split, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Family(j).Bound(j)
			}
		})
		trunk := x.Family(j)
		b.Run("of-a-trunk/"+split, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trunk.Bound(j)
			}
		})
	}
}
