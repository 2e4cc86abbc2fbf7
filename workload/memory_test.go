package workload

import (
	"math"
	"testing"
)

// What a token leaves in a layer, in bytes, is what the operations of each kind of kernels keep: counted by hand of a
// Llama and of a GPT-2 (h hidden units, k those of keys, f of the MLP, a heads), see docs/steps.md.
func TestLeaving(t *testing.T) {
	const h, k, f, a = 4096, 1024, 14336, 32
	d := Dims{Layers: 1, Hidden: h, Heads: a, KVHeads: a * k / h, FFN: f, Vocab: 32000, Context: 4096}
	llama := &Model{Name: "llama", Dims: d, Seq: 4096, Blocks: Blocks("decoder gated", d)}
	d.KVHeads, d.FFN = 0, 4*h
	gpt := &Model{Name: "gpt", Dims: d, Seq: 4096, Blocks: Blocks("gpt2", d)}
	for _, x := range []struct {
		model     *Model
		kernels   Kernels
		precision Precision
		want      float64
	}{
		{llama, Eager, BF16, 20*h + 4*k + 8*f + 4*a},
		{llama, Eager, AMP, 30*h + 4*k + 8*f + 4*a}, // norms in float32, a cast for each product
		{llama, Compiled, BF16, 12*h + 4*k + 6*f + 4*a},
		{llama, Fused, BF16, 14*h + 6*k + 6*f + 4*a},
		{llama, Mixed, BF16, 12*h + 8*k + 8*f + 4*a},
		{gpt, Eager, BF16, 58*h + 4*a}, // a GELU of powers keeps ten times 2f, masks of dropout 2h
		{gpt, Eager, AMP, 86*h + 4*a},
		{gpt, Fused, BF16, 34*h + 4*a}, // Korthikanti et al. 2022, table 2
	} {
		j := &Job{Model: x.model, Seq: 4096, MicroBatch: 1, GlobalBatch: 1, Kernels: x.kernels, Precision: x.precision}
		l := j.leaving(&x.model.Blocks[1])
		if got := l.all.between + l.all.cut; math.Abs(got-x.want) > 1 {
			t.Errorf("%s, %s kernels, %s: %g bytes a token; expected %g", x.model.Name, x.kernels, x.precision, got, x.want)
		}
		if l.cheap.between+l.cheap.cut >= l.all.between+l.all.cut || l.chosen.cut >= l.all.cut+l.all.between {
			t.Errorf("%s, %s kernels, %s: %+v", x.model.Name, x.kernels, x.precision, l)
		}
	}
}

// Layers are cut into stages as frameworks do it: nanotron by what blocks compute, torchtitan with the embedding and
// the loss as a layer each, others evenly.
func TestPlaces(t *testing.T) {
	d := Dims{Layers: 16, Hidden: 2048, Heads: 32, FFN: 8192, Vocab: 131072, Context: 4096}
	m := &Model{Name: "llama", Dims: d, Seq: 4096, Blocks: Blocks("decoder gated tied", d)}
	for _, x := range []struct {
		by   Staging
		pp   int
		want []int
	}{
		{StageEven, 2, []int{0, 9, 18}},
		{StageEven, 9, []int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}},
		{StageCost, 2, []int{0, 12, 18}},
		{StageCost, 4, []int{0, 7, 12, 17, 18}},
		{StageSlots, 4, []int{0, 5, 10, 14, 18}},
	} {
		j := &Job{
			Model: m, Seq: 4096, MicroBatch: 1, GlobalBatch: 64, Staging: x.by, Split: Split{PP: x.pp}, Kernels: Mixed,
			Precision: BF16,
		}
		got := j.Places(m.Outline())
		for i := range x.want {
			if len(got) != len(x.want) || got[i] != x.want[i] {
				t.Errorf("%q, pp=%d: places begin at %v; expected %v", x.by, x.pp, got, x.want)
				break
			}
		}
	}
}

// The fullest stage is never below any stage, whichever framework cuts them, and holds all where there is one.
func TestFullestStage(t *testing.T) {
	for _, framework := range []string{"nanotron", "megatron", "torchtitan"} {
		for _, pp := range []int{1, 2, 4, 8} {
			j := jobOf(t, "llama3-8b", framework, Split{DP: 2, PP: pp})
			j.Recompute = None
			most := 0.0
			for r := range pp {
				most = max(most, float64(j.StageMemory(r).Total()))
			}
			if got := float64(j.Memory().Total()); math.Abs(got/most-1) > 1e-9 {
				t.Errorf("%s, pp=%d: %g bytes; the fullest stage has %g", framework, pp, got, most)
			}
		}
	}
}
