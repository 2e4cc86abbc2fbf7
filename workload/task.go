package workload

// TaskKind is what limits a task on a GPU.
type TaskKind uint8

// Kinds of tasks.
const (
	Product TaskKind = iota // matrices multiplied on tensor cores
	Score                   // attention in one kernel
	Stream                  // bytes of memory read and written
)

// Task is something that a GPU does in one go, or several times alike.
type Task struct {
	Name string
	Kind TaskKind
	// Count products of M × K by K × N, of Score its size.
	M, N, K float64
	Count   float64
	Flops   float64 // in all
	Bytes   float64 // of a Stream, read and written
	Starts  float64 // of kernels
	Back    bool    // of the backward pass
	Weight  bool    // of that, gradients of weights, which nothing but the update waits for
}

// Pass is the tasks of one rank for one micro-batch through one block.
type Pass struct{ Forward, Backward, Again []Task }

// passes is how often the operations between products go over an activation: one
// normalisation, one nonlinearity (alone, or each of two that meet in it), one residual with its dropout, and one bias; and how many
// kernels they start in a layer beside products and attention, and the bytes that the loss
// reads and writes for the score of a word. Fused is Megatron-LM's: one
// kernel reads its inputs and writes its output. Eager is what the operations of PyTorch read
// and write one by one (dropout with its mask, residual and bias on their own, GELU of tanh in
// eight operations).
var passes = map[Framework]struct{ norm, act, gate, residual, bias, starts, loss float64 }{
	Fused:    {2, 2, 1.5, 3.25, 0, 8, 14},
	Compiled: {2, 2, 1.5, 3.25, 0, 10, 14},
	Eager:    {2, 6, 2.5, 5, 1, 40, 40},
}

// Pass is what a rank computes for one micro-batch through a block.
func (j *Job) Pass(b *Block) Pass {
	s := j.Split.filled()
	w := &weaver{j: j, last: b.Kind == Exit, width: j.Precision.Width(), tp: float64(s.TP), ep: float64(s.EP)}
	w.tokens = float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	w.between = w.tokens
	if s.SeqParallel {
		w.between /= w.tp
	}
	w.gated = gated(b)
	attended := false
	if _, topK := b.Experts(); topK > 0 {
		w.permute(topK)
	}
	for i := range b.Parts {
		p := &b.Parts[i]
		switch p.Kind {
		case Matmul:
			w.product(p, attended)
		case Attention:
			w.attention(p, float64(s.CP))
			attended = true
		case Norm:
			w.stream(p.Name, w.between*float64(p.Out)*w.width*passes[j.Framework].norm, 1, 1)
		case Lookup:
			w.stream(p.Name, 2*w.between*float64(p.Out)*w.width, 1, 1)
		}
	}
	if b.Kind == Layer {
		n := passes[j.Framework].starts
		if j.Framework == Eager && j.Precision.Amp() {
			n *= 1.5 // casts, each an operation of its own
		}
		if n > 0 {
			w.fwd = append(w.fwd, Task{Name: "starts", Kind: Stream, Starts: n})
			w.bwd = append(w.bwd, Task{Name: "starts", Kind: Stream, Starts: n, Back: true})
		}
	}
	if j.Precision.Amp() { // norms, residuals and the loss stay in float32
		for _, list := range [][]Task{w.fwd, w.bwd} {
			for i := range list {
				if list[i].Kind == Stream && list[i].Name != "cast" && list[i].Name != "loss" {
					list[i].Bytes *= 1.4
				}
			}
		}
	}
	pass := Pass{Forward: w.fwd, Backward: w.bwd}
	if b.Kind == Layer {
		switch j.Recompute {
		case Full:
			pass.Again = w.fwd
		case Selective:
			for _, t := range w.fwd {
				if t.Kind == Score || t.Name == "scores" {
					pass.Again = append(pass.Again, t)
				}
			}
		}
	}
	return pass
}

// gated reports whether two products after attention meet in the nonlinearity.
func gated(b *Block) bool {
	n := 0
	for i := len(b.Parts) - 1; i >= 0 && b.Parts[i].Kind != Attention; i-- {
		if b.Parts[i].Kind == Matmul && b.Parts[i].Cut == ByOut {
			n++
		}
	}
	return n > 1
}

// weaver puts the tasks of a block together.
type weaver struct {
	j               *Job
	width, tp, ep   float64
	tokens, between float64 // of products, and of what lies between them
	fwd, bwd        []Task
	last            bool // the block after the layers
	gated           bool // two products meet in the nonlinearity
}

