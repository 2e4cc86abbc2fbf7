package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// configs are the kinds of models that a config.json may name, as Hugging Face's transformers
// build them.
var configs = map[string]func(*config) shaped{
	"gpt2": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return GPT2(d) })
	},
	"llama": func(c *config) shaped {
		d, biased, tied := c.usual(), c.yes("attention_bias", false), c.yes("tie_word_embeddings", false)
		return plain(d, func() []Block {
			blocks := llama(d, biased, tied)
			if biased { // here the product after attention has one too
				for i := range blocks {
					for k := range blocks[i].Parts {
						if p := &blocks[i].Parts[k]; p.Name == "self_attn.o_proj" {
							p.Bias = true
						}
					}
				}
			}
			return blocks
		})
	},
	"mistral": func(c *config) shaped {
		d, tied := c.usual(), c.yes("tie_word_embeddings", false)
		return plain(d, func() []Block { return llama(d, false, tied) })
	},
	"qwen2": func(c *config) shaped {
		d, tied := c.usual(), c.yes("tie_word_embeddings", false)
		return plain(d, func() []Block { return llama(d, true, tied) })
	},
	"mixtral": func(c *config) shaped {
		d := c.usual()
		d.Experts, d.TopK = c.number("num_local_experts"), c.number("num_experts_per_tok")
		return plain(d, func() []Block { return Mixtral(d) })
	},
	"deepseek_v2": func(c *config) shaped { return deepseek(c, false) },
	"deepseek_v3": func(c *config) shaped { return deepseek(c, true) },
	"kimi_k2":     func(c *config) shaped { return deepseek(c, true) },
	"nemotron": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return Nemotron(d) })
	},
	"gpt_neox": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return NeoX(d) })
	},
	"bloom": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return BLOOM(d) })
	},
	"opt": func(c *config) shaped {
		d := c.usual()
		words := c.size(d.Hidden, "word_embed_proj_dim")
		return plain(d, func() []Block { return OPT(d, words) })
	},
	"bert": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return BERT(d) })
	},
	"roberta":     roberta,
	"xlm-roberta": roberta,
	"camembert":   roberta,
	"distilbert": func(c *config) shaped {
		d := Dims{
			Layers: c.number("n_layers"), Hidden: c.number("dim"), Heads: c.number("n_heads"), FFN: c.size(0, "hidden_dim"),
			Vocab: c.number("vocab_size"), Context: c.size(512, "max_position_embeddings"),
		}
		return plain(d, func() []Block { return RoBERTa(d, 0) })
	},
	"vit":        vitConfig,
	"nemotron_h": nemotronH,
	"mamba2":     mamba2,
}

// nemotronH is a hybrid whose layers a pattern lists.
func nemotronH(c *config) shaped {
	d := c.usual()
	x, err := PatternMixers(c.text("hybrid_override_pattern"))
	if err == nil && (x.Pattern == "" || x.Layers() != d.Layers) {
		err = fmt.Errorf("hybrid_override_pattern has %d layers and num_hidden_layers is %d", x.Layers(), d.Layers)
	}
	if err != nil {
		c.refuse("%w", err)
	}
	x.Heads, x.HeadDim, x.State, x.Groups = c.number("mamba_num_heads"), c.size(64, "mamba_head_dim"), c.size(128, "ssm_state_size"), c.size(8, "n_groups")
	c.narrow(x.Heads * x.HeadDim)
	c.narrow(x.State * x.Groups)
	if x.Experts > 0 {
		d.Experts, d.TopK, d.ExpertFFN = c.number("n_routed_experts"), c.number("num_experts_per_tok"), c.number("moe_intermediate_size")
		x.SharedFFN = c.number0(0, "moe_shared_expert_intermediate_size") * c.number0(1, "n_shared_experts")
		x.Latent = c.number0(0, "moe_latent_size")
	}
	return plain(d, func() []Block { return Hybrid(d, x) })
}

func roberta(c *config) shaped {
	d, types := c.usual(), c.number0(1, "type_vocab_size")
	return plain(d, func() []Block { return RoBERTa(d, types) })
}

func plain(d Dims, blocks func() []Block) shaped { return shaped{Model{Dims: d}, blocks} }

// deepseek has latent attention; its plain widths of heads are not used.
func deepseek(c *config, corrected bool) shaped {
	d := c.usual()
	d.KVHeads, d.HeadDim = 0, 0
	d.Experts, d.TopK, d.Shared = c.number("n_routed_experts"), c.number("num_experts_per_tok"), c.number0(0, "n_shared_experts")
	d.ExpertFFN, d.Dense = c.number("moe_intermediate_size"), c.number0(0, "first_k_dense_replace")
	a := Latent{Q: c.size(0, "q_lora_rank"), KV: c.number("kv_lora_rank"), Plain: c.number("qk_nope_head_dim"), Rotary: c.number("qk_rope_head_dim"), Value: c.number("v_head_dim")}
	every := c.size(1, "moe_layer_freq")
	return plain(d, func() []Block { return deepSeek(d, a, corrected, every) })
}

// vitConfig is a vision transformer with as many classes as it has labels.
func vitConfig(c *config) shaped {
	patch, size := c.number("patch_size"), c.number("image_size")
	var labels map[string]json.RawMessage
	_ = json.Unmarshal(c.fields["id2label"], &labels) // without labels there are those of ImageNet
	classes := cmp.Or(int64(len(labels)), 1000)
	side := int64(0)
	if patch > 0 && patch <= 1<<12 && size <= 1<<16 {
		side = size / patch
	}
	if c.number0(3, "num_channels") != 3 {
		c.refuse("num_channels is not 3; only pictures of three colours are known")
	}
	d := Dims{
		Layers: c.number("num_hidden_layers"), Hidden: c.number("hidden_size"), Heads: c.number("num_attention_heads"), FFN: c.number("intermediate_size"),
		Vocab: classes, Context: side*side + 1,
	}
	if side == 0 {
		c.refuse("image_size and patch_size leave no patches")
	}
	return plain(d, func() []Block { return ViT(d, patch) })
}
