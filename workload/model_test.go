package workload_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/workload"
)

// Every model has the number of parameters that its source states.
func TestPublishedCounts(t *testing.T) {
	names := map[string]bool{}
	for _, m := range workload.Models() {
		got := m.Params()
		if off := math.Abs(float64(got-m.Published)) / float64(m.Published); off > m.Rounded {
			t.Errorf("%s: %d parameters; %s says %d", m.Name, got, m.PublishedSource, m.Published)
		}
		if names[m.Name] || m.Name != strings.ToLower(m.Name) || m.Title == "" || m.Source == "" || m.PublishedSource == "" ||
			strings.Contains(m.Source+m.PublishedSource, "%") {
			t.Errorf("%+v", m)
		}
		names[m.Name] = true
		if err := m.Dims.Check(); err != nil && m.Seq > 1 {
			t.Errorf("%s: %v", m.Name, err)
		}
		seen := map[string]bool{}
		for _, x := range m.Tensors() {
			if seen[x.Name] || x.Count() < 1 || strings.HasPrefix(x.Name, ".") {
				t.Errorf("%s: %v", m.Name, x)
			}
			seen[x.Name] = true
		}
	}
	for _, name := range []string{
		"gpt2", "gpt2-small", "GPT2-Large", "gpt3-175b", "bert-large", "vit-b16", "llama2-70b", "llama3-405b", "bloom-176b",
		"opt-175b", "megatron-1t", "mixtral-8x7b", "deepseek-v3", "grok-1", "nemotron4-340b", "mpt-7b",
	} {
		if _, err := workload.Find(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := workload.Find("gpt5"); err == nil || !strings.Contains(err.Error(), "did you mean gpt2?") {
		t.Errorf("gpt5: %v", err)
	}
}

// What a token passes of a mixture of experts, as its source states it.
func TestActive(t *testing.T) {
	for name, want := range map[string]float64{
		"mixtral-8x7b": 12.9e9, "mixtral-8x22b": 39.1e9, "deepseek-v2": 21e9, "deepseek-v3": 37e9, "gpt2": 124_439_808,
	} {
		m, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(m.Active()); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: a token passes %.4g parameters; expected %.4g", name, got, want)
		}
	}
	m, _ := workload.Find("mixtral-8x7b")
	all := m.Blocks[1].Tensors()
	if len(all) != 5+3*8+2 || all[5].String() != "model.layers.0.block_sparse_moe.experts.0.w1.weight[14336 4096]" ||
		all[8].Name != "model.layers.0.block_sparse_moe.experts.1.w1.weight" {
		t.Errorf("a layer of Mixtral: %v", all)
	}
}

// Ranks that share experts divide the parameters and not the work.
func TestExpertsAreShared(t *testing.T) {
	m, _ := workload.Find("mixtral-8x7b")
	job := func(ep int) *workload.Job {
		return &workload.Job{
			Model: m, Split: workload.Split{DP: 8, EP: ep}, Seq: 4096, MicroBatch: 1, GlobalBatch: 8, Precision: workload.BF16,
			Kernels: workload.Fused,
		}
	}
	b := &m.Blocks[1]
	flops := func(j *workload.Job) (sum float64) {
		for _, x := range j.Pass(b).Forward {
			if x.Kind == workload.Product {
				sum += x.Flops
			}
		}
		return sum
	}
	one, eight := job(1), job(8)
	if err := eight.Check(); err != nil {
		t.Fatal(err)
	}
	if a, b := flops(one), flops(eight); a != b {
		t.Errorf("%g operations with ep=1, %g with ep=8", a, b)
	}
	experts := 3.0 * 4096 * 14336
	if got, want := one.Params(b)-eight.Params(b), 7*experts; got != want {
		t.Errorf("ep=8 spares %g parameters; expected %g", got, want)
	}
	if all, summed := eight.Summed(b); summed != experts || all != eight.Params(b) || eight.Split.SameExperts() != 1 {
		t.Errorf("%g gradients of experts, which %d ranks hold; expected %g and one", summed, eight.Split.SameExperts(),
			experts)
	}
	for text, want := range map[string]string{
		"ep=3,dp=6": "does not divide the 8 experts", "ep=8,dp=4": "does not divide the 4 ranks",
	} {
		s, err := workload.ParseSplit(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %q", text, err, want)
		}
	}
	dense, _ := workload.Find("gpt2")
	if err := (workload.Split{DP: 8, EP: 8}).Check(dense); err == nil || !strings.Contains(err.Error(), "no experts") {
		t.Errorf("experts of GPT-2: %v", err)
	}
}

// Names, shapes and order are those of the frameworks: buckets of gradients follow from them.
func TestTensorsAreTheFrameworks(t *testing.T) {
	for name, want := range map[string]string{
		"gpt2": `transformer.wte.weight[50257 768] transformer.wpe.weight[1024 768] transformer.h.0.ln_1.weight[768] transformer.h.0.ln_1.bias[768]
			transformer.h.0.attn.c_attn.weight[768 2304] transformer.h.0.attn.c_attn.bias[2304] transformer.h.0.attn.c_proj.weight[768 768] transformer.h.0.attn.c_proj.bias[768]
			transformer.h.0.ln_2.weight[768] transformer.h.0.ln_2.bias[768] transformer.h.0.mlp.c_fc.weight[768 3072] transformer.h.0.mlp.c_fc.bias[3072]
			transformer.h.0.mlp.c_proj.weight[3072 768] transformer.h.0.mlp.c_proj.bias[768] … transformer.ln_f.weight[768] transformer.ln_f.bias[768]`,
		"llama3-8b": `model.embed_tokens.weight[128256 4096] model.layers.0.self_attn.q_proj.weight[4096 4096] model.layers.0.self_attn.k_proj.weight[1024 4096]
			model.layers.0.self_attn.v_proj.weight[1024 4096] model.layers.0.self_attn.o_proj.weight[4096 4096] model.layers.0.mlp.gate_proj.weight[14336 4096]
			model.layers.0.mlp.up_proj.weight[14336 4096] model.layers.0.mlp.down_proj.weight[4096 14336] model.layers.0.input_layernorm.weight[4096]
			model.layers.0.post_attention_layernorm.weight[4096] … model.norm.weight[4096] lm_head.weight[128256 4096]`,
		"bert-base": `bert.embeddings.word_embeddings.weight[30522 768] bert.embeddings.position_embeddings.weight[512 768] bert.embeddings.token_type_embeddings.weight[2 768]
			bert.embeddings.LayerNorm.weight[768] bert.embeddings.LayerNorm.bias[768] bert.encoder.layer.0.attention.self.query.weight[768 768] …
			bert.pooler.dense.weight[768 768] bert.pooler.dense.bias[768] cls.predictions.bias[30522] cls.predictions.transform.dense.weight[768 768]
			cls.predictions.transform.dense.bias[768] cls.predictions.transform.LayerNorm.weight[768] cls.predictions.transform.LayerNorm.bias[768]
			cls.seq_relationship.weight[2 768] cls.seq_relationship.bias[2]`,
		"vit-b16": `class_token[1 1 768] conv_proj.weight[768 3 16 16] conv_proj.bias[768] encoder.pos_embedding[1 197 768]
			encoder.layers.encoder_layer_0.ln_1.weight[768] encoder.layers.encoder_layer_0.ln_1.bias[768]
			encoder.layers.encoder_layer_0.self_attention.in_proj_weight[2304 768] encoder.layers.encoder_layer_0.self_attention.in_proj_bias[2304]
			encoder.layers.encoder_layer_0.self_attention.out_proj.weight[768 768] … encoder.ln.weight[768] encoder.ln.bias[768] heads.head.weight[1000 768] heads.head.bias[1000]`,
	} {
		m, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range m.Tensors() {
			got = append(got, x.String())
		}
		all := strings.Join(got, " ")
		first, last, _ := strings.Cut(strings.Join(strings.Fields(want), " "), " … ")
		if !strings.HasPrefix(all, first) || !strings.HasSuffix(all, last) {
			t.Errorf("%s: %s … %s", name, strings.Join(got[:min(16, len(got))], " "),
				strings.Join(got[max(0, len(got)-10):], " "))
		}
	}
}

// The operations of a GPT are those of its products: twelve squares of the width a layer, the
// head, and the scores.
func TestForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heads := rapid.Int64Range(1, 16).Draw(t, "heads")
		d := workload.Dims{
			Layers: rapid.Int64Range(1, 12).Draw(t, "layers"), Hidden: heads * rapid.Int64Range(1, 64).Draw(t, "head"),
			Heads: heads,
			Vocab: rapid.Int64Range(1, 1000).Draw(t, "vocab"), Context: 128,
		}
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		m := workload.Model{Blocks: workload.Blocks("gpt2", d)}
		seq := rapid.Int64Range(1, 128).Draw(t, "seq")
		l, h, s, v := float64(d.Layers), float64(d.Hidden), float64(seq), float64(d.Vocab)
		want := 2*s*(12*l*h*h+h*v) + 4*s*s*h*l
		if got := m.Forward(seq); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%v: %g operations, want %g", d, got, want)
		}
		count := d.Layers*(12*d.Hidden*d.Hidden+13*d.Hidden) + d.Vocab*d.Hidden + d.Context*d.Hidden + 2*d.Hidden
		if got := m.Params(); got != count {
			t.Fatalf("%v: %d parameters, want %d", d, got, count)
		}
	})
}

