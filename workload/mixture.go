package workload

import "fmt"

// Mixtral are the blocks of a Mixtral: a Llama whose MLP is a choice of experts. Names and
// order are those of Hugging Face's MixtralForCausalLM.
func Mixtral(d Dims) []Block {
	d = d.filled()
	h, q, kv := d.Hidden, d.Heads*d.HeadDim, d.KVHeads*d.HeadDim
	blocks := []Block{{
		Name: "model", Kind: Entry, Parts: []Part{{Name: "embed_tokens", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut}},
	}}
	for i := range d.Layers {
		parts := []Part{
			{Name: "self_attn.q_proj", In: h, Out: q, Cut: ByOut},
			{Name: "self_attn.k_proj", In: h, Out: kv, Cut: ByOut},
			{Name: "self_attn.v_proj", In: h, Out: kv, Cut: ByOut},
			{Name: "self_attn.o_proj", In: q, Out: h, Cut: ByIn},
			d.attention(true),
			{Name: "block_sparse_moe.gate", In: h, Out: d.Experts},
		}
		parts = append(parts, d.experts("block_sparse_moe.experts.%d.", "w1", "w3", "w2")...)
		blocks = append(blocks, Block{Name: fmt.Sprintf("model.layers.%d", i), Kind: Layer, Parts: append(parts,
			Part{Name: "input_layernorm", Kind: Norm, Out: h}, Part{Name: "post_attention_layernorm", Kind: Norm, Out: h})})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "model.norm", Kind: Norm, Out: h},
		{Name: "lm_head", In: h, Out: d.Vocab, Cut: ByOut},
	}})
}

// experts are the three products of a gated MLP that there are many of.
func (d Dims) experts(before, gate, up, down string) []Part {
	h, f := d.Hidden, d.ExpertFFN
	return []Part{
		{Name: before + gate, In: h, Out: f, Cut: ByOut, Experts: d.Experts, TopK: d.TopK},
		{Name: before + up, In: h, Out: f, Cut: ByOut, Experts: d.Experts, TopK: d.TopK},
		{Name: before + down, In: f, Out: h, Cut: ByIn, Experts: d.Experts, TopK: d.TopK},
	}
}

// Grok are the blocks of Grok-1: four norms a layer, the head tied to the embedding. Names are
// made up after Mixtral's; the release has none of a framework.
func Grok(d Dims) []Block {
	blocks := Mixtral(d)
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case Layer:
			b.Parts = append(b.Parts, Part{Name: "pre_moe_norm", Kind: Norm, Out: d.Hidden}, Part{
				Name: "post_moe_norm", Kind: Norm, Out: d.Hidden,
			})
		case Exit:
			b.Parts[1].Tied = true
		}
	}
	return blocks
}

// Latent are the widths of multi-head latent attention: queries, and keys and values, go through
// narrow vectors; a head's key has a part without positions and one with them.
type Latent struct {
	Q      int64 `json:"q_lora_rank" csv:"q_lora_rank,optional"`
	KV     int64 `json:"kv_lora_rank" csv:"kv_lora_rank,optional"`
	Plain  int64 `json:"qk_nope_head_dim" csv:"qk_nope_head_dim,optional"`
	Rotary int64 `json:"qk_rope_head_dim" csv:"qk_rope_head_dim,optional"`
	Value  int64 `json:"v_head_dim" csv:"v_head_dim,optional"`
}

// DeepSeek are the blocks of DeepSeek-V2 and V3: latent attention, some dense layers first, then
// many small experts beside shared ones. Corrected says that the router has a bias for each
// expert, as V3's does. Names and order are those of the checkpoints on Hugging Face.
func DeepSeek(d Dims, a Latent, corrected bool) []Block { return deepSeek(d, a, corrected, 1) }

