package workload

import "fmt"

// conv is a convolution of square kernels over pictures: side is that of its output.
func conv(name string, in, out, kernel, side int64, bias bool) Part {
	return Part{
		Name: name, In: in * kernel * kernel, Out: out, Shape: []int64{out, in, kernel, kernel}, Bias: bias,
		Rows: side * side,
	}
}

func batchNorm(name string, out int64) Part {
	return Part{Name: name, Kind: Norm, Out: out, Bias: true}
}

// Between convolutions, of numbers in memory by channel last: a batch norm reads its input for the mean and again to
// write its output, backward both its input and the gradient twice; ReLU works in place and needs its output backward.
// Fused kernels do both with the norm's reads and writes alone. The sum of a bottleneck reads its shortcut too, and its
// gradient is that of both ways, added.
func normed(out, side int64, relu bool) Part {
	p := Part{
		Name: "norm", Kind: Pointwise, Out: out, Rows: side * side, Passes: [2]float64{3, 5}, Least: [2]float64{3, 5},
		Starts: [2]float64{1, 1}, Kept: 1,
	}
	if relu {
		p.Passes, p.Starts, p.Kept = [2]float64{5, 8}, [2]float64{2, 2}, 2
	}
	return p
}

func summed(out, side int64) Part {
	return Part{
		Name: "sum", Kind: Pointwise, Out: out, Rows: side * side, Passes: [2]float64{5, 6}, Least: [2]float64{1, 4},
		Starts: [2]float64{2, 2}, Kept: 1,
	}
}

// pooled takes the largest of its input's numbers and remembers which.
func pooled(in, side int64, share float64) Part {
	return Part{
		Name: "pool", Kind: Pointwise, Out: in, Rows: side * side, Passes: [2]float64{1 + share, 2 + share},
		Starts: [2]float64{1, 2}, Kept: 5 * share,
	}
}

// ResNet are the blocks of a residual network of bottlenecks on pictures of 224 × 224 points, with the
// stride in the middle convolution (v1.5). Names and order are those of torchvision's ResNet.
func ResNet(stages [4]int64) []Block {
	blocks := []Block{{
		Kind: Entry, Parts: []Part{
			conv("conv1", 3, 64, 7, 112, false), batchNorm("bn1", 64), normed(64, 112, true), pooled(64, 112, 0.25),
		},
	}}
	in, side := int64(64), int64(56)
	for s, n := range stages {
		width := int64(64) << s
		for i := range n {
			before := side
			if s > 0 && i == 0 {
				side /= 2
			}
			parts := []Part{
				conv("conv1", in, width, 1, before, false), batchNorm("bn1", width), normed(width, before, true),
				conv("conv2", width, width, 3, side, false), batchNorm("bn2", width), normed(width, side, true),
				conv("conv3", width, 4*width, 1, side, false), batchNorm("bn3", 4*width), normed(4*width, side, false),
				summed(4*width, side),
			}
			if i == 0 {
				parts = append(parts, conv("downsample.0", in, 4*width, 1, side, false), batchNorm("downsample.1", 4*width),
					normed(4*width, side, false))
			}
			in = 4 * width
			blocks = append(blocks, Block{Name: fmt.Sprintf("layer%d.%d", s+1, i), Kind: Layer, Parts: parts})
		}
	}
	mean := Part{
		Name: "mean", Kind: Pointwise, Out: in, Rows: side * side, Passes: [2]float64{1, 1}, Starts: [2]float64{4, 4},
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{mean, {Name: "fc", In: in, Out: 1000, Bias: true, Once: true}}})
}

// VGG16 are the blocks of VGG-16. Names and order are those of torchvision's VGG.
func VGG16() []Block {
	var blocks []Block
	in, side, at := int64(3), int64(224), 0
	for _, stage := range []struct {
		width  int64
		layers int
	}{{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}} {
		for n := range stage.layers {
			// The bias is added and ReLU works in place; backward the bias' sum is the convolution's.
			relu := Part{
				Name: "relu", Kind: Pointwise, Out: stage.width, Rows: side * side, Passes: [2]float64{4, 3},
				Least: [2]float64{2, 3}, Starts: [2]float64{2, 1}, Kept: 1,
			}
			parts := []Part{conv(fmt.Sprintf("features.%d", at), in, stage.width, 3, side, true), relu}
			if n == stage.layers-1 {
				parts = append(parts, pooled(stage.width, side, 0.25))
			}
			kind := Layer
			if at == 0 {
				kind = Entry
			}
			blocks = append(blocks, Block{Kind: kind, Parts: parts})
			in = stage.width
			at += 2 // the nonlinearity has a number too
		}
		at++ // and so has the pooling
		side /= 2
	}
	dropped := Part{
		Name: "dropped", Kind: Pointwise, Out: 2 * 4096, Once: true, Passes: [2]float64{4.25, 5.25}, Starts: [2]float64{4, 4},
		Kept: 2,
	}
	return append(blocks, Block{Kind: Exit, Parts: []Part{
		{Name: "classifier.0", In: in * side * side, Out: 4096, Bias: true, Once: true},
		{Name: "classifier.3", In: 4096, Out: 4096, Bias: true, Once: true},
		{Name: "classifier.6", In: 4096, Out: 1000, Bias: true, Once: true},
		dropped,
	}})
}
