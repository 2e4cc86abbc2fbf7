package workload

import "fmt"

// attention is the part between the products of a layer.
func (d Dims) attention(causal bool) Part {
	return Part{
		Name: "attn", Kind: Attention, Heads: d.Heads, KVHeads: d.KVHeads, HeadDim: d.HeadDim, Causal: causal, Cut: ByOut,
	}
}

// plainNorm is a layer norm that neither scales nor shifts: it has no tensor.
func plainNorm(name string, h int64) Part { return Part{Name: name, Kind: Norm, Out: h, Tied: true} }

// Words and patches of a picture of 1024 × 1024 points in Flux.
const (
	fluxWords   = 512
	fluxPatches = 4096
)

// Flux are the blocks of FLUX.1: so many double ones, where words and patches have matrices of their own and meet in
// attention, and the rest of the layers single ones, where attention and the MLP run side by side on both. Names and
// order are those of black-forest-labs/flux, except that the words' MLP stands before attention, so that it does not
// pass for a gate.
func Flux(d Dims, double int64) []Block {
	d = d.filled()
	h, f := d.Hidden, d.FFN
	words, patches := fluxWords/float64(fluxWords+fluxPatches), fluxPatches/float64(fluxWords+fluxPatches)
	once := func(name string, in, out int64) Part {
		return Part{Name: name, In: in, Out: out, Bias: true, Once: true}
	}
	embedded := func(name string, in int64) []Part {
		return []Part{once(name+".in_layer", in, h), once(name+".out_layer", h, h)}
	}
	entry := []Part{{Name: "img_in", In: 64, Out: h, Bias: true, Share: patches}}
	entry = append(append(entry, embedded("time_in", 256)...), embedded("vector_in", 768)...)
	entry = append(append(entry, embedded("guidance_in", 256)...), Part{
		Name: "txt_in", In: 4096, Out: h, Bias: true, Share: words,
	})
	blocks := []Block{{Kind: Entry, Parts: entry}}
	scales := func(name string) []Part {
		return []Part{
			{Name: name + ".query_norm.scale", Kind: Added, Out: d.HeadDim, Suffix: "-"},
			{Name: name + ".key_norm.scale", Kind: Added, Out: d.HeadDim, Suffix: "-"},
		}
	}
	for i := range double {
		var parts []Part
		for _, of := range []struct {
			name  string
			share float64
		}{{"txt", words}, {"img", patches}} {
			parts = append(parts, once(of.name+"_mod.lin", h, 6*h), Part{
				Name: of.name + "_norm1", Kind: Norm, Out: h, Tied: true, Share: of.share,
			},
				Part{Name: of.name + "_attn.qkv", In: h, Out: 3 * h, Bias: true, Cut: ByOut, Share: of.share})
			parts = append(parts, scales(of.name+"_attn.norm")...)
			if of.name == "img" {
				parts = append(parts, d.attention(false))
			}
			parts = append(parts, Part{Name: of.name + "_attn.proj", In: h, Out: h, Bias: true, Cut: ByIn, Share: of.share},
				Part{Name: of.name + "_norm2", Kind: Norm, Out: h, Tied: true, Share: of.share},
				Part{Name: of.name + "_mlp.0", In: h, Out: f, Bias: true, Cut: ByOut, Share: of.share},
				Part{Name: of.name + "_mlp.2", In: f, Out: h, Bias: true, Cut: ByIn, Share: of.share})
		}
		blocks = append(blocks, Block{Name: fmt.Sprintf("double_blocks.%d", i), Kind: Layer, Parts: parts})
	}
	for i := range d.Layers - double {
		parts := append([]Part{
			once("modulation.lin", h, 3*h), plainNorm("pre_norm", h),
			{Name: "linear1", In: h, Out: 3*h + f, Bias: true, Cut: ByOut},
		}, scales("norm")...)
		parts = append(parts, d.attention(false), Part{Name: "linear2", In: h + f, Out: h, Bias: true, Cut: ByIn})
		blocks = append(blocks, Block{Name: fmt.Sprintf("single_blocks.%d", i), Kind: Layer, Parts: parts})
	}
	return append(blocks, Block{Name: "final_layer", Kind: Exit, Parts: []Part{
		plainNorm("norm_final", h),
		{Name: "linear", In: h, Out: 64, Bias: true, Share: patches},
		once("adaLN_modulation.1", h, 2*h),
	}})
}
