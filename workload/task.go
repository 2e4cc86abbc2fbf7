package workload

import (
	"math"
	"slices"

	"busbar.dev/unit"
)

// TaskKind is what limits a task on a GPU.
type TaskKind uint8

// Kinds of tasks.
const (
	Product TaskKind = iota // matrices multiplied on tensor cores
	Score                   // attention in one kernel
	Stream                  // bytes of memory read and written
	Chunks                  // the chunks of a scan: operations of many small products, and bytes
)

// Task is something that a GPU does in one go, or several times alike.
type Task struct {
	Name string
	Kind TaskKind
	// Count products of M × K by K × N, of Score its size.
	M, N, K float64
	Count   float64
	Flops   float64     // in all
	Bytes   unit.Volume // of a Stream, read and written
	Starts  float64     // of kernels
	Host    float64     // further operations of the host, which start no kernel or a short one
	Waits   float64     // of the host for the GPU, which then has nothing to do until the next kernels start
	Taps    float64     // of a convolution's Product, how many places of its kernel take the same number of M × K; 0 is 1
	Plain   bool        // of a Product, in 16 bits whatever the precision: the head, routers
	Wide    float64     // of a Product, bytes of a number of its output; 0 is as wide as activations
	Back    bool        // of the backward pass
	Weight  bool        // of that, gradients of weights, which nothing but the update waits for
	Routed  bool        // of experts: how much it is depends on how many tokens they get
	// Rows is the largest power of two, up to 8, that the rows of a product's matrices are a
	// multiple of, in elements.
	Rows int64
	// Pieces says that a Stream is a norm without a mean or rotary positions, which eager frameworks compute in many
	// operations, some of them in float32 or on rows that do not lie together.
	Pieces bool
	// Early and Second say that attention runs in kernels of 2022 and 2023, Recent that it and products do in those that
	// PyTorch calls since late 2025. Causal attention has no scores of later tokens.
	Early, Second, Recent, Causal bool
	// Narrow says that attention multiplies in FP8 where other products do.
	Narrow bool
}

// Pass is the tasks of one rank for one micro-batch through one block.
type Pass struct{ Forward, Backward, Again []Task }

// between is how often what lies between products goes through memory in a framework: the reads and writes of an
// activation by a normalisation with a mean (norm) and without (rms), by a nonlinearity alone (act) or each of two
// products that meet in one (gate), by a residual with its dropout, by rotary positions; the bytes that the loss moves
// for the score of a word; the kernels that a layer starts beside products and attention; and what each is multiplied
// by under amp, where some of it stays float32.
type between struct {
	norm, rms, act, gate, residual, rotary float64
	loss, starts, host                     float64
	amp                                    struct{ norm, rms, act, gate, residual float64 }
}

// Fused and compiled: a kernel reads its inputs and writes its output; norms and nonlinearities reach a half and two
// thirds of what copies do (step/testdata/h200.json). Eager is the count of what the operations of PyTorch 2 and
// Hugging Face's models read and write one by one: GPT-2's GELU, a formula with tanh, is eight of them (where it is one
// operation, as BERT's, see Part.Single), an RMS norm six in float32, and under amp the power in GELU and layer norms
// give float32. Its backward passes are counted as half more. Kernels that broadcast, convert or read rows which lie
// apart reach two thirds of what copies do, and are counted so in norms under autocast and in positions.
var betweens = map[Kernels]between{
	Fused:    {norm: 4, rms: 4, act: 3, gate: 2, residual: 3.25, rotary: 2, loss: 14, starts: 8, host: 24, amp: ampWhole},
	Compiled: {norm: 4, rms: 4, act: 3, gate: 2, residual: 3.25, rotary: 2, loss: 14, starts: 10, amp: ampWhole},
	Mixed:    {norm: 4, rms: 4, act: 3, gate: 2.5, residual: 3, rotary: 2, loss: 27, starts: 8, host: 64, amp: ampWhole},
	Eager:    {norm: 4, rms: 18, act: 18, gate: 2.5, residual: 5.5, rotary: 12, loss: 24, starts: 40, amp: ampEager},
}

var (
	ampWhole = struct{ norm, rms, act, gate, residual float64 }{1.4, 1.4, 1.4, 1.4, 1.4}
	ampEager = struct{ norm, rms, act, gate, residual float64 }{2.75, 1.6, 2.1, 1, 1.5}
)

