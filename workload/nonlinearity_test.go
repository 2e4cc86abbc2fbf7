package workload

import (
	"math"
	"testing"
)

// Without fused kernels a nonlinearity goes through memory as often as its operations do: a formula such as GPT-2's and
// BLOOM's eight times, PyTorch's own GELU (BERT, ViT, GPT-NeoX) and ReLU (OPT) once. Under amp powers give float32, the
// others do not.
func TestEagerNonlinearity(t *testing.T) {
	d := Dims{Layers: 1, Hidden: 512, FFN: 2048, Heads: 8, Vocab: 1000, Context: 256}
	for _, tt := range []struct {
		name       string
		blocks     []Block
		plain, amp float64 // reads and writes of each number, at the rate of copies
	}{
		{"GPT-2", Blocks("gpt2", d), 18, 18 * 2.1},
		{"BLOOM", Blocks("bloom", d), 18, 18 * 2.1},
		{"BERT", Blocks("bert types=2 next", d), 3, 3},
		{"RoBERTa", Blocks("bert types=1", d), 3, 3},
		{"ViT", Blocks("vit patch=16", d), 3, 3},
		{"OPT", Blocks("opt words=512", d), 3, 3},
		{"GPT-NeoX", Blocks("gpt_neox", d), 3, 3},
	} {
		for precision, want := range map[Precision]float64{BF16: tt.plain, AMP: tt.amp} {
			j := &Job{
				Model: &Model{Name: tt.name, Dims: d, Blocks: tt.blocks}, Kernels: Eager, Precision: precision, MicroBatch: 2,
				Seq: 256,
			}
			got := 0.0
			for _, task := range j.Pass(&tt.blocks[1]).Forward {
				if task.Name == "activation" {
					got += float64(task.Bytes) / (2 * 256 * 2048 * precision.Width())
				}
			}
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%s in %v: %v times; expected %v", tt.name, precision, got, want)
			}
		}
	}
}