// product is a matrix product, what follows on its output, and both products of its backward
// pass.
func (w *weaver) product(p *Part, attended bool) {
	m, n, k := w.tokens, float64(p.Out), float64(p.In)
	if p.Once {
		m = float64(w.j.MicroBatch)
	}
	if w.last && !p.Once && w.j.Masked > 0 {
		m *= w.j.Masked
	}
	switch p.Cut {
	case ByOut:
		n /= w.tp
	case ByIn:
		k /= w.tp
	}
	count := 1.0
	if p.Experts > 0 { // tokens come from all ranks that share the experts, evenly
		count = float64(p.Experts) / w.ep
		m = w.tokens * float64(p.TopK) / count
	}
	flops := 2 * m * n * k * count
	w.fwd = append(w.fwd, Task{Name: p.Name, Kind: Product, M: m, N: n, K: k, Count: count, Flops: flops, Starts: count})
	w.bwd = append(w.bwd,
		Task{Name: p.Name + " to its input", Kind: Product, M: m, N: k, K: n, Count: count, Flops: flops, Starts: count, Back: true},
		Task{Name: p.Name + " to its weight", Kind: Product, M: k, N: n, K: m, Count: count, Flops: flops, Starts: count, Back: true, Weight: true})
	if w.j.Precision.Amp() { // the weight is cast before the product and its gradient after it
		w.fwd = append(w.fwd, Task{Name: "cast", Kind: Stream, Bytes: 6 * n * k * count, Starts: 1})
		w.bwd = append(w.bwd, Task{Name: "cast", Kind: Stream, Bytes: 6 * n * k * count, Starts: 1, Back: true, Weight: true})
	}
	m *= count // of all experts, from here
	x := passes[w.j.Framework]
	switch {
	case w.last && p.Cut == ByOut && !p.Once:
		// The loss: scores of all words cast to float32, their maximum, the sum of their
		// exponentials; and the gradient.
		w.fwd = append(w.fwd, Task{Name: "loss", Kind: Stream, Bytes: m * n * x.loss, Starts: 6})
		w.bwd = append(w.bwd, Task{Name: "loss", Kind: Stream, Bytes: m * n * x.loss, Starts: 4, Back: true})
	case p.Cut == ByIn:
		w.stream("residual", w.between*float64(p.Out)*w.width*x.residual, 1, 0)
	case p.Cut == ByOut && attended && !p.Tied:
		each := x.act
		if w.gated {
			each = x.gate
		}
		w.stream("activation", m*n*w.width*each, 1.5, 0)
	}
	if p.Bias && x.bias > 0 {
		w.stream("bias", m*n*w.width*x.bias, 0.5, 0)
	}
}

// permute puts tokens in the order of their experts and back: each goes through memory twice,
// read and written, as often as it has experts.
func (w *weaver) permute(topK int64) {
	bytes := w.between * float64(topK) * float64(w.j.Model.Dims.Hidden) * w.width
	w.stream("permutation", 4*bytes, 1, 4)
}

// stream is bytes that go through memory, and back times as many in the backward pass.
func (w *weaver) stream(name string, bytes, back, starts float64) {
	w.fwd = append(w.fwd, Task{Name: name, Kind: Stream, Bytes: bytes, Starts: starts})
	w.bwd = append(w.bwd, Task{Name: name, Kind: Stream, Bytes: bytes * back, Starts: starts, Back: true})
}

// attention is the scores and the weighted sums: in one kernel, whose backward pass computes
// the scores again (five products to two), or as two products with the scores in memory between
// them.
func (w *weaver) attention(p *Part, cp float64) {
	heads := float64(p.Heads) / w.tp
	seq := float64(w.j.Seq)
	batch := float64(w.j.MicroBatch)
	rows := seq / cp
	flops := 4 * batch * heads * rows * seq * float64(p.HeadDim)
	if !w.j.Unfused {
		if p.Causal {
			flops /= 2
		}
		w.fwd = append(w.fwd, Task{Name: p.Name, Kind: Score, M: rows, N: seq, K: float64(p.HeadDim), Count: batch * heads, Flops: flops, Starts: 1})
		w.bwd = append(w.bwd, Task{Name: p.Name, Kind: Score, M: rows, N: seq, K: float64(p.HeadDim), Count: batch * heads, Flops: 2.5 * flops, Starts: 2, Back: true})
		return
	}
	half := Task{Name: "scores", Kind: Product, M: rows, N: seq, K: float64(p.HeadDim), Count: batch * heads, Flops: flops / 2, Starts: 1}
	sums := half
	sums.N, sums.K = half.K, half.N
	w.fwd = append(w.fwd, half, sums)
	for range 2 {
		a, b := half, sums
		a.Back, b.Back = true, true
		w.bwd = append(w.bwd, a, b)
	}
	// Written, read and written by the mask and the softmax, by the dropout, read again.
	scores := batch * heads * rows * seq * w.width
	through := 5.5
	if w.j.Framework == Eager {
		through = 9
	}
	w.fwd = append(w.fwd, Task{Name: "scores", Kind: Stream, Bytes: scores * through, Starts: 3})
	w.bwd = append(w.bwd, Task{Name: "scores", Kind: Stream, Bytes: scores * through * 1.2, Starts: 4, Back: true})
}
