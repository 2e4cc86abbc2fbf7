package workload

import "fmt"

// xlBands are the bands of words of NVIDIA's Transformer-XL on WikiText-103, frequent ones first: where each ends, and
// the share of tokens that are of it. The shares follow from two laws of Zipf, as 1/r for frequent words and steeper
// for rare ones (Ferrer i Cancho and Solé 2001): 103 million tokens whose rarest of 267,735 words occur three times
// (Merity et al. 2016, Pointer Sentinel Mixture Models) give an exponent of 1.7 beyond word 8,000.
var xlBands = []struct {
	end   int64
	share float64
}{{19997, 0.942}, {39997, 0.027}, {199997, 0.029}, {267735, 0.0026}}

// TransformerXL are the blocks of a Transformer-XL on the 267,735 words of WikiText-103, in bands of words that are
// ever rarer and, with divided, ever narrower. Names, order and operations are those of NVIDIA's DeepLearningExamples
// (PyTorch/LanguageModeling/Transformer-XL: mem_transformer.py, proj_adaptive_softmax.py), which gives every segment a
// memory of its own length. Its kernels are PyTorch's, one an operation, whatever the framework.
func TransformerXL(d Dims, divided bool) []Block {
	d = d.filled()
	h := d.Hidden
	entry, exit := xlEnds(d, divided)
	entry = append(entry, Part{Name: "r_w_bias", Kind: Added, Out: h, Suffix: "-"}, Part{
		Name: "r_r_bias", Kind: Added, Out: h, Suffix: "-",
	})
	blocks := []Block{{Kind: Entry, Parts: entry}}
	attention := d.attention(true)
	attention.Memory = d.Context
	// Of scores, forward: the shift pads and copies them (2), the two are added and scaled by a fused kernel (3), masked
	// in place (2), softmax (2). Backward: softmax (3), the mask (a copy and a fill, 4), the scale (2), the shift (zeros,
	// a copy, and another into the order of its product, 5).
	attention.Passes, attention.Starts, attention.Kept = [2]float64{9, 14}, [2]float64{5, 8}, 2
	if divided { // the large one drops scores too
		attention.Passes, attention.Kept = [2]float64{11.25, 16.25}, 3.25
	}
	const segments = 2 // the memory's and its own
	wide := float64(d.FFN / h)
	// Of the residual's width, forward: joining the memory (2 a segment), keys and values copied into the order of their
	// products (4 a segment), queries with two biases (4) and one copied (2), the result copied back (2), dropout (2.25,
	// its mask a byte), residual (3), norm (2); in the MLP biases (2 each), ReLU in place (2) and dropout (2.25) of the
	// wide ones, dropout, residual, norm; the hidden states that the next segment remembers (2). Backward: norms (5 each),
	// residuals (3 each), dropout (2.25 each), sums for biases, ReLU (3), queries' slice (zeros and a copy), queries, keys
	// and values joined (6 a segment), two biases' sums (2) and queries' gradients added (3).
	between := Part{
		Name: "between", Kind: Pointwise, Out: h, Kept: 10 + 3.25*wide + 3*segments,
		Passes: [2]float64{6*segments + 8 + 2*7.25 + 2 + 2 + 6.25*wide, 7*segments + 2*10.25 + 2 + 1 + 5 + 6.25*wide},
		Starts: [2]float64{19, 22},
	}
	for i := range d.Layers {
		blocks = append(blocks, Block{Name: fmt.Sprintf("layers.%d", i), Kind: Layer, Parts: []Part{
			{Name: "dec_attn.qkv_net", In: h, Out: 3 * h, Memory: d.Context},
			{Name: "dec_attn.o_net", In: h, Out: h},
			{Name: "dec_attn.layer_norm", Kind: Norm, Out: h, Bias: true},
			// positions are those of all sequences
			{Name: "dec_attn.r_net", In: h, Out: h, Fixed: true, Rows: segments * d.Context},
			attention,
			{Name: "pos_ff.CoreNet.0", In: h, Out: d.FFN, Bias: true},
			{Name: "pos_ff.CoreNet.3", In: d.FFN, Out: h, Bias: true},
			{Name: "pos_ff.layer_norm", Kind: Norm, Out: h, Bias: true},
			between,
		}})
	}
	return append(blocks, Block{Kind: Exit, Parts: exit})
}

