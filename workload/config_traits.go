package workload

// traits are the kinds of config.json whose models are decoders that differ in traits alone, as
// Hugging Face's transformers build them.
var traits = map[string]func(c *config, d *Dims) Traits{
	"gemma": func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(true)} },
	"gemma2": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, Norms: 4, Tied: c.tied(true)}
	},
	"gemma3_text": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, Norms: 4, QKNorm: HeadNorm, Tied: c.tied(true)}
	},
	"smollm3": func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(true)} },
	"olmo3": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, QKNorm: AcrossNorm, Tied: c.tied(false)}
	},
	"seed_oss": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, QKVBias: c.yes("attention_bias", true), OutBias: c.yes("attention_out_bias", false), Tied: c.tied(false)}
	},
	"granitemoe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK = c.number("num_local_experts"), c.number("num_experts_per_tok")
		return Traits{Gated: true, Tied: c.tied(false)}
	},
	"glm4_moe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("n_routed_experts"), c.number("num_experts_per_tok"), c.number("moe_intermediate_size")
		d.Dense = c.number0(0, "first_k_dense_replace")
		t := Traits{Gated: true, QKVBias: c.yes("attention_bias", false), SharedFFN: c.number0(0, "n_shared_experts") * d.ExpertFFN, Tied: c.tied(false)}
		if c.yes("use_qk_norm", false) {
			t.QKNorm = HeadNorm
		}
		return t
	},
	"llama4_text": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_local_experts"), c.number("num_experts_per_tok"), d.FFN
		d.FFN = c.size(d.FFN, "intermediate_size_mlp")
		return Traits{Gated: true, SharedFFN: d.ExpertFFN, Every: c.size(1, "interleave_moe_layer_step"), Tied: c.tied(false)}
	},
	"qwen3": func(c *config, d *Dims) Traits { return Traits{Gated: true, QKNorm: HeadNorm, Tied: c.tied(false)} },
	"qwen3_moe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_experts"), c.number("num_experts_per_tok"), c.number("moe_intermediate_size")
		return c.sparse(d, Traits{Gated: true, QKNorm: HeadNorm, Tied: c.tied(false)})
	},
	"qwen3_next": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_experts"), c.number("num_experts_per_tok"), c.number("moe_intermediate_size")
		linear := Linear{
			Values: c.number("linear_num_value_heads"), Keys: c.number("linear_num_key_heads"), ValueDim: c.number("linear_value_head_dim"),
			KeyDim: c.number("linear_key_head_dim"), Conv: c.size(4, "linear_conv_kernel_dim"),
		}
		c.narrow(linear.Values * linear.ValueDim)
		c.narrow(linear.Keys * linear.KeyDim)
		every := max(1, c.size(4, "full_attention_interval"))
		attends := func(i int64) bool { return (i+1)%every == 0 }
		if c.has("layer_types") {
			attends = c.typed("full_attention")
		}
		return c.sparse(d, Traits{
			Gated: true, QKNorm: HeadNorm, OutputGate: true, SharedFFN: c.number("shared_expert_intermediate_size"), SharedGate: true, Tied: c.tied(false),
			Mixer: c.unless(attends, linear.parts(d.Hidden)),
		})
	},
	"qwen2_moe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_experts"), c.number("num_experts_per_tok"), c.number("moe_intermediate_size")
		return c.sparse(d, Traits{Gated: true, QKVBias: true, SharedFFN: c.number("shared_expert_intermediate_size"), SharedGate: true, Tied: c.tied(false)})
	},
	"olmoe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK = c.number("num_experts"), c.number("num_experts_per_tok")
		return Traits{Gated: true, QKNorm: AcrossNorm, Tied: c.tied(false)}
	},
	"gpt_oss": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK = c.number("num_local_experts"), c.number("num_experts_per_tok")
		return Traits{Gated: true, QKVBias: true, OutBias: true, RouterBias: true, ExpertBias: true, Sinks: true, Tied: c.tied(false)}
	},
	"phi": func(c *config, d *Dims) Traits {
		return Traits{QKVBias: true, OutBias: true, MLPBias: true, Norms: 1, NormBias: true, HeadBias: true, Tied: c.tied(false)}
	},
	"phi3":      func(c *config, d *Dims) Traits { return Traits{Gated: true, Packed: true, Tied: c.tied(false)} },
	"olmo":      func(c *config, d *Dims) Traits { return Traits{Gated: true, NormFree: true, Tied: c.tied(false)} },
	"olmo2":     func(c *config, d *Dims) Traits { return Traits{Gated: true, QKNorm: AcrossNorm, Tied: c.tied(false)} },
	"granite":   func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(false)} },
	"internlm2": func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(false)} },
	"cohere":    func(c *config, d *Dims) Traits { return Traits{Gated: true, Norms: 1, Tied: c.tied(true)} },
	"glm4": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, Packed: true, QKVBias: c.yes("attention_bias", false), Norms: 4, Tied: c.tied(false)}
	},
	"stablelm": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, QKVBias: c.yes("use_qkv_bias", false), NormBias: true, Tied: c.tied(false)}
	},
	"starcoder2": func(c *config, d *Dims) Traits {
		b := c.yes("use_bias", true)
		return Traits{QKVBias: b, OutBias: b, MLPBias: b, NormBias: true, Tied: c.tied(true)}
	},
	"gptj": func(c *config, d *Dims) Traits {
		return Traits{MLPBias: true, Norms: 1, NormBias: true, HeadBias: true, Tied: c.tied(false)}
	},
	"gpt_neo": func(c *config, d *Dims) Traits {
		return Traits{OutBias: true, MLPBias: true, NormBias: true, Positions: d.Context, Tied: c.tied(true)}
	},
	"gpt_bigcode": func(c *config, d *Dims) Traits {
		if c.yes("multi_query", true) {
			d.KVHeads = 1
		}
		return Traits{Packed: true, QKVBias: true, OutBias: true, MLPBias: true, NormBias: true, Positions: d.Context, Tied: c.tied(true)}
	},
	"mpt": func(c *config, d *Dims) Traits {
		d.FFN = d.Hidden * c.size(4, "expansion_ratio")
		return Traits{Packed: true, Tied: true}
	},
	"falcon": falconTraits,
}

