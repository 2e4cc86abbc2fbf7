package workload

import (
	"cmp"
	"fmt"
	"slices"
)

// Traits are what decoders differ in beside their dimensions. The zero value is a Llama without
// the gate of its MLP: rotary positions, norms that scale, no biases, a head of its own.
type Traits struct {
	QKVBias, OutBias, MLPBias bool
	Gated                     bool  // the MLP multiplies two products
	Norms                     int   // of a layer; 0 is two
	NormBias                  bool  // norms shift too
	NormFree                  bool  // norms have no numbers of their own
	QKNorm                    Norms // of queries and keys
	Tied, HeadBias            bool
	Positions                 int64 // learned ones; 0 is rotary, or none
	Packed                    bool  // queries, keys and values are one product, and the MLP's first two
	// SharedFFN is the width of an MLP beside the experts that every token passes, with a gate of
	// its own where SharedGate says so.
	SharedFFN              int64
	SharedGate, RouterBias bool
	ExpertBias             bool
	Sinks                  bool // a number a head beside the scores
	// Every is that only every so-manieth layer has experts; 0 is all. Window is how many tokens before it a token sees,
	// but for every Full-th layer, which sees all; 0 is all layers see all.
	Every, Window, Full int64
	// the first layer with experts where only every so-manieth has them; 0 is Every
	From             int64
	Plain            func(layer int64) bool // layers without experts whatever Every says; nil is none
	RouterCorrection bool                   // the router has a bias that balances experts
	OutputGate       bool                   // queries come with a gate on what attention puts out
	// Mixer is what a layer has in the place of attention; none, or nothing, is attention.
	Mixer func(layer int64) []Part
}

// Linear is linear attention with a gated delta rule (Yang et al. 2024, Gated Delta Networks, arXiv 2412.06464) as
// Qwen3-Next has it: heads of values share those of keys.
type Linear struct {
	Values, Keys     int64 // heads
	ValueDim, KeyDim int64
	Conv             int64 // tokens that a convolution before it sees
}

// parts are those of a layer.
func (l *Linear) parts(h int64) []Part {
	k, v := l.Keys*l.KeyDim, l.Values*l.ValueDim
	return []Part{
		{Name: "linear_attn.in_proj_qkvz", In: h, Out: 2*k + 2*v, Cut: ByOut},
		{Name: "linear_attn.in_proj_ba", In: h, Out: 2 * l.Values, Cut: ByOut},
		{Name: "linear_attn.conv1d", Kind: Added, Out: 2*k + v, Shape: []int64{2*k + v, 1, l.Conv}, Cut: ByOut},
		{Name: "linear_attn.dt_bias", Kind: Added, Out: l.Values, Suffix: "-", Cut: ByOut},
		{Name: "linear_attn.A_log", Kind: Added, Out: l.Values, Suffix: "-", Cut: ByOut},
		{
			Name: "linear_attn.scan", Kind: Scan, Heads: l.Values, HeadDim: l.ValueDim, State: l.KeyDim, KVHeads: l.Keys,
			Cut: ByOut,
		},
		{Name: "linear_attn.norm", Kind: Added, Out: l.ValueDim},
		{Name: "linear_attn.out_proj", In: v, Out: h, Cut: ByIn},
	}
}

// Norms is how queries and keys are normed.
type Norms uint8

// Ways to norm queries and keys.
const (
	NoNorm     Norms = iota
	HeadNorm         // a head at a time, with the same numbers for all
	AcrossNorm       // all heads together
)

// Decoder are the blocks of a decoder with such traits. Names are after Llama's.
func Decoder(d Dims, t Traits) []Block {
	d = d.filled()
	entry := []Part{{Name: "embed_tokens", Kind: Lookup, In: d.Vocab, Out: d.Hidden, Cut: ByOut}}
	if t.Positions > 0 {
		entry = append(entry, Part{Name: "embed_positions", Kind: Lookup, In: t.Positions, Out: d.Hidden})
	}
	blocks := []Block{{Name: "model", Kind: Entry, Parts: entry}}
	for i := range d.Layers {
		parts := t.attention(d)
		if t.Mixer != nil {
			if own := t.Mixer(i); own != nil {
				parts = slices.Clip(own) // layers share it
			}
		}
		if t.Window > 0 && (t.Full == 0 || (i+1)%t.Full != 0) {
			for k := range parts {
				if parts[k].Kind == Attention {
					parts[k].Window = t.Window
				}
			}
		}
		if d.Experts > 0 && i >= d.Dense && t.sparse(i) {
			parts = append(parts, t.experts(d)...)
		} else {
			parts = append(parts, t.mlp("mlp.", d.Hidden, d.FFN)...)
		}
		for n := range t.norms() {
			parts = append(parts, t.norm(fmt.Sprintf("norm_%d", n+1), d.Hidden)...)
		}
		blocks = append(blocks, Block{Name: fmt.Sprintf("model.layers.%d", i), Kind: Layer, Parts: parts})
	}
	exit := append(t.norm("model.norm", d.Hidden), Part{
		Name: "lm_head", In: d.Hidden, Out: d.Vocab, Bias: t.HeadBias, Tied: t.Tied, Cut: ByOut,
	})
	return append(blocks, Block{Kind: Exit, Parts: exit})
}