// Pass is what a rank computes for one micro-batch through a block.
func (j *Job) Pass(b *Block) Pass {
	s := j.Split.filled()
	w := &taskBuilder{
		j: j, x: betweens[j.Kernels], last: b.Kind == Exit, width: j.Precision.Width(), tp: float64(s.TP), ep: float64(s.EP),
		etp: float64(s.ETP),
	}
	w.tokens = float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	w.between = w.tokens
	if s.SeqParallel {
		w.between /= w.tp
	}
	w.gated, w.counted, w.first = gated(b), b.has(Pointwise), b.Kind == Entry
	if j.Autocasts() {
		w.x = w.x.amped()
	}
	attended := !b.has(Attention) && !b.has(Scan)
	if p := b.Routed(); p != nil {
		w.permute(p, s.EP > 1)
	}
	for i := 0; i < len(b.Parts); i++ {
		p := &b.Parts[i]
		switch p.Kind {
		case Scan:
			w.scan(p)
			attended = true
		case Matmul:
			if j.Kernels == Fused || j.Kernels == Mixed {
				p, i = b.packed(i)
			}
			w.product(p, attended)
		case Attention:
			w.attention(p, float64(s.CP))
			attended = true
		case Norm:
			w.norm(p)
		case Pointwise:
			w.pointwise(p)
		case Lookup:
			w.stream(p.Name, 2*w.between*float64(p.Out)*w.width, 1, 1)
			if !w.j.LoRA.Frozen() {
				w.sum(float64(p.In*p.Out) / w.tp)
			}
		}
	}
	if b.Kind == Layer && !w.counted {
		n := w.x.starts
		if j.Kernels == Eager && j.Autocasts() {
			n *= 1.5 // casts, each an operation of its own
		}
		if n > 0 {
			fwd, bwd := j.hostOf(w)
			w.fwd = append(w.fwd, Task{Name: "starts", Kind: Stream, Starts: n, Host: fwd})
			w.bwd = append(w.bwd, Task{Name: "starts", Kind: Stream, Starts: n, Host: bwd, Back: true})
		}
	}
	for _, list := range [][]Task{w.fwd, w.bwd} {
		for i := range list {
			list[i].Recent = j.recent()
		}
	}
	pass := Pass{Forward: w.fwd, Backward: w.bwd}
	if j.Reference {
		pass.Forward = slices.Concat(w.fwd, w.fwd)
	}
	if b.Kind == Layer {
		pass.Again = j.repeated(w.fwd)
		if j.Kernels == Eager && j.again() == Full {
			pass.Again = append(pass.Again, Task{Name: "checkpoint", Kind: Stream, Host: checkpointHost})
		}
	}
	return pass
}

// Operations of the host in a layer's pass that start no kernel: views, lookups of autocast, nodes of autograd. Of
// steps of tiny models on one H200 and its host (PyTorch 2.11, 2026-11-19), where a layer takes 2.2 ms (GPT-2), 3.3
// (Llama of PyTorch's modules), 4.0 (Hugging Face's), 1.9 and 3.5 more with full recomputation, whose checkpoints keep
// and restore the state of random numbers and every tensor by a function in Python, 1.9 more under FSDP 2, 0.5 more for
// each pair of adapters, and 2.5 where it is compiled by itself, which has guards and a call of Python's.
const (
	eagerHost, gatedHost, foreignHost = 30, 40, 35
	checkpointHost                    = 110
	compiledHost, biasHost            = 30, 5
	shardFwd, shardBwd                = 70, 110
	adapterFwd, adapterBwd            = 15, 18
)

// hostOf is how many operations of the host beside kernels a layer has forward and backward.
func (j *Job) hostOf(w *taskBuilder) (fwd, bwd float64) {
	n, hooks := w.x.host, 0.0
	switch {
	case j.Kernels == Eager:
		n, hooks = eagerHost, 1
		if w.gated {
			n += gatedHost
			if !j.Plain {
				n += foreignHost
			}
		}
	case w.j.Plain && j.Kernels == Compiled:
		n, hooks = compiledHost, 0.5 // a kernel of which is counted as two
	}
	if !j.shards2() {
		hooks = 0
	}
	return n + hooks*shardFwd, n + hooks*shardBwd
}

// shards2 says that PyTorch's FSDP 2 keeps and gathers the weights.
func (j *Job) shards2() bool {
	return j.recent() && (j.Framework.Name == "fsdp" || j.Framework.Name == "torchtitan") && !j.Autocasts()
}