// xlEnds are the embedding and the adaptive softmax. Every band looks up which tokens are its own, for which the host
// waits.
func xlEnds(d Dims, divided bool) (entry, exit []Part) {
	h, words := d.Hidden, xlBands[len(xlBands)-1].end
	bands := float64(len(xlBands))
	exit = append(exit, Part{Name: "crit.cluster_weight", Kind: Added, Out: h, Shape: []int64{3, h}, Suffix: "-"},
		Part{Name: "crit.cluster_bias", Kind: Added, Out: 3, Suffix: "-"})
	// Scaled and dropped; the last hidden states are dropped too.
	scaled := Part{
		Name: "scaled", Kind: Pointwise, Out: h, Passes: [2]float64{6.5, 6.5}, Starts: [2]float64{4, 4}, Kept: 1.5,
	}
	tables := Part{Name: "tables' gradients", Kind: Pointwise, Fixed: true, Rows: words, Out: h}
	if divided {
		scaled.Starts, scaled.Waits = [2]float64{4 + 10*bands, 4 + 8*bands}, bands
		start, total := int64(0), int64(0)
		for i, b := range xlBands {
			width := h >> (2 * i)
			entry = append(entry, Part{
				Name: fmt.Sprintf("word_emb.emb_layers.%d", i), Kind: Lookup, In: b.end - start, Out: width,
			}, Part{Name: fmt.Sprintf("word_emb.emb_projs.%d", i), In: width, Out: h, Suffix: "-", Share: b.share})
			exit = append(exit, Part{
				Name: fmt.Sprintf("crit.out_layers_biases.%d", i), Kind: Added, Out: b.end - start, Suffix: "-",
			})
			total += (b.end - start) * width
			start = b.end
		}
		exit = append(exit, Part{Name: "crit.out_projs.0", In: h, Out: h, Suffix: "-"})
		// A table's gradient as an embedding begins with zeros (1) and is added to that of the scores (3).
		tables.Rows, tables.Out, tables.Passes, tables.Starts = total/h, h, [2]float64{0, 4}, [2]float64{0, 2 * bands}
	} else {
		entry = append(entry, Part{Name: "word_emb.emb_layers.0", Kind: Lookup, In: words, Out: h})
		exit = append(exit, Part{Name: "crit.out_layers_biases.0", Kind: Added, Out: words, Suffix: "-"})
		// All bands are slices of one table: the gradient of each is a whole table of zeros (1 each) with its rows copied
		// into it (2 for all), as is that of the embedding (1), and each is added to the others (3).
		tables.Passes, tables.Starts = [2]float64{0, bands + 2 + 1 + 3*bands}, [2]float64{0, 3*bands + 2}
	}
	head := xlBands[0].end + 3
	exit = append(exit, Part{Name: "crit.out_layers_weights", In: h, Out: head, Tied: true})
	// Scores of the head, forward: the bias (2), softmax (2), the rows of each band selected (2). Backward: the selection
	// of one score a row (1), that of rows (zeros for each band, 3 for the rows added), the bands added up (3 each),
	// softmax (3), the bias (1).
	exit = append(exit, Part{
		Name: "head", Kind: Pointwise, Out: head, Passes: [2]float64{6, 1 + bands + 3 + 3*(bands-1) + 3 + 1},
		Starts: [2]float64{14 * bands, 12 * bands}, Kept: 2, Waits: bands,
	})
	start := xlBands[0].end
	for i, b := range xlBands[1:] {
		in := h
		if divided {
			in = h >> (2 * (i + 1))
			exit = append(exit, Part{Name: "tail", In: h, Out: in, Tied: true, Share: b.share})
		}
		// Forward the bias (2) and softmax (2); backward the selection (1), softmax (3), the bias (1).
		exit = append(exit,
			Part{Name: "tail", In: in, Out: b.end - start, Tied: true, Share: b.share},
			Part{Name: "tail", Kind: Pointwise, Out: b.end - start, Share: b.share, Passes: [2]float64{4, 5}, Kept: 2})
		start = b.end
	}
	return append(entry, scaled), append(exit, tables)
}

// xlUpdate is the optimizer of that code, LAMB as a TorchScript function that is called for one tensor after the other
// (lamb.py, JITLamb). PyTorch specialises such a function on the shapes that it meets first, and runs it operation by
// operation for others: 140 bytes a float32 parameter in 16 kernels, with 15 on single numbers. Clipping reads every
// gradient, and reads and writes it again.
var xlUpdate = Looped{Bytes: 140 + 12, Starts: 16 + 15 + 2}
