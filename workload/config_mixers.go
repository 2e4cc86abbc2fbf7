package workload

import "encoding/json"

// mixers are the kinds of config.json whose layers have state spaces or convolutions in the place of attention or beside it, each with an MLP behind
// it, as Hugging Face's transformers build them.
var mixers = map[string]func(c *config, d *Dims) Traits{
	"bamba": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, Tied: c.tied(false), Mixer: c.unless(c.layers("attn_layer_indices"), c.mamba(d).scan(d.Hidden))}
	},
	"granitemoehybrid": func(c *config, d *Dims) Traits {
		t := Traits{Gated: true, Tied: c.tied(false), SharedFFN: c.number0(1024, "shared_intermediate_size"), Mixer: c.unless(c.typed("attention"), c.mamba(d).scan(d.Hidden))}
		if d.Experts = c.number0(8, "num_local_experts"); d.Experts == 0 { // what is shared is all there is
			d.FFN = t.SharedFFN
			return t
		}
		d.TopK, d.ExpertFFN = c.number0(2, "num_experts_per_tok"), d.FFN
		return t
	},
	"falcon_h1": func(c *config, d *Dims) Traits {
		x, t := c.mamba(d), Traits{Gated: true, Tied: c.tied(false)}
		own := *d
		t.Mixer = func(int64) []Part { // both read the same input
			scan, heads := x.scan(own.Hidden), (&Traits{}).attention(own.filled())
			if !c.yes("mamba_rms_norm", false) {
				scan = without(scan, "mixer.norm")
			}
			last := len(scan) - 1
			parts := append([]Part{scan[0]}, heads[:3]...)
			parts = append(append(parts, scan[1:last]...), heads[3:]...)
			return append(parts, scan[last])
		}
		return t
	},
	"jamba": func(c *config, d *Dims) Traits {
		every, first := max(1, c.size(8, "attn_layer_period")), c.number0(4, "attn_layer_offset")
		d.Experts, d.TopK = c.number0(16, "num_experts"), c.number0(2, "num_experts_per_tok")
		d.ExpertFFN = d.FFN
		inner := c.size(2, "mamba_expand") * d.Hidden
		c.narrow(inner)
		scan := mamba1(d.Hidden, inner, c.size(16, "mamba_d_state"), c.auto((d.Hidden+15)/16, "mamba_dt_rank"), c.size(4, "mamba_d_conv"))
		return Traits{
			Gated: true, Tied: c.tied(false), Every: max(1, c.size(2, "expert_layer_period")), From: c.number0(1, "expert_layer_offset") + 1,
			Mixer: c.unless(func(i int64) bool { return i%every == first }, scan),
		}
	},
	"lfm2":     lfm2,
	"lfm2_moe": lfm2,
}

// lfm2 has short convolutions with two gates in most layers.
func lfm2(c *config, d *Dims) Traits {
	if d.FFN = c.size(d.FFN, "block_ff_dim"); c.yes("block_auto_adjust_ff_dim", c.text("model_type") == "lfm2") {
		of := max(1, c.size(256, "block_multiple_of"))
		d.FFN = (2*d.FFN/3 + of - 1) / of * of
	}
	if n := c.number0(0, "num_experts"); n > 0 {
		d.Experts, d.TopK, d.ExpertFFN, d.Dense = n, c.number0(4, "num_experts_per_tok"), c.number("moe_intermediate_size"), c.number0(2, "num_dense_layers")
	}
	attends := c.layers("full_attn_idxs")
	if c.has("layer_types") {
		attends = c.typed("full_attention")
	}
	h := d.Hidden
	conv := []Part{
		{Name: "conv.in_proj", In: h, Out: 3 * h, Cut: ByOut},
		{Name: "conv.conv", Kind: Norm, Out: h, Shape: []int64{h, 1, c.size(3, "conv_L_cache")}, Cut: ByOut},
		{Name: "conv.out_proj", In: h, Out: h, Cut: ByIn},
	}
	return Traits{Gated: true, QKNorm: HeadNorm, Tied: c.yes("tie_embedding", c.tied(true)), RouterCorrection: c.yes("use_expert_bias", d.Experts > 0), Mixer: c.unless(attends, conv)}
}

