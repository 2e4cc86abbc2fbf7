package workload

import (
	"math"

	"busbar.dev/unit"
)

// numbers is at how many places a micro-batch passes a part.
func (w *taskBuilder) numbers(p *Part) float64 {
	m := w.tokens
	switch {
	case p.Fixed:
		m = 1
	case p.Once:
		m = float64(w.j.MicroBatch)
	}
	if p.Rows > 0 {
		m *= float64(p.Rows)
	}
	if p.Share > 0 {
		m *= p.Share
	}
	if p.Kind == Matmul && p.Memory > 0 {
		m *= 1 + float64(p.Memory)/float64(w.j.Seq)
	}
	return m
}

// pointwise is operations between products that a part counts itself.
func (w *taskBuilder) pointwise(p *Part) {
	w.passes(p, w.numbers(p)*float64(p.Out))
}

// passes are the reads and writes of a part's numbers.
func (w *taskBuilder) passes(p *Part, numbers float64) {
	times, starts := p.Passes, p.Starts
	if w.j.Kernels != Eager && p.Least != [2]float64{} {
		times, starts = p.Least, [2]float64{1, 2}
	}
	bytes := numbers * w.width
	w.fwd = append(w.fwd, Task{Name: p.Name, Kind: Stream, Bytes: unit.Volume(bytes * times[0]), Starts: starts[0], Waits: p.Waits})
	w.bwd = append(w.bwd, Task{Name: p.Name, Kind: Stream, Bytes: unit.Volume(bytes * times[1]), Starts: starts[1], Back: true})
}

// sumPieces is into how many pieces the gradient of a convolution's weight is cut at least: some waves of any GPU.
const sumPieces = 512

// convolution is one as a product over patches that are never written to memory: every number of the input is read once, and then by the
// kernel's other places from the chip. The gradient of a picture is not computed.
func (w *taskBuilder) convolution(p *Part, m float64) {
	taps := float64(p.Shape[2] * p.Shape[3])
	n, k := float64(p.Out), float64(p.In)
	t := Task{Name: p.Name, Kind: Product, M: m, N: n, K: k, Count: 1, Flops: 2 * m * n * k, Starts: 1, Rows: w.rows(p), Taps: taps}
	w.fwd = append(w.fwd, t)
	if w.j.Precision.Amp() {
		w.fwd = append(w.fwd, Task{Name: "cast", Kind: Stream, Bytes: unit.Volume(6 * n * k), Starts: 1})
		w.bwd = append(w.bwd, Task{Name: "cast", Kind: Stream, Bytes: unit.Volume(6 * n * k), Starts: 1, Back: true, Weight: true})
	}
	if w.j.ChannelsFirst && w.j.Precision != FP32 { // inputs and outputs of each of the three products are brought into the order of tensor cores, or back
		w.stream("transposes", 2*(m*n+m*k/taps)*w.width, 2, 2)
	}
	t.Back = true
	if !w.first {
		back := t
		back.Name, back.N, back.K = p.Name+" to its input", k/taps, n*taps
		w.bwd = append(w.bwd, back)
	}
	// A weight has few tiles and a long sum over all places, which libraries cut among the cores.
	cut := max(1, math.Ceil(sumPieces/(math.Ceil(k/128)*math.Ceil(n/128))))
	t.Name, t.M, t.K, t.Count, t.Weight = p.Name+" to its weight", k, m/cut, cut, true
	w.bwd = append(w.bwd, t)
	if p.Bias {
		w.bwd = append(w.bwd, Task{Name: "bias", Kind: Stream, Bytes: unit.Volume(m * n * w.width), Starts: 1, Back: true})
	}
}

// relative is attention over a segment and the one before it with relative positions (Dai et al. 2019, Transformer-XL, section 3.3): contents and
// positions have a product of scores each, and no fused kernel has both.
func (w *taskBuilder) relative(p *Part, batch, heads, rows float64) {
	keys := rows + float64(p.Memory)
	score := Task{Name: "scores", Kind: Product, M: rows, N: keys, K: float64(p.HeadDim), Count: batch * heads, Flops: 2 * batch * heads * rows * keys * float64(p.HeadDim), Starts: 1}
	sums := score
	sums.N, sums.K = score.K, score.N
	w.fwd = append(w.fwd, score, score, sums)
	for range 2 {
		a, b := score, sums
		a.Back, b.Back = true, true
		w.bwd = append(w.bwd, a, a, b)
	}
	w.passes(p, batch*heads*rows*keys)
}

// kept is how many numbers a token, or a picture, leaves for the backward pass where parts say so.
func (b *Block) kept(seq int64) float64 {
	sum := 0.0
	for i := range b.Parts {
		p := &b.Parts[i]
		n := p.Kept * float64(max(p.Rows, 1)) * float64(p.Out)
		if p.Kind == Attention {
			n = p.Kept * float64(p.Heads*(seq+p.Memory))
		}
		if p.Share > 0 {
			n *= p.Share
		}
		sum += n
	}
	return sum
}