// falconTraits: the first release shares one key and value among all heads and has one norm a
// layer, the later one has two of each.
func falconTraits(c *config, d *Dims) Traits {
	b := c.yes("bias", false)
	t := Traits{Packed: true, QKVBias: b, OutBias: b, MLPBias: b, NormBias: true, Tied: c.tied(true)}
	switch {
	case c.yes("new_decoder_architecture", false):
		d.KVHeads = c.size(d.Heads, "num_kv_heads")
		if c.number0(2, "num_ln_in_parallel_attn") == 1 {
			t.Norms = 1
		}
		return t
	case c.yes("multi_query", true):
		d.KVHeads = 1
	}
	if c.yes("parallel_attn", true) {
		t.Norms = 1
	}
	return t
}

// sparse adds which layers of a Qwen have experts: every decoder_sparse_step-th but those of mlp_only_layers.
func (c *config) sparse(d *Dims, t Traits) Traits {
	t.Every, t.Plain = max(1, c.size(1, "decoder_sparse_step")), c.layers("mlp_only_layers")
	for i := range min(d.Layers, maxLayers) {
		if t.sparse(i) {
			return t
		}
	}
	d.Experts, d.TopK, d.ExpertFFN = 0, 0, 0
	return t
}

// tied reports a head that is the embedding's.
func (c *config) tied(usual bool) bool { return c.yes("tie_word_embeddings", usual) }

// decoder is a kind that traits describe.
func (c *config) decoder(of func(c *config, d *Dims) Traits) shaped {
	d := c.usual()
	t := of(c, &d)
	return plain(d, func() []Block { return Decoder(d, t) })
}
