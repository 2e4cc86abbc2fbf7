package workload

import "fmt"

// GPT2 are the blocks of a GPT-2: learned positions, norms before, biases, GELU, the head tied
// to the embedding. Names and order are those of Hugging Face's GPT2LMHeadModel.
func GPT2(d Dims) []Block {
	d = d.filled()
	h := d.Hidden
	blocks := []Block{{Name: "transformer", Kind: Entry, Parts: []Part{
		{Name: "wte", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut},
		{Name: "wpe", Kind: Lookup, In: d.Context, Out: h},
	}}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("transformer.h.%d", i), Kind: Layer, Parts: []Part{
			{Name: "ln_1", Kind: Norm, Out: h, Bias: true},
			{Name: "attn.c_attn", In: h, Out: 3 * h, Bias: true, Turned: true, Cut: ByOut},
			d.attention(true),
			{Name: "attn.c_proj", In: h, Out: h, Bias: true, Turned: true, Cut: ByIn},
			{Name: "ln_2", Kind: Norm, Out: h, Bias: true},
			{Name: "mlp.c_fc", In: h, Out: d.FFN, Bias: true, Turned: true, Cut: ByOut},
			{Name: "mlp.c_proj", In: d.FFN, Out: h, Bias: true, Turned: true, Cut: ByIn},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "transformer.ln_f", Kind: Norm, Out: h, Bias: true},
		{Name: "lm_head", In: h, Out: d.Vocab, Tied: true, Cut: ByOut},
	}})
}

// attention is the part between the products of a layer.
func (d Dims) attention(causal bool) Part {
	return Part{
		Name: "attn", Kind: Attention, Heads: d.Heads, KVHeads: d.KVHeads, HeadDim: d.HeadDim, Causal: causal, Cut: ByOut,
	}
}

// Llama are the blocks of a Llama: rotary positions, RMS norms, no biases, a gated MLP, a head
// of its own, keys and values shared by groups of heads. Names and order are those of Hugging
// Face's LlamaForCausalLM, which registers the norms of a layer last.
func Llama(d Dims) []Block { return llama(d, false, false) }

// llama are those blocks with what its descendants change: biases of queries, keys and values,
// and a head tied to the embedding.
func llama(d Dims, biased, tied bool) []Block {
	d = d.filled()
	h, q, kv := d.Hidden, d.Heads*d.HeadDim, d.KVHeads*d.HeadDim
	blocks := []Block{{
		Name: "model", Kind: Entry, Parts: []Part{{Name: "embed_tokens", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut}},
	}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("model.layers.%d", i), Kind: Layer, Parts: []Part{
			{Name: "self_attn.q_proj", In: h, Out: q, Bias: biased, Cut: ByOut},
			{Name: "self_attn.k_proj", In: h, Out: kv, Bias: biased, Cut: ByOut},
			{Name: "self_attn.v_proj", In: h, Out: kv, Bias: biased, Cut: ByOut},
			{Name: "self_attn.o_proj", In: q, Out: h, Cut: ByIn},
			d.attention(true),
			{Name: "mlp.gate_proj", In: h, Out: d.FFN, Cut: ByOut},
			{Name: "mlp.up_proj", In: h, Out: d.FFN, Cut: ByOut},
			{Name: "mlp.down_proj", In: d.FFN, Out: h, Cut: ByIn},
			{Name: "input_layernorm", Kind: Norm, Out: h},
			{Name: "post_attention_layernorm", Kind: Norm, Out: h},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "model.norm", Kind: Norm, Out: h},
		{Name: "lm_head", In: h, Out: d.Vocab, Tied: tied, Cut: ByOut},
	}})
}

