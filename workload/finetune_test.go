package workload_test

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/workload"
)

// A reference model computes a third of what training does, forward alone, and holds its weights unless adapters are
// trained, which are switched off for it. Packed documents need fewer scores; one document a sequence is as without
// packing.
func TestReferenceAndPacking(t *testing.T) {
	m, err := workload.Find("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	j := workload.Job{
		Model: m, Seq: 8192, MicroBatch: 2, GlobalBatch: 16, Precision: workload.BF16, Kernels: workload.Fused,
		Split: workload.Split{DP: 8, ZeRO: 3},
	}
	model, again := j.FlopsOf(m.Outline())
	dpo := j
	dpo.Reference = true
	_, more := dpo.FlopsOf(m.Outline())
	if again != 0 || math.Abs(more/model-1.0/3) > 1e-9 {
		t.Errorf("a reference computes %g of %g", more, model)
	}
	if got, want := float64(dpo.Memory().Params-j.Memory().Params), 2*float64(m.Params())/8; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("a reference's weights take %g bytes of a GPU; expected %g", got, want)
	}
	dpo.LoRA.Rank, j.LoRA.Rank = 16, 16
	if dpo.Memory().Params != j.Memory().Params {
		t.Error("adapters that are switched off take memory")
	}
	if a, b := len(j.Pass(&m.Blocks[1]).Forward), len(dpo.Pass(&m.Blocks[1]).Forward); b != 2*a {
		t.Errorf("%d tasks forward, %d with a reference", a, b)
	}
	j.LoRA.Rank = 0
	whole, packed := j, j
	whole.Packed, packed.Packed = 8192, 1024
	same, _ := whole.FlopsOf(m.Outline())
	less, _ := packed.FlopsOf(m.Outline())
	scores := 3 * 4 * 16 * 32 * 8192.0 * 8192 * 4096 // of 32 layers, 16 sequences, all heads
	if same != model || math.Abs((model-less)/(scores*7/8)-1) > 1e-9 {
		t.Errorf("%g packed, %g not; expected seven eighths of the %g of scores less", less, model, scores)
	}
	packed.Packed = 9000
	if packed.Check() == nil {
		t.Error("documents longer than sequences")
	}
}

// TestFrameworksOfAdapters: who trains adapters beside frozen weights of how many bits, and who is named instead.
func TestFrameworksOfAdapters(t *testing.T) {
	for _, c := range []struct {
		framework string
		bits      int
		refuses   string
	}{
		{"hf", 4, ""},
		{"hf@4.0", 0, "trains no adapters; these do: nemo"},
		{"torchtune", 4, ""},
		{"nemo", 0, ""},
		{"nemo", 16, ""},
		{"nemo", 4, "no frozen weights of 4 bits; these do: fsdp, hf"},
		{"torchtitan", 0, "trains no adapters"},
		{"megatron", 0, "trains no adapters"},
	} {
		f, err := workload.ParseFramework(c.framework)
		if err != nil {
			t.Fatal(err)
		}
		switch err := f.RefusesLoRA(workload.LoRA{Rank: 16, Bits: c.bits}); {
		case c.refuses == "" && err != nil, c.refuses != "" && (err == nil || !strings.Contains(err.Error(), c.refuses)):
			t.Errorf("%s with %d bits: %v; expected %q", c.framework, c.bits, err, c.refuses)
		}
		if err := f.RefusesLoRA(workload.LoRA{}); err != nil {
			t.Errorf("%s without adapters: %v", c.framework, err)
		}
	}
}

// TestFrameworkAtItsOwnRelease: a name that says its release keeps it whatever the time, and one with an @ of another
// meaning is read by the time.
func TestFrameworkAtItsOwnRelease(t *testing.T) {
	for text, want := range map[string]string{
		"megatron@0.12": "megatron@0.12", "NeMo @ DGX": "nemo@25.02", "nemo": "nemo@25.02",
	} {
		if f, err := workload.FrameworkAt(text, "2025-03"); err != nil || f.ID != want {
			t.Errorf("%q in 2025-03: %v, %v; expected %s", text, f, err, want)
		}
	}
}