// Copied is how many bytes a parameter goes through memory beside products in each pass of a micro-batch. FSDP 2 casts
// a rank's part into the buffer that it gathers from and copies weights out of it, puts gradients together for the sum
// and casts that (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py); one rank alone copies from buffer to
// buffer in its collectives' place. Gradients of several micro-batches are added up.
func (j *Job) Copied() (fwd, bwd float64) {
	if !j.recent() {
		return 0, 0
	}
	parts := 1.0
	if s := j.Split.filled(); s.ZeRO > 0 {
		parts = float64(max(1, s.Shard))
	}
	if j.shards2() {
		gather := 4 + 6/parts
		if parts == 1 {
			gather += 4
		} else if j.Split.ZeRO == 3 {
			bwd += gather
		}
		fwd = gather
		if !j.LoRA.Frozen() {
			bwd += gather
		}
	}
	if m := float64(j.Micros()); m > 1 && !j.LoRA.Frozen() {
		_, wide, _ := j.state()
		bwd += 3 * wide / parts * (m - 1) / m
	}
	return fwd, bwd
}

// recent says that a job's kernels are those that PyTorch's own operators call from 2.9 on.
func (j *Job) recent() bool {
	f := j.Framework
	return f != nil && f.Attention == "fused" && f.At >= "2025-10" && (j.Kernels == Eager || j.Kernels == Compiled)
}

// repeated are the tasks of a layer that are computed again. No gradient needs what its last product puts out:
// compilers leave that out, and so do checkpoints that stop at the last tensor that is kept (PyTorch's from 2.1 on,
// set_checkpoint_early_stop), which frameworks have that compile.
func (j *Job) repeated(fwd []Task) []Task {
	var list []Task
	products, last := 0, -1
	stops := j.Kernels == Compiled && (j.Framework == nil || j.Framework.At >= "2023-10")
	for i := range fwd {
		if stops && fwd[i].Kind == Product && fwd[i].Name != "adapter" {
			last = i
		}
	}
	for i, t := range fwd {
		keep := true
		switch j.again() {
		case Full:
			keep = i != last || t.Routed // the router's shares need what experts put out
		case Selective:
			keep = t.Kind == Score || t.Name == "scores"
		case PerOp:
			if t.Kind == Product {
				products++
			}
			keep = t.Kind == Stream || t.Kind == Product && products%2 == 0
		case Light:
			keep = t.Kind == Stream && t.Name != "starts" && t.Name != "permutation" && t.Name != "cast"
		default:
			keep = false
		}
		if keep {
			list = append(list, t)
		}
	}
	return list
}

// has reports whether a block has a part of a kind.
func (b *Block) has(kind PartKind) bool {
	for i := range b.Parts {
		if b.Parts[i].Kind == kind {
			return true
		}
	}
	return false
}

// Routed is the first of a block's experts; nil where it has none.
func (b *Block) Routed() *Part {
	for i := range b.Parts {
		if b.Parts[i].Experts > 0 {
			return &b.Parts[i]
		}
	}
	return nil
}

