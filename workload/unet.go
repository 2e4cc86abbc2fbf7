package workload

import "fmt"

// Of SDXL's U-Net: the words of a prompt and the width of theirs, the embedding of time.
const (
	promptWords = 77
	promptWidth = 2048
	timeWidth   = 1280
)

// SDXL are the blocks of Stable Diffusion XL's U-Net on latents of 128 × 128 points, a picture of 1024 × 1024. Each
// residual block and each transformer is a block here, with the names of Hugging Face's UNet2DConditionModel; those of
// the way up come in the order in which they run.
func SDXL() []Block {
	u := &unet{side: 128}
	u.addBlock("", Entry, conv("conv_in", 4, 320, 3, u.side, true),
		Part{Name: "time_embedding.linear_1", In: 320, Out: timeWidth, Bias: true},
		Part{Name: "time_embedding.linear_2", In: timeWidth, Out: timeWidth, Bias: true},
		Part{Name: "add_embedding.linear_1", In: 2816, Out: timeWidth, Bias: true},
		Part{Name: "add_embedding.linear_2", In: timeWidth, Out: timeWidth, Bias: true},
		counted("copy", 320, u.side, 2, 1, 1))
	u.skips = []int64{320}
	in := int64(320)
	widths, depths := [3]int64{320, 640, 1280}, [3]int{0, 2, 10}
	for level, out := range widths {
		for i := range 2 {
			u.residual(fmt.Sprintf("down_blocks.%d.resnets.%d", level, i), in, out)
			u.transformer(fmt.Sprintf("down_blocks.%d.attentions.%d", level, i), out, depths[level])
			in = out
			u.skips = append(u.skips, out)
		}
		if level < 2 {
			u.side /= 2
			u.addBlock(fmt.Sprintf("down_blocks.%d.downsamplers.0", level), Layer, conv("conv", out, out, 3, u.side, true),
				counted("copy", out, u.side, 0, 0, 1))
			u.skips = append(u.skips, out)
		}
	}
	u.residual("mid_block.resnets.0", in, in)
	u.transformer("mid_block.attentions.0", in, depths[2])
	u.residual("mid_block.resnets.1", in, in)
	for up := range 3 {
		level := 2 - up
		out := widths[level]
		for i := range 3 {
			skip := u.skips[len(u.skips)-1]
			u.skips = u.skips[:len(u.skips)-1]
			u.residual(fmt.Sprintf("up_blocks.%d.resnets.%d", up, i), in+skip, out)
			u.transformer(fmt.Sprintf("up_blocks.%d.attentions.%d", up, i), out, depths[level])
			in = out
		}
		if level > 0 {
			u.side *= 2
			u.addBlock(fmt.Sprintf("up_blocks.%d.upsamplers.0", up), Layer, conv("conv", out, out, 3, u.side, true),
				counted("enlarged", out, u.side, 1.25, 1.25, 1))
		}
	}
	u.addBlock("", Exit, batchNorm("conv_norm_out", 320), normed(320, u.side, true),
		conv("conv_out", 320, 4, 3, u.side, true))
	return u.blocks
}

// unet puts the blocks together.
type unet struct {
	blocks []Block
	side   int64
	skips  []int64 // widths of what the way up takes from the way down
}

func (u *unet) addBlock(name string, kind BlockKind, parts ...Part) {
	u.blocks = append(u.blocks, Block{Name: name, Kind: kind, Parts: parts})
}

// counted is operations between products that read and write out numbers at every point so often forward and backward,
// and keep some.
func counted(name string, out, side int64, forward, backward, kept float64) Part {
	return Part{
		Name: name, Kind: Pointwise, Out: out, Rows: side * side, Passes: [2]float64{forward, backward},
		Starts: [2]float64{1, 1}, Kept: kept,
	}
}

// residual is a residual block: twice a group norm, SiLU and a convolution, with the time added between. Norms and SiLU
// read and write as those of convolutional networks do.
func (u *unet) residual(name string, in, out int64) {
	parts := []Part{
		batchNorm("norm1", in), normed(in, u.side, true), conv("conv1", in, out, 3, u.side, true),
		{Name: "time_emb_proj", In: timeWidth, Out: out, Bias: true},
		counted("time", out, u.side, 2, 1, 0),
		batchNorm("norm2", out), normed(out, u.side, true), conv("conv2", out, out, 3, u.side, true),
	}
	if in != out {
		parts = append(parts, conv("conv_shortcut", in, out, 1, u.side, true))
	}
	u.addBlock(name, Layer, append(parts, counted("sum", out, u.side, 3, 1, 0))...)
}

// transformer is so many layers of attention among points, attention to the words, and a gated MLP.
func (u *unet) transformer(name string, width int64, layers int) {
	if layers == 0 {
		return
	}
	points := u.side * u.side
	linear := func(name string, in, out, rows int64, bias bool) Part {
		return Part{Name: name, In: in, Out: out, Bias: bias, Rows: rows}
	}
	scores := func(name string, keys int64) Part {
		return Part{
			Name: name, Kind: Attention, Heads: width / 64, KVHeads: width / 64, HeadDim: 64, Rows: points, Keys: keys,
		}
	}
	u.addBlock(name, Layer, batchNorm("norm", width), normed(width, u.side, false),
		linear("proj_in", width, width, points, true), counted("rows", width, u.side, 2, 2, 1))
	for i := range layers {
		layerNorm := counted("norm", width, u.side, 2, 3, 2)
		sum := counted("sum", width, u.side, 3, 1, 0)
		u.addBlock(fmt.Sprintf("%s.transformer_blocks.%d", name, i), Layer,
			batchNorm("norm1", width), layerNorm,
			linear("attn1.to_q", width, width, points, false), linear("attn1.to_k", width, width, points, false),
			linear("attn1.to_v", width, width, points, false),
			scores("attn1", points), counted("heads", width, u.side, 2, 2, 4),
			linear("attn1.to_out.0", width, width, points, true), sum,
			batchNorm("norm2", width), layerNorm,
			linear("attn2.to_q", width, width, points, false), linear("attn2.to_k", promptWidth, width, promptWords, false),
			linear("attn2.to_v", promptWidth, width, promptWords, false),
			scores("attn2", promptWords), counted("heads", width, u.side, 2, 2, 2),
			linear("attn2.to_out.0", width, width, points, true), sum,
			batchNorm("norm3", width), layerNorm,
			linear("ff.net.0.proj", width, 8*width, points, true), counted("gate", 4*width, u.side, 3, 5, 3),
			linear("ff.net.2", 4*width, width, points, true), sum)
	}
	u.addBlock(name, Layer, linear("proj_out", width, width, points, true), counted("sum", width, u.side, 3, 1, 0))
}