// deepSeek has experts in every so-manieth layer, the first counted, after the dense ones.
func deepSeek(d Dims, a Latent, corrected bool, every int64) []Block {
	d = d.filled()
	h := d.Hidden
	blocks := []Block{{
		Name: "model", Kind: Entry, Parts: []Part{{Name: "embed_tokens", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut}},
	}}
	for i := range d.Layers {
		parts := d.latent(a)
		if i < d.Dense || i%every != 0 {
			parts = append(parts, gatedMLP("mlp.", h, d.FFN)...)
		} else {
			router := Part{Name: "mlp.gate", In: h, Out: d.Experts}
			parts = append(parts, router)
			if corrected {
				parts = append(parts, Part{Name: "mlp.gate.e_score_correction_bias", Kind: Added, Out: d.Experts, Suffix: "-"})
			}
			parts = append(parts, d.experts("mlp.experts.%d.", "gate_proj", "up_proj", "down_proj")...)
			if d.Shared > 0 {
				parts = append(parts, gatedMLP("mlp.shared_experts.", h, d.Shared*d.ExpertFFN)...)
			}
		}
		blocks = append(blocks, Block{Name: fmt.Sprintf("model.layers.%d", i), Kind: Layer, Parts: append(parts,
			Part{Name: "input_layernorm", Kind: Norm, Out: h}, Part{Name: "post_attention_layernorm", Kind: Norm, Out: h})})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "model.norm", Kind: Norm, Out: h},
		{Name: "lm_head", In: h, Out: d.Vocab, Cut: ByOut},
	}})
}

// latent is the attention of a layer. A head's scores are over its keys' two parts and its sums
// over values; their mean is its width here.
func (d Dims) latent(a Latent) []Part {
	h, n := d.Hidden, d.Heads
	core := d.attention(true)
	core.HeadDim = (a.Plain + a.Rotary + a.Value) / 2
	queries := []Part{{Name: "self_attn.q_proj", In: h, Out: n * (a.Plain + a.Rotary), Cut: ByOut}} // DeepSeek-V2-Lite's
	if a.Q > 0 {
		queries = []Part{
			{Name: "self_attn.q_a_proj", In: h, Out: a.Q},
			{Name: "self_attn.q_a_layernorm", Kind: Norm, Out: a.Q},
			{Name: "self_attn.q_b_proj", In: a.Q, Out: n * (a.Plain + a.Rotary), Cut: ByOut},
		}
	}
	return append(queries, []Part{
		{Name: "self_attn.kv_a_proj_with_mqa", In: h, Out: a.KV + a.Rotary},
		{Name: "self_attn.kv_a_layernorm", Kind: Norm, Out: a.KV},
		{Name: "self_attn.kv_b_proj", In: a.KV, Out: n * (a.Plain + a.Value), Cut: ByOut},
		core,
		{Name: "self_attn.o_proj", In: n * a.Value, Out: h, Cut: ByIn},
	}...)
}

// gatedMLP is an MLP of three products.
func gatedMLP(before string, h, f int64) []Part {
	return []Part{
		{Name: before + "gate_proj", In: h, Out: f, Cut: ByOut},
		{Name: before + "up_proj", In: h, Out: f, Cut: ByOut},
		{Name: before + "down_proj", In: f, Out: h, Cut: ByIn},
	}
}

// Predicting is the model with so many layers behind it that each predict one more token (DeepSeek-AI 2024,
// DeepSeek-V3, section 2.2): the embedding of the next token and what the layer before gave, normed and brought to one
// width, a layer like the last, and the model's own head with a loss of its own.
func (m *Model) Predicting(n int64) *Model {
	last := -1
	for i := range m.Blocks {
		if m.Blocks[i].Kind == Layer {
			last = i
		}
	}
	if n < 1 || last < 0 || m.Blocks[len(m.Blocks)-1].Kind != Exit {
		return m
	}
	c, h := *m, m.Dims.Hidden
	c.Blocks = append([]Block(nil), m.Blocks[:last+1]...)
	for i := range n {
		parts := []Part{
			{Name: "enorm", Kind: Norm, Out: h},
			{Name: "hnorm", Kind: Norm, Out: h},
			{Name: "eh_proj", In: 2 * h, Out: h, Cut: ByOut},
		}
		c.Blocks = append(c.Blocks, Block{
			Name: fmt.Sprintf("mtp.layers.%d", i), Kind: Layer, Parts: append(parts, m.Blocks[last].Parts...),
		})
	}
	c.Blocks = append(c.Blocks, m.Blocks[last+1:]...)
	exit := m.Blocks[len(m.Blocks)-1]
	exit.Parts = append([]Part(nil), exit.Parts...)
	for i := range exit.Parts {
		if p := &exit.Parts[i]; p.Kind == Matmul {
			p.Tied, p.Bias = true, false
		}
	}
	for i := range n {
		exit.Name = fmt.Sprintf("mtp.heads.%d", i)
		c.Blocks = append(c.Blocks, exit)
	}
	return &c
}