// BERT are the blocks of a BERT with both heads of its pretraining. Names and order are those
// of Hugging Face's BertForPreTraining.
func BERT(d Dims) []Block {
	d = d.filled()
	h := d.Hidden
	blocks := []Block{{Name: "bert.embeddings", Kind: Entry, Parts: []Part{
		{Name: "word_embeddings", Kind: Lookup, In: d.Vocab, Out: h, Cut: ByOut},
		{Name: "position_embeddings", Kind: Lookup, In: d.Context, Out: h},
		{Name: "token_type_embeddings", Kind: Lookup, In: 2, Out: h},
		{Name: "LayerNorm", Kind: Norm, Out: h, Bias: true},
	}}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("bert.encoder.layer.%d", i), Kind: Layer, Parts: []Part{
			{Name: "attention.self.query", In: h, Out: h, Bias: true, Cut: ByOut},
			{Name: "attention.self.key", In: h, Out: h, Bias: true, Cut: ByOut},
			{Name: "attention.self.value", In: h, Out: h, Bias: true, Cut: ByOut},
			d.attention(false),
			{Name: "attention.output.dense", In: h, Out: h, Bias: true, Cut: ByIn},
			{Name: "attention.output.LayerNorm", Kind: Norm, Out: h, Bias: true},
			{Name: "intermediate.dense", In: h, Out: d.FFN, Bias: true, Single: true, Cut: ByOut},
			{Name: "output.dense", In: d.FFN, Out: h, Bias: true, Cut: ByIn},
			{Name: "output.LayerNorm", Kind: Norm, Out: h, Bias: true},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "bert.pooler.dense", In: h, Out: h, Bias: true, Once: true},
		{Name: "cls.predictions.bias", Kind: Added, Out: d.Vocab, Suffix: "-"},
		{Name: "cls.predictions.transform.dense", In: h, Out: h, Bias: true},
		{Name: "cls.predictions.transform.LayerNorm", Kind: Norm, Out: h, Bias: true},
		{Name: "cls.predictions.decoder", In: h, Out: d.Vocab, Tied: true, Cut: ByOut},
		{Name: "cls.seq_relationship", In: h, Out: 2, Bias: true, Once: true},
	}})
}

// RoBERTa are the blocks of a BERT that only fills in words, with so many types of tokens: no
// pooler, a product, a norm and the tied embedding with a bias at the end. Names are those of BERT.
func RoBERTa(d Dims, types int64) []Block {
	blocks := BERT(d)
	entry, exit := &blocks[0], &blocks[len(blocks)-1]
	entry.Parts[2].In = types
	if types == 0 {
		entry.Parts = append(entry.Parts[:2:2], entry.Parts[3])
	}
	exit.Parts = exit.Parts[1:5:5] // without the pooler and the guess of the next sentence
	return blocks
}

// ViT are the blocks of a vision transformer on pictures of three colours cut into square
// patches; Vocab is the number of classes and Context that of patches and the class token.
// Names and order are those of torchvision's VisionTransformer.
func ViT(d Dims, patch int64) []Block {
	d = d.filled()
	h := d.Hidden
	blocks := []Block{{Kind: Entry, Parts: []Part{
		{Name: "class_token", Kind: Added, Out: h, Shape: []int64{1, 1, h}, Suffix: "-"},
		{Name: "conv_proj", In: 3 * patch * patch, Out: h, Shape: []int64{h, 3, patch, patch}, Bias: true},
		{Name: "encoder.pos_embedding", Kind: Added, Out: h, Shape: []int64{1, d.Context, h}, Suffix: "-"},
	}}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("encoder.layers.encoder_layer_%d", i), Kind: Layer, Parts: []Part{
			{Name: "ln_1", Kind: Norm, Out: h, Bias: true},
			{Name: "self_attention.in_proj", In: h, Out: 3 * h, Bias: true, Suffix: "_weight", Cut: ByOut},
			d.attention(false),
			{Name: "self_attention.out_proj", In: h, Out: h, Bias: true, Cut: ByIn},
			{Name: "ln_2", Kind: Norm, Out: h, Bias: true},
			{Name: "mlp.0", In: h, Out: d.FFN, Bias: true, Single: true, Cut: ByOut},
			{Name: "mlp.3", In: d.FFN, Out: h, Bias: true, Cut: ByIn},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "encoder.ln", Kind: Norm, Out: h, Bias: true},
		{Name: "heads.head", In: h, Out: d.Vocab, Bias: true, Once: true},
	}})
}
