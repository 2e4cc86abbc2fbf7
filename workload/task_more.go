package workload

import "busbar.dev/unit"

// routing is how many operations the host does in a pass to send tokens to their experts: counting, sorting, splitting,
// exchanging the numbers and waiting for them (Megatron-Core's dispatcher by all-to-all).
const routing = 160

// loopHost is how many further operations the host does for an expert of a loop (Hugging Face's MixtralSparseMoeBlock): forward, one of which waits for
// the GPU, and backward, where a gradient is put back to the tokens and to the router's by index, each a sort and a dozen operations on indices.
var loopHost = [2]float64{10, 40}

// loops reports whether experts are computed one after the other: PyTorch's operators without a framework whose model groups them.
func (j *Job) loops() bool {
	return j.Loop || j.Kernels == Eager && j.Framework == nil
}

// grouped reports whether one kernel multiplies for all experts, sorted on the GPU (torch._grouped_mm); Fused is Megatron-Core's dispatcher.
func (j *Job) grouped() bool { return j.Kernels != Fused && !j.loops() }

// cast brings the input of products into fewer bits, forward, or the gradient of their output, backward. Products that share an
// input share its cast: those of a gated MLP and of queries, keys and values are one product where precision is so low.
func (w *taskBuilder) cast(numbers, starts float64, back bool) {
	each := w.j.Precision.casts()
	if each == 0 {
		return
	}
	list := &w.fwd
	if back {
		list = &w.bwd
	}
	*list = append(*list, Task{Name: "cast", Kind: Stream, Bytes: unit.Volume(numbers * each), Starts: starts, Back: back})
}

// adapter is what LoRA adds to a product: two narrow ones, whose result is added, and their four in the backward pass. All of them
// read or write activations and hardly compute. Weights of fewer bits are brought to 16 before the product.
func (w *taskBuilder) adapter(p *Part, m, n, k float64, attended bool) {
	if bits := w.j.LoRA.Bits; bits > 0 && bits < 16 {
		bytes := unit.Volume(n * k * (2 + float64(bits)/8))
		if p.Experts > 0 {
			bytes *= unit.Volume(float64(p.Experts) / w.ep)
		}
		w.fwd = append(w.fwd, Task{Name: "widening", Kind: Stream, Bytes: bytes, Starts: 1})
		w.bwd = append(w.bwd, Task{Name: "widening", Kind: Stream, Bytes: bytes, Starts: 1, Back: true})
	}
	if !w.j.LoRA.adapts(p, attended) {
		return
	}
	r := float64(w.j.LoRA.Rank)
	w.fwd = append(w.fwd,
		Task{Name: "adapter", Kind: Product, M: m, N: r, K: k, Count: 1, Flops: 2 * m * r * k, Starts: 2},
		Task{Name: "adapter", Kind: Product, M: m, N: n, K: r, Count: 1, Flops: 2 * m * r * n, Starts: 1},
		Task{Name: "adapter", Kind: Stream, Bytes: unit.Volume(3 * m * n * w.width), Starts: 2})
	for range 2 {
		w.bwd = append(w.bwd,
			Task{Name: "adapter", Kind: Product, M: m, N: r, K: n, Count: 1, Flops: 2 * m * r * n, Starts: 1, Back: true},
			Task{Name: "adapter", Kind: Product, M: m, N: k, K: r, Count: 1, Flops: 2 * m * r * k, Starts: 1, Back: true})
	}
	w.bwd = append(w.bwd, Task{Name: "adapter", Kind: Stream, Bytes: unit.Volume(3 * m * k * w.width), Starts: 2, Back: true})
	if w.j.wideAdapters() { // the input is cast to float32 and, for the product, back; its gradient goes the same way
		bytes := unit.Volume(2 * m * k * (w.width + 4))
		w.fwd = append(w.fwd, Task{Name: "adapter's casts", Kind: Stream, Bytes: bytes, Starts: 2})
		w.bwd = append(w.bwd, Task{Name: "adapter's casts", Kind: Stream, Bytes: bytes, Starts: 2, Back: true})
	}
}

// scanned are the reads and writes of the inner width of a state-space layer by its convolution, scan and gated norm, and how much
// more its backward pass has of them and of operations.
const (
	scanStreams = 12
	scanBack    = 2.5
)

// ownScans says that state-space layers run in kernels written for them, which those who name a framework install: without one, PyTorch's own
// operations compute them.
func (j *Job) ownScans() bool { return j.Kernels == Fused || j.Framework != nil }

// kept is how many numbers a token leaves in memory for the backward pass of a scan: what enters it and comes out of it; without kernels of its
// own also the matrices of chunks, of which one is in float32, the states' inputs and outputs by head, and states.
func (p *Part) kept(own bool) float64 {
	inner, shared := float64(p.Heads*p.HeadDim), float64(p.KVHeads*p.State)
	if own {
		return 4*inner + 2*shared
	}
	heads, state := float64(p.Heads), float64(p.State)
	return 8*inner + 4*shared + 3*heads*scanChunk + 2*heads*state + 2*inner*state/scanChunk
}

// scan is the middle of a state-space layer: a short convolution, chunks, a gated norm.
func (w *taskBuilder) scan(p *Part) {
	if !w.j.ownScans() {
		w.plainScan(p)
		return
	}
	tokens := w.tokens
	wide := float64(p.Heads*p.HeadDim) / w.tp
	flops := tokens * p.scanned() / w.tp
	t := Task{Name: p.Name, Kind: Chunks, Flops: flops, Bytes: unit.Volume(scanStreams * tokens * wide * w.width), Starts: 9, Count: 1}
	back := t
	back.Flops, back.Bytes, back.Starts, back.Back = scanBack*flops, scanBack*t.Bytes, 16, true
	w.fwd, w.bwd = append(w.fwd, t), append(w.bwd, back)
}

// plainConv is how often the numbers of the convolution before a scan could go through memory in the time that PyTorch's own takes, a third of it
// forward: 1.9 ms for 59 million on one H200 (2.11, 2026-11-16).
const plainConv = 15

// plainScan is a scan in PyTorch's operations (Dao and Gu 2024, listing 1): products of many small matrices, and between them everything
// goes through memory. One by one, the decays of a chunk do so seven times, in float32.
func (w *taskBuilder) plainScan(p *Part) {
	heads, groups := float64(p.Heads)/w.tp, float64(p.KVHeads)/w.tp
	dim, state := float64(p.HeadDim), float64(p.State)
	inner, shared, square := heads*dim, groups*state, heads*scanChunk
	streams := plainConv*(inner+2*shared) + 11*inner + square + 2*heads*state + 4*inner*state/scanChunk + 4*shared
	starts := 20.0
	if w.j.Kernels == Eager {
		streams += 23*square + 4*heads*state + 10*inner
		starts = 60
	}
	w.stream(p.Name, w.tokens*w.width*streams, scanBack, 0)
	w.fwd[len(w.fwd)-1].Starts, w.bwd[len(w.bwd)-1].Starts = starts, 2*starts
	chunks := w.tokens / scanChunk
	for _, x := range []struct{ m, n, k, count float64 }{
		{scanChunk, scanChunk, state, groups}, {scanChunk, dim, scanChunk, heads}, {state, dim, scanChunk, heads}, {scanChunk, dim, state, heads},
	} {
		t := Task{Name: p.Name, Kind: Product, M: x.m, N: x.n, K: x.k, Count: chunks * x.count, Flops: 2 * x.m * x.n * x.k * chunks * x.count, Starts: 1, Plain: true}
		w.fwd = append(w.fwd, t)
		t.Back = true
		w.bwd = append(w.bwd, t, t)
	}
}
