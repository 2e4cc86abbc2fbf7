package workload

import "busbar.dev/unit"

// routing is how many operations the host does in a pass to send tokens to their experts: counting, sorting, splitting,
// exchanging the numbers and waiting for them (Megatron-Core's dispatcher by all-to-all).
const routing = 160

// loopHost is how many further operations the host does in a pass for an expert of a loop (Hugging Face's MixtralSparseMoeBlock), one of which waits for the GPU.
const loopHost = 10

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
}

// scanned are the reads and writes of the inner width of a state-space layer by its convolution, scan and gated norm, and how much
// more its backward pass has of them and of operations.
const (
	scanStreams = 12
	scanBack    = 2.5
)

// scan is the middle of a state-space layer, in Mamba-2's kernels: a short convolution, chunks, a gated norm.
func (w *taskBuilder) scan(p *Part) {
	tokens := w.tokens
	wide := float64(p.Heads*p.HeadDim) / w.tp
	flops := tokens * p.scanned() / w.tp
	t := Task{Name: p.Name, Kind: Chunks, Flops: flops, Bytes: unit.Volume(scanStreams * tokens * wide * w.width), Starts: 9, Count: 1}
	back := t
	back.Flops, back.Bytes, back.Starts, back.Back = scanBack*flops, scanBack*t.Bytes, 16, true
	w.fwd, w.bwd = append(w.fwd, t), append(w.bwd, back)
}