// GPT-3's table D.1 states the operations of training: six a parameter and token.
func TestForwardOfGPT3(t *testing.T) {
	m, err := workload.Find("gpt3-175b")
	if err != nil {
		t.Fatal(err)
	}
	perToken := m.Forward(2048) / 2048
	if ratio := perToken / (2 * 174.6e9); ratio < 0.97 || ratio > 1.05 {
		t.Errorf("%g operations a token, %.3f of two a parameter", perToken, ratio)
	}
}

func TestDimsAreChecked(t *testing.T) {
	good := workload.Dims{Layers: 2, Hidden: 64, Heads: 4, Vocab: 10, Context: 8}
	for name, change := range map[string]func(*workload.Dims){
		"no layers":      func(d *workload.Dims) { d.Layers = 0 },
		"too many":       func(d *workload.Dims) { d.Layers = 1 << 20 },
		"uneven heads":   func(d *workload.Dims) { d.Heads = 5 },
		"uneven groups":  func(d *workload.Dims) { d.KVHeads = 3 },
		"endless vocab":  func(d *workload.Dims) { d.Vocab = 1 << 40 },
		"negative width": func(d *workload.Dims) { d.Hidden = -64 },
	} {
		d := good
		change(&d)
		if d.Check() == nil {
			t.Errorf("%s: %+v was not refused", name, d)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func ExampleModel_Tensors() {
	m, _ := workload.Find("gpt2-large")
	fmt.Println(len(m.Tensors()), "tensors,", m.Params(), "parameters")
	// Output: 436 tensors, 774030080 parameters
}