// mamba are the sizes of a Mamba-2 mixer by the names of Bamba and its kin.
func (c *config) mamba(d *Dims) Mixers {
	heads := max(1, c.size(128, "mamba_n_heads"))
	inner := c.size(c.size(2, "mamba_expand")*d.Hidden, "mamba_d_ssm")
	x := Mixers{Heads: heads, HeadDim: c.auto(inner/heads, "mamba_d_head"), State: c.size(256, "mamba_d_state"), Groups: c.size(1, "mamba_n_groups")}
	c.narrow(x.Heads * x.HeadDim)
	c.narrow(x.Groups * x.State)
	return x
}

// narrow refuses widths that no mixer has, so that products of them stay whole numbers.
func (c *config) narrow(width int64) {
	if width < 1 || width > 1<<24 {
		c.refuse("a mixer %d wide; expected 1 to %d", width, 1<<24)
	}
}

// mamba1 is a mixer of the first Mamba (Gu and Dao 2023): steps of time come from a narrow product, and every channel has a state of its own.
func mamba1(h, inner, state, rank, conv int64) []Part {
	const dim = 64 // channels that are priced as a head
	return []Part{
		{Name: "mamba.in_proj", In: h, Out: 2 * inner, Cut: ByOut},
		{Name: "mamba.conv1d", Kind: Added, Out: inner, Shape: []int64{inner, 1, conv}, Bias: true, Cut: ByOut},
		{Name: "mamba.x_proj", In: inner, Out: rank + 2*state, Cut: ByIn},
		{Name: "mamba.dt_proj", In: rank, Out: inner, Bias: true, Cut: ByOut},
		{Name: "mamba.A_log", Kind: Added, Out: inner, Shape: []int64{inner, state}, Suffix: "-", Cut: ByOut},
		{Name: "mamba.D", Kind: Added, Out: inner, Suffix: "-", Cut: ByOut},
		{Name: "mamba.scan", Kind: Scan, Heads: max(1, inner/dim), HeadDim: min(dim, max(inner, 1)), State: state, KVHeads: 1, Cut: ByOut},
		{Name: "mamba.dt_layernorm", Kind: Norm, Out: rank},
		{Name: "mamba.b_layernorm", Kind: Norm, Out: state},
		{Name: "mamba.c_layernorm", Kind: Norm, Out: state},
		{Name: "mamba.out_proj", In: inner, Out: h, Cut: ByIn},
	}
}

// auto is a number that a file may leave to the others by a word.
func (c *config) auto(other int64, name string) int64 {
	if c.text(name) == "auto" {
		return other
	}
	return c.size(other, name)
}

// layers says which layers a list of numbers names.
func (c *config) layers(name string) func(int64) bool {
	var list []int64
	if _, v := c.find([]string{name}); v != nil && json.Unmarshal(v, &list) != nil {
		c.refuse("%s is %.40s; expected a list of layers' numbers", name, v)
	}
	has := map[int64]bool{}
	for _, i := range list {
		has[i] = true
	}
	return func(i int64) bool { return has[i] }
}

// typed says which layers layer_types calls so.
func (c *config) typed(kind string) func(int64) bool {
	list := c.layerTypes()
	return func(i int64) bool { return i < int64(len(list)) && list[i] == kind }
}

// unless is a mixer of all layers but those that have attention.
func (c *config) unless(attention func(int64) bool, parts []Part) func(int64) []Part {
	return func(i int64) []Part {
		if attention(i) {
			return nil
		}
		return parts
	}
}

// without are parts but for those of a name.
func without(parts []Part, name string) []Part {
	var list []Part
	for _, p := range parts {
		if p.Name != name {
			list = append(list, p)
		}
	}
	return list
}