// packed is the product of a place and those behind it that take the same input: frameworks that were written for it
// have one matrix for them. It returns the last one's place too.
func (b *Block) packed(i int) (*Part, int) {
	first := b.Parts[i]
	for i+1 < len(b.Parts) {
		next := &b.Parts[i+1]
		if first.Cut != ByOut || next.Kind != Matmul || next.Cut != ByOut || next.In != first.In ||
			next.Experts != first.Experts || next.Tied || next.Once {
			break
		}
		first.Out += next.Out
		i++
	}
	return &first, i
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

// taskBuilder puts the tasks of a block together.
type taskBuilder struct {
	j               *Job
	x               between
	width           float64
	tp, ep, etp     float64
	tokens, between float64 // of products, and of what lies between them
	fwd, bwd        []Task
	last            bool // the block after the layers
	first           bool // the block before the layers
	gated           bool // two products meet in the nonlinearity
	counted         bool // what lies between products is said by parts of its own
}

// product is a matrix product, what follows on its output, and both products of its backward
// pass.
func (w *taskBuilder) product(p *Part, attended bool) {
	if p.Experts > 0 {
		defer w.routed(len(w.fwd), len(w.bwd))
	}
	m, n, k := w.tokens, float64(p.Out), float64(p.In)
	if p.Once {
		m = float64(w.j.MicroBatch)
	}
	if w.counted {
		m = w.numbers(p)
	}
	if w.last && !p.Once && w.j.Masked > 0 {
		m *= w.j.Masked
	}
	by := w.tp
	count, starts := 1.0, 1.0
	if p.Experts > 0 { // tokens come from all ranks that share the experts, evenly
		by = w.etp
		count = float64(p.Experts) / w.ep
		switch {
		case w.j.grouped(): // one kernel for all
			starts = 1
		case w.j.Kernels == Fused:
			starts = 1 + (count-1)*inLoop
		default:
			starts = count
		}
		m = w.tokens * float64(p.TopK) / count * w.etp / w.tp
	}
	switch p.Cut {
	case ByOut:
		n /= by
	case ByIn:
		k /= by
	}
	if len(p.Shape) == 4 {
		w.convolution(p, m)
		return
	}
	flops := 2 * m * n * k * count
	rows, plain := w.rows(p), w.last || p.Cut == Whole
	w.fwd = append(w.fwd, Task{
		Name: p.Name, Kind: Product, M: m, N: n, K: k, Count: count, Flops: flops, Starts: starts, Rows: rows, Plain: plain,
	})
	w.bwd = append(w.bwd, Task{
		Name: p.Name + " to its input", Kind: Product, M: m, N: k, K: n, Count: count, Flops: flops, Starts: starts,
		Back: true, Rows: rows, Plain: plain,
	})
	// The products of experts in one graph are one kernel with what lies between them and its casts (Transformer Engine
	// 2.14's fused grouped MLP).
	joined := p.Experts > 0 && w.j.Recipe.Graphs == GraphWhole
	if !plain && (!joined || p.Cut == ByOut) {
		w.cast(m*k*count, starts, false)
	}
	if !plain && (!joined || p.Cut == ByIn) {
		w.cast(m*n*count, starts, true)
	}
	if w.j.LoRA.Frozen() {
		w.adapter(p, m, n, k, attended)
	} else {
		t := Task{
			Name: p.Name + " to its weight", Kind: Product, M: k, N: n, K: m, Count: count, Flops: flops, Starts: starts,
			Back: true, Rows: rows, Weight: true, Plain: plain,
		}
		if w.j.Kernels == Fused && w.width == 2 { // added to what is there, as wide as gradients are summed
			t.Wide = 2 * w.j.GradWidth()
		}
		w.bwd = append(w.bwd, t)
		w.sum(n * k * count)
	}
	if w.j.Kernels == Eager && w.j.Autocasts() && p.Cut == ByOut && !w.last && !w.gated { // a layer norm puts out float32
		w.stream("cast", m*k*6, 2, 1)
	}
	if w.j.Autocasts() && !w.j.LoRA.Frozen() { // the weight is cast before the product and its gradient after it
		w.fwd = append(w.fwd, Task{Name: "cast", Kind: Stream, Bytes: unit.Volume(6 * n * k * count), Starts: 1})
		w.bwd = append(w.bwd, Task{
			Name: "cast", Kind: Stream, Bytes: unit.Volume(6 * n * k * count), Starts: 1, Back: true, Weight: true,
		})
	}
	if w.counted {
		return
	}
	m *= count // of all experts, from here
	x := &w.x
	switch {
	case w.last && p.Cut == ByOut && !p.Once:
		// The loss: scores of all words cast to float32, their maximum, the sum of their
		// exponentials; and the gradient.
		w.fwd = append(w.fwd, Task{Name: "loss", Kind: Stream, Bytes: unit.Volume(m * n * x.loss), Starts: 6})
		w.bwd = append(w.bwd, Task{Name: "loss", Kind: Stream, Bytes: unit.Volume(m * n * x.loss), Starts: 4, Back: true})
	case p.Cut == ByIn:
		w.stream("residual", w.between*float64(p.Out)*w.width*x.residual, 1, 0)
	case joined:
	case p.Cut == ByOut && attended && !p.Tied:
		each := x.act
		switch {
		case w.gated:
			each = x.gate
		case (p.Single || w.j.Plain) && w.j.Kernels == Eager: // one kernel, in 16 bits under amp too
			each = betweens[Compiled].act
		}
		w.stream("activation", m*n*w.width*each, 1.5, 0)
	}
	switch { // products of many experts at once do not add it
	case !p.Bias || p.Experts == 0 || joined:
	case w.j.Kernels != Fused:
		w.stream("bias", 2*m*n*w.width, 1, 1)
	case p.Cut == ByOut:
		w.stream("clamp", clamped[0]*m*n, clamped[1]/clamped[0], 5)
	default:
		w.stream("bias", biased[0]*m*n, biased[1]/biased[0], 8)
	}
	if p.Bias { // added by the product; its gradient is a sum over the tokens
		t := Task{Name: "bias", Kind: Stream, Bytes: unit.Volume(m * n * w.width), Back: true}
		if w.j.Plain && w.j.Kernels == Compiled { // a parameter more, whose gradient is a hook's
			t.Host = biasHost
		}
		w.bwd = append(w.bwd, t)
	}
}

// Bytes for a number, forward and backward, of what Megatron-Core does in operations of their own where experts have a
// bias: halves of the first product are clamped and put together again (fused_bias_geglu.py); the bias times the
// router's share, in float32, is added expert by expert, put together and narrowed (experts.py, _apply_bias).
var (
	clamped = [2]float64{8, 10}
	biased  = [2]float64{28, 40}
)

// inLoop is the share of a start that each further product of experts takes: Transformer Engine calls cuBLAS for one
// after the other in C++, on four streams (v2.18, common/gemm/cublaslt_gemm.cu).
const inLoop = 0.4

// sum adds the gradients of a micro-batch to those before it by an operation of its own, and clears them.
func (w *taskBuilder) sum(weights float64) {
	if w.j.Keeps == KeepSums {
		w.bwd = append(w.bwd, Task{
			Name: "sum", Kind: Stream, Bytes: unit.Volume(weights * (w.width + 4 + 4)), Starts: 1, Back: true, Weight: true,
		})
	}
}

// norm is a normalisation.
func (w *taskBuilder) norm(p *Part) {
	if w.counted {
		return
	}
	each, back := w.x.rms, 1.5
	n, ofHeads := w.j.normed(p)
	switch {
	case p.Bias:
		each = w.x.norm
	case w.j.Kernels != Eager:
	case ofHeads && (w.j.Autocasts() || !w.j.Plain):
		each, back = 24, wideBack
	case w.j.Plain && w.j.Autocasts():
		each, back = 15, 2
	case w.j.Plain:
		each, back = w.x.norm, 2.4
	case w.j.Autocasts():
		back = wideBack
	}
	w.stream(p.Name, w.between*n*w.width*each, back, 1)
	if !p.Bias && (!w.j.Plain || ofHeads) {
		w.inPieces()
	}
}

// wideBack is how many times as many bytes the backward pass of an RMS norm moves whose parts are float32 kernels: a
// profile of the Trainer's step on one H200 has its gradients, and those of what products take, cast and added one by
// one.
const wideBack = 2.2

// normed is how many numbers of a token a norm has, which for those of queries and keys are all heads', half of both
// for each.
func (j *Job) normed(p *Part) (n float64, ofHeads bool) {
	if d := j.Model.Dims.filled(); p.Out != d.Hidden && p.Out == d.HeadDim {
		return float64(p.Out*(d.Heads+d.KVHeads)) / 2, true
	}
	return float64(p.Out), false
}

// inPieces marks the stream that was added last.
func (w *taskBuilder) inPieces() { w.fwd[len(w.fwd)-1].Pieces, w.bwd[len(w.bwd)-1].Pieces = true, true }

// amped is what goes through memory under amp.
func (x between) amped() between {
	x.norm, x.rms, x.act, x.gate, x.residual = x.norm*x.amp.norm, x.rms*x.amp.rms, x.act*x.amp.act, x.gate*x.amp.gate,
		x.residual*x.amp.residual
	return x
}

// rows is what the rows of a weight and of its outputs are a multiple of. Frameworks that
// compile or fuse pad them, and so do those that cut matrices among ranks.
func (w *taskBuilder) rows(p *Part) int64 {
	if w.j.Kernels != Eager && !w.whole() || w.tp > 1 || w.j.Padded {
		return 8
	}
	r := int64(8)
	for p.Out%r != 0 || p.In%r != 0 {
		r /= 2
	}
	return r
}

// routed marks the tasks from places on as those of experts.
func (w *taskBuilder) routed(fwd, bwd int) {
	for _, list := range [][]Task{w.fwd[fwd:], w.bwd[bwd:]} {
		for i := range list {
			list[i].Routed = true
		}
	}
}

// whole says that the block is not compiled although layers are: what busbar's programs and PyTorch's guides compile
// are the layers.
func (w *taskBuilder) whole() bool { return w.last && w.j.Plain && w.j.Kernels == Compiled }

// permute puts tokens in the order of their experts and back: each goes through memory twice, read and written, as
// often as it has experts, and again where they come from other ranks and are put in the order of the experts here.
func (w *taskBuilder) permute(p *Part, travel bool) {
	defer w.routed(len(w.fwd), len(w.bwd))
	tokens := w.between
	if w.etp < w.tp {
		tokens = w.tokens / w.tp
	}
	times := 4.0
	// which send tokens in the order that they have
	if d := w.j.Recipe.Dispatcher; travel && d != DeepEP && d != HybridEP {
		times = 8
	}
	w.stream("permutation", times*tokens*float64(p.TopK)*float64(p.In)*w.width, 1, 4)
	if w.j.Capacity {
		return
	}
	if w.j.loops() { // a loop over experts: those of each are looked up, gathered, multiplied and added to the others'
		n := float64(p.Experts) / w.ep
		w.fwd = append(w.fwd, Task{Name: "experts' loop", Kind: Stream, Starts: 4 * n, Host: loopHost[0] * n, Waits: n})
		w.bwd = append(w.bwd, Task{Name: "experts' loop", Kind: Stream, Starts: 4 * n, Host: loopHost[1] * n, Back: true})
		return
	}
	if w.j.grouped() && !travel { // sorted and multiplied in groups on the GPU alone
		return
	}
	for _, list := range []*[]Task{&w.fwd, &w.bwd} { // counting, sorting, splitting: the host waits for the numbers
		(*list)[len(*list)-1].Host = routing
	}
}

// stream is bytes that go through memory, and back times as many in the backward pass.
func (w *taskBuilder) stream(name string, bytes, back, starts float64) {
	w.fwd = append(w.fwd, Task{Name: name, Kind: Stream, Bytes: unit.Volume(bytes), Starts: starts})
	w.bwd = append(w.bwd, Task{Name: name, Kind: Stream, Bytes: unit.Volume(bytes * back), Starts: starts, Back: true})
}

// attention is the scores and the weighted sums: in one kernel, whose backward pass computes
// the scores again (five products to two), or as two products with the scores in memory between
// them.
func (w *taskBuilder) attention(p *Part, cp float64) {
	heads := float64(p.Heads) / w.tp
	seq := float64(w.j.document())
	batch := float64(w.j.MicroBatch) * float64(w.j.Seq) / seq
	rows := seq / cp
	flops := 4 * batch * heads * rows * p.seen(seq) * float64(p.HeadDim)
	if w.gated { // positions are turned into queries and keys, as all networks with gates do
		both := heads + float64(p.KVHeads)/w.tp
		each, back := w.x.rotary, 1.0
		switch {
		case w.j.Kernels != Eager:
		case w.j.Plain:
			each, back = 20, 1.5
		case w.j.Autocasts():
			each, back = 24, 1.25
		}
		w.stream("positions", batch*rows*both*float64(p.HeadDim)*w.width*each, back, 1)
		w.inPieces()
	}
	if !w.j.Unfused {
		if p.Causal {
			flops /= 2
		}
		t := Task{
			Name: p.Name, Kind: Score, M: rows, N: seq, K: float64(p.HeadDim), Count: batch * heads, Flops: flops, Starts: 1,
			Early: w.j.Early, Second: w.j.Second, Causal: p.Causal,
			Narrow: w.j.narrowScores(),
		}
		w.fwd = append(w.fwd, t)
		t.Flops, t.Starts, t.Back = 2.5*flops, 2, true
		w.bwd = append(w.bwd, t)
		return
	}
	half := Task{
		Name: "scores", Kind: Product, M: rows, N: seq, K: float64(p.HeadDim), Count: batch * heads, Flops: flops / 2,
		Starts: 1,
	}
	sums := half
	sums.N, sums.K = half.K, half.N
	w.fwd = append(w.fwd, half, sums)
	for range 2 {
		a, b := half, sums
		a.Back, b.Back = true, true
		w.bwd = append(w.bwd, a, b)
	}
	// Written, read and written by the mask and the softmax, by the dropout, read again.
	scores := unit.Volume(batch * heads * rows * seq * w.width)
	through := unit.Volume(5.5)
	if w.j.Kernels == Eager {
		through = 9
	}
	w.fwd = append(w.fwd, Task{Name: "scores", Kind: Stream, Bytes: scores * through, Starts: 3})
	w.bwd = append(w.bwd, Task{Name: "scores", Kind: Stream, Bytes: scores * through * 1.2, Starts: 4, Back: true})
}

// narrowScores says that attention multiplies in FP8 where other products do: by recipes for experts whose graphs hold
// the whole step (Megatron-Bridge v0.5, fp8_dot_product_attention) and MLPerf's for adapters (FP8_DPA).
func (j *Job) narrowScores() bool {
	return j.Model.Dims.Experts > 0 && j.Recipe.Graphs == GraphWhole ||
		j.LoRA.Frozen() && j.Framework != nil && j.Framework.Name == "mlperf"
}

// numbers is at how many places a micro-batch passes a part.
func (w *taskBuilder) numbers(p *Part) float64 {
	m := w.tokens
	if p.Once {
		m = float64(w.j.MicroBatch)
	}
	return m * float64(max(p.Rows, 1))
}

// pointwise is operations between products that a part counts itself.
func (w *taskBuilder) pointwise(p *Part) {
	times, starts := p.Passes, p.Starts
	if w.j.Kernels != Eager && p.Least != [2]float64{} {
		times, starts = p.Least, [2]float64{1, 2}
	}
	bytes := w.numbers(p) * float64(p.Out) * w.width
	w.stream(p.Name, bytes*times[0], times[1]/times[0], 0)
	w.fwd[len(w.fwd)-1].Starts, w.bwd[len(w.bwd)-1].Starts = starts[0], starts[1]
}

// sumPieces is into how many pieces the gradient of a convolution's weight is cut at least: some waves of any GPU.
const sumPieces = 512

// convolution is one as a product over patches that are never written to memory: every number of the input is read
// once, and then by the kernel's other places from the chip. The gradient of a picture is not computed.
func (w *taskBuilder) convolution(p *Part, m float64) {
	taps := float64(p.Shape[2] * p.Shape[3])
	n, k := float64(p.Out), float64(p.In)
	t := Task{
		Name: p.Name, Kind: Product, M: m, N: n, K: k, Count: 1, Flops: 2 * m * n * k, Starts: 1, Rows: w.rows(p), Taps: taps,
	}
	w.fwd = append(w.fwd, t)
	if w.j.Autocasts() {
		w.fwd = append(w.fwd, Task{Name: "cast", Kind: Stream, Bytes: unit.Volume(6 * n * k), Starts: 1})
		w.bwd = append(w.bwd, Task{
			Name: "cast", Kind: Stream, Bytes: unit.Volume(6 * n * k), Starts: 1, Back: true, Weight: true,
		})
	}
	// inputs and outputs of each of the three products are brought into the order of tensor cores, or back
	if w.j.ChannelsFirst && w.j.Precision != FP32 {
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

// kept is how many numbers a picture leaves for the backward pass where parts say so.
func (b *Block) kept() float64 {
	sum := 0.0
	for i := range b.Parts {
		p := &b.Parts[i]
		sum += p.Kept * float64(max(p.Rows, 1)*p.Out)
	}
	return sum
}

// routing is how many operations the host does in a pass to send tokens to their experts: counting, sorting, splitting,
// exchanging the numbers and waiting for them (Megatron-Core's dispatcher by all-to-all).
const routing = 160

// loopHost is how many further operations the host does for an expert of a loop (Hugging Face's MixtralSparseMoeBlock):
// forward, one of which waits for the GPU, and backward, where a gradient is put back to the tokens and to the router's
// by index, each a sort and a dozen operations on indices.
var loopHost = [2]float64{10, 40}

// loops reports whether experts are computed one after the other: PyTorch's operators without a framework whose model
// groups them.
func (j *Job) loops() bool {
	return j.Loop || j.Kernels == Eager && j.Framework == nil
}

// grouped reports whether one kernel multiplies for all experts, sorted on the GPU (torch._grouped_mm); Fused is
// Megatron-Core's dispatcher.
func (j *Job) grouped() bool { return j.Kernels != Fused && !j.loops() }

// cast brings the input of products into fewer bits, forward, or the gradient of their output, backward. Products that
// share an input share its cast: those of a gated MLP and of queries, keys and values are one product where precision
// is so low.
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

// adapter is what LoRA adds to a product: two narrow ones, whose result is added, and their four in the backward pass.
// All of them read or write activations and hardly compute. Weights of fewer bits are brought to 16 before the product.
func (w *taskBuilder) adapter(p *Part, m, n, k float64, attended bool) {
	if bits := w.j.LoRA.Bits; bits > 0 && bits < 16 {
		bytes := unit.Volume(n * k * (2 + float64(bits)/8))
		if p.Experts > 0 {
			bytes *= unit.Volume(float64(p.Experts) / w.ep)
		}
		w.fwd = append(w.fwd, Task{Name: "widening", Kind: Stream, Bytes: bytes, Starts: 1})
		w.bwd = append(w.bwd, Task{Name: "widening", Kind: Stream, Bytes: bytes, Starts: 1, Back: true})
	}
	if w.last || !w.j.LoRA.adapts(p, attended) {
		return
	}
	r := float64(w.j.LoRA.Rank)
	w.fwd = append(w.fwd,
		Task{Name: "adapter", Kind: Product, M: m, N: r, K: k, Count: 1, Flops: 2 * m * r * k, Starts: 2, Host: adapterFwd},
		Task{Name: "adapter", Kind: Product, M: m, N: n, K: r, Count: 1, Flops: 2 * m * r * n, Starts: 1},
		Task{Name: "adapter", Kind: Stream, Bytes: unit.Volume(3 * m * n * w.width), Starts: 2})
	for range 2 {
		w.bwd = append(w.bwd,
			Task{Name: "adapter", Kind: Product, M: m, N: r, K: n, Count: 1, Flops: 2 * m * r * n, Starts: 1, Back: true},
			Task{Name: "adapter", Kind: Product, M: m, N: k, K: r, Count: 1, Flops: 2 * m * r * k, Starts: 1, Back: true})
	}
	w.bwd = append(w.bwd, Task{
		Name: "adapter", Kind: Stream, Bytes: unit.Volume(3 * m * k * w.width), Starts: 2, Host: adapterBwd, Back: true,
	})
	if w.j.wideAdapters() { // the input is cast to float32 and, for the product, back; its gradient goes the same way, and
		// what comes out is scaled by an operation of its own
		bytes := unit.Volume(2.25*2*m*k*(w.width+4) + 3*m*n*w.width)
		w.fwd = append(w.fwd, Task{Name: "adapter's casts", Kind: Stream, Bytes: bytes, Starts: 2})
		w.bwd = append(w.bwd, Task{Name: "adapter's casts", Kind: Stream, Bytes: bytes, Starts: 2, Back: true})
	}
}

// scanned are the reads and writes of the inner width of a state-space layer by its convolution, scan and gated norm,
// and how much more its backward pass has of them and of operations.
const (
	scanStreams = 12
	scanBack    = 2.5
)

// ownScans says that state-space layers run in kernels written for them, which those who name a framework install:
// without one, PyTorch's own operations compute them.
func (j *Job) ownScans() bool { return j.Kernels == Fused || j.Framework != nil }

// kept is how many numbers a token leaves in memory for the backward pass of a scan: what enters it and comes out of
// it; without kernels of its own also the matrices of chunks, of which one is in float32, the states' inputs and
// outputs by head, and states.
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
	t := Task{
		Name: p.Name, Kind: Chunks, Flops: flops, Bytes: unit.Volume(scanStreams * tokens * wide * w.width), Starts: 9,
		Count: 1,
	}
	back := t
	back.Flops, back.Bytes, back.Starts, back.Back = scanBack*flops, scanBack*t.Bytes, 16, true
	w.fwd, w.bwd = append(w.fwd, t), append(w.bwd, back)
}

// plainConv is how often the numbers of the convolution before a scan could go through memory in the time that
// PyTorch's own takes, a third of it forward: 1.9 ms for 59 million on one H200 (2.11, 2026-11-16).
const plainConv = 15

// plainScan is a scan in PyTorch's operations (Dao and Gu 2024, listing 1): products of many small matrices, and
// between them everything goes through memory. One by one, the decays of a chunk do so seven times, in float32.
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
		{scanChunk, scanChunk, state, groups},
		{scanChunk, dim, scanChunk, heads},
		{state, dim, scanChunk, heads},
		{scanChunk, dim, state, heads},
	} {
		t := Task{
			Name: p.Name, Kind: Product, M: x.m, N: x.n, K: x.k, Count: chunks * x.count,
			Flops: 2 * x.m * x.n * x.k * chunks * x.count, Starts: 1, Plain: true,
		}
		w.fwd = append(w.fwd, t)
		t.Back = true
		w.bwd = append(w.bwd, t, t)
	}
}
