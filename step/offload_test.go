package step_test

import (
	"math"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// changed is a prepared job with another setting.
func changed(t *testing.T, p *step.Prepared, g *step.GPU, change func(*workload.Job)) *step.Result {
	t.Helper()
	j := *p.Job()
	change(&j)
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	r, err := step.Prepare(&j, p.Fabric()).Price(g)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ZeRO-Offload's abstract has 40 TFLOPS of one V100 for ten billion parameters; its batch is not
// stated there, so that only the order is held. The GPU has the memory for it, and would not have it without.
func TestZeROOffload(t *testing.T) {
	m, err := workload.Parse("params=10B")
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset("dgx-2", 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	gpu, _ := hardware.GPUByName("v100-32")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{
		Model: m, Seq: 1024, MicroBatch: 8, GlobalBatch: 512, Precision: workload.FP16, Recompute: workload.Full,
		Kernels: workload.Fused, Unfused: true, Offload: workload.OffloadOptimizer,
	}
	if j.Split, err = j.Split.On(1); err != nil {
		t.Fatal(err)
	}
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	r, err := step.Step(j, g, step.NewFabric(c, l, j.Split, nccl.Newest))
	if err != nil {
		t.Fatal(err)
	}
	rate := r.Flops / r.Step.Seconds() / 1e12
	t.Logf("%.1f TFLOPS, published 40; %.1f GB of the GPU, %.0f GB of the host; update %.2f s", rate,
		r.Memory.Total().GB(), r.Memory.Host.GB(), r.Optimizer)
	if math.Abs(rate/40-1) > 0.4 || r.Memory.Total() > unit.Volume(gpu.Memory) {
		t.Error("expected 40 TFLOPS within two fifths, and a job that fits")
	}
	j.Offload = ""
	if need := j.Memory().Total(); need < 4*unit.Volume(gpu.Memory) {
		t.Errorf("without offloading it needs %g bytes", need)
	}
}

// What the host does is shared by its GPUs: links that several hang on, and memory.
func TestOffloadIsShared(t *testing.T) {
	took := map[int]*step.Result{}
	for _, gpus := range []int{1, 8} {
		p, g := prepared(t, "dgx-a100", "a100-80", "llama2-7b", "zero=2", 1, gpus, 1, 8)
		took[gpus] = changed(t, p, g, func(j *workload.Job) { j.Offload = workload.OffloadOptimizer })
		plain := changed(t, p, g, func(*workload.Job) {})
		if took[gpus].Step <= plain.Step || took[gpus].Memory.Total() >= plain.Memory.Total() {
			t.Errorf("%d GPUs: offloaded %g s and %g bytes, else %g s and %g bytes", gpus, took[gpus].Step,
				took[gpus].Memory.Total(), plain.Step, plain.Memory.Total())
		}
	}
	// Eight update an eighth each, with an eighth of the memory's rate.
	if a, b := took[1].Optimizer, took[8].Optimizer; math.Abs(float64(a/b)-1) > 1e-9 {
		t.Errorf("the update takes %g s by one GPU and %g s by eight", a, b)
	}
	at := func(r *step.Result) *step.Traffic {
		for i := range r.Traffic {
			if r.Traffic[i].Group == step.ToHost {
				return &r.Traffic[i]
			}
		}
		t.Fatal("nothing goes to the host")
		return nil
	}
	one, eight := at(took[1]), at(took[8])
	rate := func(x *step.Traffic) float64 { return float64(x.Bytes) / (float64(x.Time) / x.Calls) }
	alone, shared := rate(one), rate(eight)
	t.Logf("a GPU copies %.1f GB/s alone (%s), %.1f GB/s beside seven (%s)", alone/1e9, one.Limit, shared/1e9, eight.Limit)
	if shared > alone/1.9 { // two GPUs of a DGX A100 share a switch to the host
		t.Error("GPUs behind one switch do not share its link to the host")
	}
}

// Parameters in the host's memory take less of the GPU and more of the link.
func TestOffloadedParameters(t *testing.T) {
	p, g := prepared(t, "dgx-a100", "a100-80", "llama2-7b", "zero=3", 1, 8, 1, 8)
	state := changed(t, p, g, func(j *workload.Job) { j.Offload = workload.OffloadOptimizer })
	all := changed(t, p, g, func(j *workload.Job) { j.Offload = workload.OffloadParams })
	if all.Memory.Params != 0 || all.Memory.Host <= state.Memory.Host || all.Step <= state.Step {
		t.Errorf("parameters offloaded: %g s and %+v; the optimizer only: %g s and %+v", all.Step, all.Memory, state.Step,
			state.Memory)
	}
}

// Frozen weights travel for the forward and the backward pass of every micro-batch; they have no gradients, so that
// what goes to the host is that of adapters.
func TestOffloadedFrozenWeights(t *testing.T) {
	p, g := prepared(t, "dgx-a100", "a100-80", "llama2-7b", "zero=0", 1, 1, 1, 8)
	moved := func(change func(*workload.Job)) *step.Traffic {
		r := changed(t, p, g, func(j *workload.Job) {
			j.Offload, j.LoRA = workload.OffloadParams, workload.LoRA{Rank: 16}
			change(j)
		})
		for i := range r.Traffic {
			if r.Traffic[i].Group == step.ToHost {
				return &r.Traffic[i]
			}
		}
		t.Fatal("nothing goes to the host or comes from there")
		return nil
	}
	params := float64(p.Job().Model.Params())
	frozen := moved(func(*workload.Job) {})
	whole := moved(func(j *workload.Job) { j.LoRA = workload.LoRA{} })
	// bytes a parameter and micro-batch
	total := func(x *step.Traffic) float64 { return float64(x.Bytes) * x.Calls / 8 / params }
	if of := total(frozen); of < 2*2 || of > 2*2*1.02 {
		t.Errorf("frozen weights: %g bytes of each move, expected 2 there and little more than 2 again", of)
	}
	if of := total(whole); math.Abs(of-3*2) > 0.01 {
		t.Errorf("trained weights: %g bytes of each move, expected 2 twice and a gradient", of)
	}
}
