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

// TestPublishedPictures holds pictures a second of one GPU to what NVIDIA publishes of its DeepLearningExamples (commit
// 729963dd): ConvNets/resnet50v1.5/README.md in the container of 21.03. None of its figures are fitted.
func TestPublishedPictures(t *testing.T) {
	for _, x := range []struct {
		model, gpu, preset string
		batch              int64
		precision          workload.Precision
		first              bool
		want, off          float64 // samples/s, and how far off it may be
	}{
		{"resnet50", "a100-80", "dgx-a100", 256, workload.AMPH, false, 2470, 0.15},
		{"resnet50", "a100-80", "dgx-a100", 256, workload.TF32, true, 938, 0.2},
		{"resnet50", "v100-16", "dgx1v", 256, workload.AMPH, false, 1200, 0.15},
		{"resnet50", "v100-16", "dgx1v", 128, workload.FP32, true, 367, 0.15},
	} {
		m, err := workload.Find(x.model)
		if err != nil {
			t.Fatal(err)
		}
		c, err := hardware.Preset(x.preset, 1)
		if err != nil {
			t.Fatal(err)
		}
		l, err := nccl.Block(c, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		gpu, ok := hardware.GPUByName(x.gpu)
		if !ok {
			t.Fatalf("no GPU %s", x.gpu)
		}
		g, err := step.NewGPU(gpu, step.Default())
		if err != nil {
			t.Fatal(err)
		}
		j := &workload.Job{
			Model: m, Seq: m.Seq, MicroBatch: x.batch, GlobalBatch: x.batch, Precision: x.precision, Recompute: workload.None,
			Kernels: workload.Eager, ChannelsFirst: x.first,
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
		t.Logf("%s on %s, %s: %.0f a second, published %.0f (%+.1f%%); memory %.1f GB", x.model, x.gpu, x.precision,
			r.TokensPerSecond(), x.want, 100*(r.TokensPerSecond()/x.want-1), r.Memory.Total().GB())
		if off := math.Abs(math.Log(r.TokensPerSecond() / x.want)); off > x.off {
			t.Errorf("%s on %s in %s: %.0f a second; published are %.0f", x.model, x.gpu, x.precision, r.TokensPerSecond(),
				x.want)
		}
		if r.Memory.Total() > 1.15*unit.Volume(gpu.Memory) {
			t.Errorf("%s on %s: %v of memory, and it ran there", x.model, x.gpu, r.Memory.Total())
		}
		if r.MFU <= 0 || r.MFU > 0.6 {
			t.Errorf("%s on %s: MFU %.2f", x.model, x.gpu, r.MFU)
		}
	}
}
