package workload

import "fmt"

// conv is a convolution of square kernels over pictures: side is that of its output.
func conv(name string, in, out, kernel, side int64, bias bool) Part {
	return Part{Name: name, In: in * kernel * kernel, Out: out, Shape: []int64{out, in, kernel, kernel}, Bias: bias, Rows: side * side}
}

func batchNorm(name string, out int64) Part {
	return Part{Name: name, Kind: Norm, Out: out, Bias: true}
}

// ResNet are the blocks of a residual network of bottlenecks on pictures of 224 × 224 points, with the
// stride in the middle convolution (v1.5). Names and order are those of torchvision's ResNet.
func ResNet(stages [4]int64) []Block {
	blocks := []Block{{Kind: Entry, Parts: []Part{conv("conv1", 3, 64, 7, 112, false), batchNorm("bn1", 64)}}}
	in, side := int64(64), int64(56)
	for s, n := range stages {
		width := int64(64) << s
		for i := range n {
			before := side
			if s > 0 && i == 0 {
				side /= 2
			}
			parts := []Part{
				conv("conv1", in, width, 1, before, false), batchNorm("bn1", width),
				conv("conv2", width, width, 3, side, false), batchNorm("bn2", width),
				conv("conv3", width, 4*width, 1, side, false), batchNorm("bn3", 4*width),
			}
			if i == 0 {
				parts = append(parts, conv("downsample.0", in, 4*width, 1, side, false), batchNorm("downsample.1", 4*width))
			}
			in = 4 * width
			blocks = append(blocks, Block{Name: fmt.Sprintf("layer%d.%d", s+1, i), Kind: Layer, Parts: parts})
		}
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{{Name: "fc", In: in, Out: 1000, Bias: true, Once: true}}})
}

// VGG16 are the blocks of VGG-16. Names and order are those of torchvision's VGG.
func VGG16() []Block {
	var blocks []Block
	in, side, at := int64(3), int64(224), 0
	for _, stage := range []struct {
		width  int64
		layers int
	}{{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}} {
		for range stage.layers {
			blocks = append(blocks, Block{Kind: Layer, Parts: []Part{conv(fmt.Sprintf("features.%d", at), in, stage.width, 3, side, true)}})
			in = stage.width
			at += 2 // the nonlinearity has a number too
		}
		at++ // and so has the pooling
		side /= 2
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "classifier.0", In: in * side * side, Out: 4096, Bias: true, Once: true},
		{Name: "classifier.3", In: 4096, Out: 4096, Bias: true, Once: true},
		{Name: "classifier.6", In: 4096, Out: 1000, Bias: true, Once: true},
	}})
}

// TransformerXL are the tensors of a Transformer-XL on the 267,735 words of WikiText-103, in bands of
// words that are ever rarer and, with divided, ever narrower. Names and order are those of NVIDIA's
// DeepLearningExamples. Its operations are counted as if a segment had no memory.
func TransformerXL(d Dims, divided bool) []Block {
	d = d.filled()
	h := d.Hidden
	ends := []int64{0, 19997, 39997, 199997, 267735}
	var entry, exit []Part
	exit = append(exit, Part{Name: "crit.cluster_weight", Kind: Added, Out: h, Shape: []int64{3, h}, Suffix: "-"}, Part{Name: "crit.cluster_bias", Kind: Added, Out: 3, Suffix: "-"})
	if divided {
		for i := range 4 {
			words, width := ends[i+1]-ends[i], h>>(2*i)
			entry = append(entry, Part{Name: fmt.Sprintf("word_emb.emb_layers.%d", i), Kind: Lookup, In: words, Out: width}, Part{Name: fmt.Sprintf("word_emb.emb_projs.%d", i), In: width, Out: h, Suffix: "-"})
			exit = append(exit, Part{Name: fmt.Sprintf("crit.out_layers_biases.%d", i), Kind: Added, Out: words, Suffix: "-"})
		}
		exit = append(exit, Part{Name: "crit.out_projs.0", In: h, Out: h, Suffix: "-"})
	} else {
		entry = append(entry, Part{Name: "word_emb.emb_layers.0", Kind: Lookup, In: ends[4], Out: h})
		exit = append(exit, Part{Name: "crit.out_layers_biases.0", Kind: Added, Out: ends[4], Suffix: "-"})
	}
	exit = append(exit, Part{Name: "crit.out_layers_weights", In: h, Out: ends[1] + 3, Tied: true})
	entry = append(entry, Part{Name: "r_w_bias", Kind: Added, Out: h, Suffix: "-"}, Part{Name: "r_r_bias", Kind: Added, Out: h, Suffix: "-"})
	blocks := []Block{{Kind: Entry, Parts: entry}}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("layers.%d", i), Kind: Layer, Parts: []Part{
			{Name: "dec_attn.qkv_net", In: h, Out: 3 * h},
			{Name: "dec_attn.o_net", In: h, Out: h},
			{Name: "dec_attn.layer_norm", Kind: Norm, Out: h, Bias: true},
			{Name: "dec_attn.r_net", In: h, Out: h},
			d.attention(true),
			{Name: "pos_ff.CoreNet.0", In: h, Out: d.FFN, Bias: true},
			{Name: "pos_ff.CoreNet.3", In: d.FFN, Out: h, Bias: true},
			{Name: "pos_ff.layer_norm", Kind: Norm, Out: h, Bias: true},
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: exit})
}
