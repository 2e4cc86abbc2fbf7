package step_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// measured is a step that was run on one H200.
type measured struct {
	Fwd   float64 `json:"fwd_ms"`
	Bwd   float64 `json:"bwd_ms"`
	Opt   float64 `json:"opt_ms"`
	Step  float64 `json:"step_ms"`
	Peak  float64 `json:"peak_GB"`
	Model string  `json:"model"`
	Batch int64   `json:"batch"`
	Seq   int64   `json:"seq"`
	Amp   bool    `json:"amp"`
	Ckpt  bool    `json:"ckpt"`
	// Compiled steps went through torch.compile.
	Compiled bool `json:"compiled"`
	Arch     struct {
		Layers  int64 `json:"layers"`
		Heads   int64 `json:"heads"`
		KVHeads int64 `json:"kv_heads"`
		Hidden  int64 `json:"hidden"`
		FFN     int64 `json:"ffn"`
		Vocab   int64 `json:"vocab"`
	} `json:"arch"`
}

func (m *measured) job(t *testing.T) *workload.Job {
	d := workload.Dims{
		Layers: m.Arch.Layers, Hidden: m.Arch.Hidden, Heads: m.Arch.Heads, KVHeads: m.Arch.KVHeads, FFN: m.Arch.FFN,
		Vocab: m.Arch.Vocab, Context: m.Seq,
	}
	if d.KVHeads == 0 {
		d.KVHeads = d.Heads
	}
	if d.FFN == 0 {
		d.FFN = 4 * d.Hidden
	}
	model := &workload.Model{Name: m.Model, Dims: d, Seq: m.Seq, Blocks: workload.Blocks("gpt2", d)}
	if m.Arch.KVHeads > 0 {
		model.Blocks = workload.Blocks("llama gated", d)
	}
	j := &workload.Job{
		Model: model, Seq: m.Seq, MicroBatch: m.Batch, GlobalBatch: m.Batch, Precision: workload.BF16,
		Recompute: workload.None, Kernels: workload.Eager,
	}
	if m.Amp {
		j.Precision = workload.AMP
	}
	if m.Ckpt {
		j.Recompute = workload.Full
	}
	if m.Compiled {
		j.Kernels = workload.Compiled
	}
	var err error
	if j.Split, err = j.Split.On(1); err != nil {
		t.Fatal(err)
	}
	return j
}

// TestH200 holds steps of one GPU to measured ones: time, and the peak of memory. Those of
// testdata were measured with measure/onegpu.py.
func TestH200(t *testing.T) {
	own, err := os.ReadFile(filepath.Join("testdata", "h200.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("own", func(t *testing.T) { holdH200(t, own, 0.1, 0.1) })
	t.Run("truth", func(t *testing.T) {
		data, err := os.ReadFile(filepath.Join(corpus.Dir(t), "truth", "h200", "steps.json"))
		if err != nil {
			t.Skip(err)
		}
		holdH200(t, data, 0.1, 0.13) // 1.4 GB of each are of what the process measured before
	})
}

// holdH200 holds the steps of a file: the median error of times, and the greatest of memory.
func holdH200(t *testing.T, data []byte, time, memory float64) {
	var doc struct{ Steps, Compiled []measured }
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset("h200", 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	gpu, _ := hardware.GPUByName("h200")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	var off, full []float64
	for _, m := range append(doc.Steps, doc.Compiled...) {
		j := m.job(t)
		r, err := step.Step(j, g, step.NewFabric(c, l, j.Split, nccl.Newest))
		if err != nil {
			t.Fatal(err)
		}
		have := (r.Memory.Total() - r.Memory.Driver).GB() // which PyTorch does not count
		full = append(full, math.Abs(have/m.Peak-1))
		off = append(off, math.Abs(r.Step.Seconds()*1e3/m.Step-1))
		t.Logf("%-11s batch %2d of %4d, amp %-5v ckpt %-5v compiled %-5v: %6.1f ms, measured %6.1f (%+.0f%%; update %.1f, "+
			"measured %.1f); memory %5.1f GB, measured %5.1f (%+.0f%%)", m.Model, m.Batch, m.Seq, m.Amp, m.Ckpt, m.Compiled,
			r.Step*1e3, m.Step,
			100*(r.Step.Seconds()*1e3/m.Step-1), r.Optimizer*1e3, m.Opt, have, m.Peak, 100*(have/m.Peak-1))
	}
	slices.Sort(off)
	slices.Sort(full)
	t.Logf("time: median %.1f%%, most %.1f%%; memory: median %.1f%%, most %.1f%%", 100*off[len(off)/2],
		100*off[len(off)-1], 100*full[len(full)/2], 100*full[len(full)-1])
	if off[len(off)/2] > time || full[len(full)-1] > memory {
		t.Errorf("expected a median of at most %.0f%% in time and %.0f%% at most in memory", 100*time, 100*memory)
	}
}

// BenchmarkPrice is one step of a large job that was prepared.
func BenchmarkPrice(b *testing.B) {
	m, err := workload.Find("gpt3-175b")
	if err != nil {
		b.Fatal(err)
	}
	c, err := hardware.Preset("dgx-a100", 128)
	if err != nil {
		b.Fatal(err)
	}
	l, err := nccl.Block(c, 128, 8)
	if err != nil {
		b.Fatal(err)
	}
	j := &workload.Job{
		Model: m, Seq: 2048, MicroBatch: 1, GlobalBatch: 1536, Precision: workload.BF16, Recompute: workload.Full,
		Kernels: workload.Fused,
	}
	if j.Split, err = (workload.Split{TP: 8, PP: 8}).On(1024); err != nil {
		b.Fatal(err)
	}
	gpu, _ := hardware.GPUByName("a100-80")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		b.Fatal(err)
	}
	p := step.Prepare(j, step.NewFabric(c, l, j.Split, nccl.Newest))
	for b.Loop() {
		if _, err := p.Price(g); err != nil {
			b.Fatal(err)
		}
	}
}
