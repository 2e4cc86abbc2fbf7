package workload

import (
	"cmp"
	"fmt"
	"strings"
)

// Mixers are how many layers of a hybrid are of each kind, with the sizes that plain transformers do not have. A layer
// has one thing only: a state-space mixer, attention, an MLP, or experts.
type Mixers struct {
	Scans, Attentions, MLPs, Experts int64
	// Heads of HeadDim and State with Groups of inputs are those of a scan (Mamba-2); 0 heads are twice the hidden width
	// in heads of 64.
	Heads, HeadDim, State, Groups int64
	// Latent is the width in which experts compute; 0 is the hidden one. SharedFFN is the width of an MLP beside them.
	Latent, SharedFFN int64
	Gated             bool
	// Pattern is every layer's kind in order, by the letters of Nemotron-H's config.json: M scans, - MLPs, E experts, *
	// attention. None spreads them evenly.
	Pattern string
}

// PatternMixers are the layers of a pattern.
func PatternMixers(pattern string) (Mixers, error) {
	x := Mixers{Pattern: pattern}
	counts := map[rune]*int64{'M': &x.Scans, '-': &x.MLPs, 'E': &x.Experts, '*': &x.Attentions}
	for _, r := range pattern {
		n := counts[r]
		if n == nil {
			return x, fmt.Errorf("hybrid_override_pattern has %q; expected M, -, E and *", r)
		}
		*n++
	}
	return x, nil
}

// Layers is how many there are.
func (x Mixers) Layers() int64 { return x.Scans + x.Attentions + x.MLPs + x.Experts }

// filled has what is usual where nothing is said.
func (x Mixers) filled(hidden int64) Mixers {
	x.HeadDim = cmp.Or(x.HeadDim, 64)
	if x.Heads == 0 {
		x.Heads = max(1, 2*hidden/x.HeadDim)
	}
	x.State = cmp.Or(x.State, 128)
	x.Groups = cmp.Or(x.Groups, 8)
	return x
}

// Hybrid are the blocks of a hybrid as Nemotron-H is one: norms before every layer, no positions, kinds spread evenly.
// Names are after Hugging Face's NemotronHForCausalLM.
func Hybrid(d Dims, x Mixers) []Block {
	d, x = d.filled(), x.filled(d.Hidden)
	t := Traits{Gated: x.Gated}
	blocks := []Block{{
		Name: "backbone", Kind: Entry,
		Parts: []Part{{Name: "embeddings", Kind: Lookup, In: d.Vocab, Out: d.Hidden, Cut: ByOut}},
	}}
	makers := []func() []Part{
		func() []Part { return x.scan(d.Hidden) },
		func() []Part { return t.mlp("mixer.", d.Hidden, d.FFN) },
		func() []Part { return x.experts(d, &t) },
		func() []Part { return t.attention(d) },
	}
	for i, kind := range x.order() {
		parts := append([]Part{{Name: "norm", Kind: Norm, Out: d.Hidden}}, makers[kind]()...)
		blocks = append(blocks, Block{Name: fmt.Sprintf("backbone.layers.%d", i), Kind: Layer, Parts: parts})
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "backbone.norm_f", Kind: Norm, Out: d.Hidden},
		{Name: "lm_head", In: d.Hidden, Out: d.Vocab, Cut: ByOut},
	}})
}

// order is the kind of every layer: 0 scans, 1 MLPs, 2 experts, 3 attention, each spread evenly over all.
func (x Mixers) order() []int {
	left := []int64{x.Scans, x.MLPs, x.Experts, x.Attentions}
	n := x.Layers()
	var list []int
	if x.Pattern != "" {
		for _, r := range x.Pattern {
			list = append(list, strings.IndexRune("M-E*", r))
		}
		return list
	}
	for i := range n {
		best, lag := 0, -1.0
		all := []int64{x.Scans, x.MLPs, x.Experts, x.Attentions}
		for k := range left {
			due := float64(all[k])*float64(i+1)/float64(n) - float64(all[k]-left[k])
			if left[k] > 0 && due > lag {
				best, lag = k, due
			}
		}
		left[best]--
		list = append(list, best)
	}
	return list
}

// scan is a state-space mixer: one product before it for the gate, the input, the state's inputs and outputs and the
// steps of time.
func (x Mixers) scan(h int64) []Part {
	inner := x.Heads * x.HeadDim
	wide := inner + 2*x.Groups*x.State
	return []Part{
		{Name: "mixer.in_proj", In: h, Out: inner + wide + x.Heads, Cut: ByOut},
		{Name: "mixer.conv1d", Kind: Added, Out: wide, Shape: []int64{wide, 1, 4}, Bias: true, Cut: ByOut},
		{Name: "mixer.A_log", Kind: Added, Out: x.Heads, Suffix: "-", Cut: ByOut},
		{Name: "mixer.D", Kind: Added, Out: x.Heads, Suffix: "-", Cut: ByOut},
		{Name: "mixer.dt_bias", Kind: Added, Out: x.Heads, Suffix: "-", Cut: ByOut},
		{Name: "mixer.scan", Kind: Scan, Heads: x.Heads, HeadDim: x.HeadDim, State: x.State, KVHeads: x.Groups, Cut: ByOut},
		{Name: "mixer.norm", Kind: Added, Out: inner, Cut: ByOut},
		{Name: "mixer.out_proj", In: inner, Out: h, Cut: ByIn},
	}
}

// experts is a layer of experts, in a narrower width where there is one.
func (x Mixers) experts(d Dims, t *Traits) []Part {
	parts := []Part{{Name: "mixer.gate", In: d.Hidden, Out: d.Experts}}
	inner := d
	if x.Latent > 0 {
		parts = append(parts, Part{Name: "mixer.fc1_latent_proj", In: d.Hidden, Out: x.Latent})
		inner.Hidden = x.Latent
	}
	for _, p := range inner.experts("mixer.experts.%d.", "gate_proj", "up_proj", "down_proj") {
		if t.Gated || p.Name != "mixer.experts.%d.gate_proj" {
			parts = append(parts, p)
		}
	}
	if x.Latent > 0 {
		parts = append(parts, Part{Name: "mixer.fc2_latent_proj", In: x.Latent, Out: d.Hidden})
	}
	if x.SharedFFN > 0 {
		parts = append(parts, t.mlp("mixer.shared_experts.", d.Hidden, x.SharedFFN)...)
	}
	return parts
}
