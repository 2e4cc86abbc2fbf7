package workload

import "fmt"

// BLOOM are the blocks of a BLOOM: no positions, a norm after the embedding, biases, the head
// tied. Names and order are those of Hugging Face's BloomForCausalLM.
func BLOOM(d Dims) []Block {
	d = d.filled()
	h := d.Hidden
	blocks := []Block{{Name: "transformer", Kind: Entry, Parts: []Part{
		{Name: "word_embeddings", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut},
		{Name: "word_embeddings_layernorm", Kind: Norm, Out: h, Bias: true},
	}}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("transformer.h.%d", i), Kind: Layer, Parts: []Part{
			{Name: "input_layernorm", Kind: Norm, Out: h, Bias: true},
			{Name: "self_attention.query_key_value", In: h, Out: 3 * h, Bias: true, Cut: ByOut},
			d.attention(true),
			{Name: "self_attention.dense", In: h, Out: h, Bias: true, Cut: ByIn},
			{Name: "post_attention_layernorm", Kind: Norm, Out: h, Bias: true},
			{Name: "mlp.dense_h_to_4h", In: h, Out: d.FFN, Bias: true, Cut: ByOut},
			{Name: "mlp.dense_4h_to_h", In: d.FFN, Out: h, Bias: true, Cut: ByIn},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "transformer.ln_f", Kind: Norm, Out: h, Bias: true},
		{Name: "lm_head", In: h, Out: d.Vocab, Tied: true, Cut: ByOut},
	}})
}

// OPT are the blocks of an OPT: learned positions, two more than the context has, biases, the
// head tied. Where words are narrower than layers (350M), two products lie between, and norms
// come after, so that there is none at the end. Names are those of Hugging Face's
// OPTForCausalLM; its order has the norm of attention after it.
func OPT(d Dims, words int64) []Block {
	d = d.filled()
	h := d.Hidden
	narrow := words != h
	entry := []Part{
		{Name: "embed_tokens", Kind: Lookup, In: d.Vocab, Out: words, Cut: ByOut},
		{Name: "embed_positions", Kind: Lookup, In: d.Context + 2, Out: h},
	}
	var exit []Part
	if narrow {
		entry = append(entry, Part{Name: "project_in", In: words, Out: h})
		exit = append(exit, Part{Name: "model.decoder.project_out", In: h, Out: words})
	} else {
		exit = append(exit, Part{Name: "model.decoder.final_layer_norm", Kind: Norm, Out: h, Bias: true})
	}
	blocks := []Block{{Name: "model.decoder", Kind: Entry, Parts: entry}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("model.decoder.layers.%d", i), Kind: Layer, Parts: []Part{
			{Name: "self_attn.k_proj", In: h, Out: h, Bias: true, Cut: ByOut},
			{Name: "self_attn.v_proj", In: h, Out: h, Bias: true, Cut: ByOut},
			{Name: "self_attn.q_proj", In: h, Out: h, Bias: true, Cut: ByOut},
			{Name: "self_attn.out_proj", In: h, Out: h, Bias: true, Cut: ByIn},
			d.attention(true),
			{Name: "self_attn_layer_norm", Kind: Norm, Out: h, Bias: true},
			{Name: "fc1", In: h, Out: d.FFN, Bias: true, Single: true, Cut: ByOut},
			{Name: "fc2", In: d.FFN, Out: h, Bias: true, Cut: ByIn},
			{Name: "final_layer_norm", Kind: Norm, Out: h, Bias: true},
		}})
	}
	return append(blocks, Block{
		Kind: Exit, Parts: append(exit, Part{Name: "lm_head", In: words, Out: d.Vocab, Tied: true, Cut: ByOut}),
	})
}

// NeoX are the blocks of a GPT-NeoX or Pythia: rotary positions, biases, a head of its own.
// Names and order are those of Hugging Face's GPTNeoXForCausalLM.
func NeoX(d Dims) []Block {
	d = d.filled()
	h := d.Hidden
	blocks := []Block{{
		Name: "gpt_neox", Kind: Entry, Parts: []Part{{Name: "embed_in", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut}},
	}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("gpt_neox.layers.%d", i), Kind: Layer, Parts: []Part{
			{Name: "input_layernorm", Kind: Norm, Out: h, Bias: true},
			{Name: "post_attention_layernorm", Kind: Norm, Out: h, Bias: true},
			{Name: "attention.query_key_value", In: h, Out: 3 * h, Bias: true, Cut: ByOut},
			d.attention(true),
			{Name: "attention.dense", In: h, Out: h, Bias: true, Cut: ByIn},
			{Name: "mlp.dense_h_to_4h", In: h, Out: d.FFN, Bias: true, Single: true, Cut: ByOut},
			{Name: "mlp.dense_4h_to_h", In: d.FFN, Out: h, Bias: true, Cut: ByIn},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "gpt_neox.final_layer_norm", Kind: Norm, Out: h, Bias: true},
		{Name: "embed_out", In: h, Out: d.Vocab, Cut: ByOut},
	}})
}

// Nemotron are the blocks of a Nemotron-4: rotary positions, norms that shift, no other biases,
// a squared ReLU between two products, a head of its own. Names and order are those of Hugging
// Face's NemotronForCausalLM.
func Nemotron(d Dims) []Block {
	d = d.filled()
	h, q, kv := d.Hidden, d.Heads*d.HeadDim, d.KVHeads*d.HeadDim
	blocks := []Block{{
		Name: "model", Kind: Entry, Parts: []Part{{Name: "embed_tokens", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut}},
	}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("model.layers.%d", i), Kind: Layer, Parts: []Part{
			{Name: "self_attn.q_proj", In: h, Out: q, Cut: ByOut},
			{Name: "self_attn.k_proj", In: h, Out: kv, Cut: ByOut},
			{Name: "self_attn.v_proj", In: h, Out: kv, Cut: ByOut},
			{Name: "self_attn.o_proj", In: q, Out: h, Cut: ByIn},
			d.attention(true),
			{Name: "mlp.up_proj", In: h, Out: d.FFN, Cut: ByOut},
			{Name: "mlp.down_proj", In: d.FFN, Out: h, Cut: ByIn},
			{Name: "input_layernorm", Kind: Norm, Out: h, Bias: true},
			{Name: "post_attention_layernorm", Kind: Norm, Out: h, Bias: true},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "model.norm", Kind: Norm, Out: h, Bias: true},
		{Name: "lm_head", In: h, Out: d.Vocab, Cut: ByOut},
	}})
}
