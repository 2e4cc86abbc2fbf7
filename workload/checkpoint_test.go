package workload_test

import (
	"testing"

	"busbar.dev/unit"
	"busbar.dev/workload"
)

// A checkpoint has 14 bytes a parameter in bf16 with float32 state (2 of weights, 4 of their copy, 8 of
// moments), 12 in float32, and does not depend on how the model is spread.
func TestCheckpointBytes(t *testing.T) {
	m, err := workload.Find("llama3-405b")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		p    workload.Precision
		f    workload.Kernels
		each unit.Volume
	}{
		{workload.BF16, workload.Fused, 14},
		{workload.FP32, workload.Eager, 12},
		{workload.AMP, workload.Eager, 12},
		{workload.BF16, workload.Eager, 6},
	} {
		for _, s := range []workload.Split{{DP: 1}, {DP: 64, TP: 8, PP: 16, ZeRO: 1}} {
			j := &workload.Job{Model: m, Split: s, Precision: x.p, Kernels: x.f}
			if got, want := j.CheckpointBytes(), x.each*405_853_388_800; got != want {
				t.Errorf("%s, %s: %g bytes; expected %g", x.p, x.f, got, want)
			}
		}
	}
	// rank × (in + out) of queries, of keys and values, which are 1024 wide, and of the output, in 126 layers
	j := &workload.Job{
		Model: m, Split: workload.Split{TP: 8}, Precision: workload.BF16, Kernels: workload.Fused,
		LoRA: workload.LoRA{Rank: 16, Attention: true},
	}
	if got, want := j.CheckpointBytes(), unit.Volume(14*126*16*(2*16384+2*(16384+1024)+2*16384)); got != want {
		t.Errorf("adapters: %g bytes; expected %g", got, want)
	}
}