// sparse reports a layer that has experts where there are some.
func (t *Traits) sparse(i int64) bool {
	return (t.Every == 0 || (i+1)%t.Every == t.From%t.Every) && (t.Plain == nil || !t.Plain(i))
}

func (t *Traits) norms() int {
	return cmp.Or(t.Norms, 2)
}

func (t *Traits) norm(name string, width int64) []Part {
	if t.NormFree {
		return nil
	}
	return []Part{{Name: name, Kind: Norm, Out: width, Bias: t.NormBias}}
}

// attention is that of a layer.
func (t *Traits) attention(d Dims) []Part {
	h, q, kv := d.Hidden, d.Heads*d.HeadDim, d.KVHeads*d.HeadDim
	var parts []Part
	if t.Packed {
		parts = append(parts, Part{Name: "self_attn.qkv_proj", In: h, Out: q + 2*kv, Bias: t.QKVBias, Cut: ByOut})
	} else {
		queries := q
		if t.OutputGate {
			queries *= 2
		}
		parts = append(parts, Part{Name: "self_attn.q_proj", In: h, Out: queries, Bias: t.QKVBias, Cut: ByOut},
			Part{Name: "self_attn.k_proj", In: h, Out: kv, Bias: t.QKVBias, Cut: ByOut},
			Part{Name: "self_attn.v_proj", In: h, Out: kv, Bias: t.QKVBias, Cut: ByOut})
	}
	switch t.QKNorm {
	case HeadNorm:
		parts = append(parts, Part{Name: "self_attn.q_norm", Kind: Norm, Out: d.HeadDim}, Part{
			Name: "self_attn.k_norm", Kind: Norm, Out: d.HeadDim,
		})
	case AcrossNorm:
		parts = append(parts, Part{Name: "self_attn.q_norm", Kind: Norm, Out: q}, Part{
			Name: "self_attn.k_norm", Kind: Norm, Out: kv,
		})
	}
	if t.Sinks {
		parts = append(parts, Part{Name: "self_attn.sinks", Kind: Added, Out: d.Heads, Suffix: "-", Cut: ByOut})
	}
	return append(parts, d.attention(true), Part{Name: "self_attn.o_proj", In: q, Out: h, Bias: t.OutBias, Cut: ByIn})
}

// mlp is that of a layer without experts, or beside them.
func (t *Traits) mlp(before string, h, f int64) []Part {
	down := Part{Name: before + "down_proj", In: f, Out: h, Bias: t.MLPBias, Cut: ByIn}
	up := Part{Name: before + "up_proj", In: h, Out: f, Bias: t.MLPBias, Cut: ByOut}
	switch {
	case t.Gated && t.Packed:
		return []Part{{Name: before + "gate_up_proj", In: h, Out: 2 * f, Bias: t.MLPBias, Cut: ByOut}, down}
	case t.Gated:
		return []Part{{Name: before + "gate_proj", In: h, Out: f, Bias: t.MLPBias, Cut: ByOut}, up, down}
	}
	return []Part{up, down}
}

// experts are those of a layer, with the router and what every token passes.
func (t *Traits) experts(d Dims) []Part {
	parts := []Part{{Name: "mlp.gate", In: d.Hidden, Out: d.Experts, Bias: t.RouterBias}}
	if t.RouterCorrection {
		parts = append(parts, Part{Name: "mlp.gate.e_score_correction_bias", Kind: Added, Out: d.Experts, Suffix: "-"})
	}
	list := d.experts("mlp.experts.%d.", "gate_proj", "up_proj", "down_proj")
	for i := range list {
		list[i].Bias = t.ExpertBias
	}
	parts = append(parts, list...)
	if t.SharedFFN > 0 {
		parts = append(parts, t.mlp("mlp.shared_expert.", d.Hidden, t.SharedFFN)...)
	}
	if t.SharedGate {
		parts = append(parts, Part{Name: "mlp.shared_expert_gate", In: d.Hidden, Out: 1})
	}
	return parts
}
