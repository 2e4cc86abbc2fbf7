package workload

// left is bytes that a token leaves for the backward pass: of what tensor-parallel ranks divide with sequence
// parallelism alone, and of what they always divide.
type left struct{ between, cut float64 }

// per is what one rank has of it.
func (l left) per(between, tp float64) float64 { return l.between/between + l.cut/tp }

// add is both, one of them several times.
func (l left) add(o left, times float64) left {
	return left{l.between + times*o.between, l.cut + times*o.cut}
}

// Leaving is what a token leaves in blocks for the backward pass, by what recomputation keeps of it.
type Leaving struct {
	all    left
	input  left    // of that, what the block is entered with
	cheap  left    // of that, what Light computes again
	chosen left    // what PerOp keeps
	scores float64 // a token that it sees, where attention writes its scores
}

func (l Leaving) add(o Leaving, times float64) Leaving {
	return Leaving{
		l.all.add(o.all, times), l.input.add(o.input, times), l.cheap.add(o.cheap, times), l.chosen.add(o.chosen, times),
		l.scores + times*o.scores,
	}
}

// leaver adds up a block.
type leaver struct {
	j *Job
	b *Block
	Leaving
	width, wide, operand float64 // bytes of a number between products, in the residual, and as products take it
	gated, attended, mlp bool
}

// leaving counts what the operations of a block leave, after what each needs for its gradient. A product needs what it
// takes, a norm what it takes, attention what it takes and puts out, a nonlinearity what it takes; kernels differ in
// what they write beside that.
func (j *Job) leaving(b *Block) Leaving {
	w := j.Precision.Width()
	l := &leaver{
		j: j, b: b, width: w, wide: w, operand: w, gated: gated(b), attended: !b.has(Attention) && !b.has(Scan),
	}
	// FSDP's weights and what they give are of 16 bits; so are those of Apex (O2), which written kernels go with
	if j.Autocasts() && j.Split.ZeRO < 3 && j.Kernels != Fused {
		l.wide = 4
	}
	if j.Kernels != Eager {
		l.operand = j.Precision.Operand()
	}
	for i := range b.Parts {
		switch p := &b.Parts[i]; p.Kind {
		case Norm:
			l.norm(p)
		case Matmul:
			l.product(i)
		case Attention:
			l.attention(p)
			l.attended = true
		case Scan:
			l.all.cut += w * p.kept(j.ownScans())
			l.chosen.cut += w * p.kept(j.ownScans())
			l.attended = true
		}
	}
	l.input = left{between: l.wide * float64(j.Model.Dims.Hidden)}
	l.chosen.between += l.input.between
	return l.Leaving
}

// norm keeps what it takes. An RMS norm in PyTorch's operations keeps a float32 copy of that and what it scales, where
// its scale is trained; those of queries and keys are of all heads.
func (l *leaver) norm(p *Part) {
	to := &l.all.between
	n, ofHeads := l.j.normed(p)
	if ofHeads {
		to = &l.all.cut
	}
	each := l.wide
	if !p.Bias && l.j.Kernels == Eager && (!l.j.Plain || ofHeads && l.wide == 4) {
		if each = 4; !l.j.LoRA.Frozen() {
			each += l.wide
		}
	}
	*to += each * n
}

// product keeps what it takes, once where products of the same input lie side by side, but for casts of autocast, which
// are made for each; and what follows it keeps what it puts out. What is not trained is not kept.
func (l *leaver) product(i int) {
	p := &l.b.Parts[i]
	in, out := float64(p.In), float64(p.Out)
	if p.Once {
		return
	}
	if p.Experts > 0 {
		l.expert(p, i)
		return
	}
	shared := false
	if i > 0 {
		before := &l.b.Parts[i-1]
		shared = before.Kind == Matmul && before.In == p.In && before.Cut != ByIn && p.Cut != ByIn
	}
	trained := !l.j.LoRA.Frozen() || l.j.LoRA.adapts(p, l.attended)
	each, again := l.operand, l.j.Kernels == Eager && l.wide > l.width
	if l.j.wideAdapters() { // which take a cast of their own
		again = true
	}
	switch {
	case p.Cut == ByIn && !l.mlp: // what attention puts out is kept by it, too
		l.all.cut += l.width * in
		l.chosen.cut += l.width * in
	case p.Cut == ByIn:
		if trained {
			l.all.cut += each * in
		}
		l.cheap.cut += each * in
	case trained && (!shared || again):
		if s := l.j.Split.filled(); s.SeqParallel && l.j.Keeps == KeepWide {
			// What PyTorch's tensor parallelism gathered stays: compiled code never gathers again, unless all of the block is
			// computed again (force_save_collectives).
			in *= float64(s.TP)
		}
		l.all.between += each * in
		l.cheap.between += each * in
	}
	if p.Cut == ByIn {
		l.chosen.between += l.width * out / 2
		if p.Bias && l.j.Kernels != Compiled { // a mask of dropout
			l.all.between += out
		}
		return
	}
	l.chosen.cut += l.width * out / 2
	if l.attended && p.Cut == ByOut && !p.Tied && l.b.Kind == Layer {
		l.mlp = true
		l.nonlinearity(p, out, i)
	}
}

// nonlinearity keeps what it takes. Of two products that meet in it PyTorch's operations keep what the first becomes;
// a formula with powers keeps four of its steps, under autocast those behind the power in float32.
func (l *leaver) nonlinearity(p *Part, out float64, i int) {
	each := l.width
	first := i+1 < len(l.b.Parts) && l.b.Parts[i+1].Cut == ByOut
	switch {
	case l.j.Kernels != Eager && l.j.Kernels != Mixed:
	case l.gated && first:
		each *= 2
	case l.gated || p.Single || l.j.Plain || l.j.Kernels == Mixed:
	case l.j.Autocasts():
		each = 3*4 + l.width
	default:
		each *= 4
	}
	l.all.cut += each * out
}

// expert keeps, for every expert that a token passes, its copy in the order of experts, which is what products take,
// and what products and nonlinearities keep: how tokens travel needs their places alone. What an expert puts out stays
// where it is multiplied by the router's weight, which Megatron-Core does in the nonlinearity.
func (l *leaver) expert(p *Part, i int) {
	rows, tensor := float64(p.TopK), float64(l.j.Split.filled().ETP)
	if p.Cut == ByIn {
		l.all.cut += rows * l.operand * float64(p.In)
		l.cheap.cut += rows * l.operand * float64(p.In)
		if l.j.Kernels != Fused {
			l.all.cut += rows * l.width * float64(p.Out) * tensor
		}
		return
	}
	if i == 0 || l.b.Parts[i-1].Experts == 0 {
		l.all.cut += rows * l.operand * float64(p.In) * tensor
	}
	l.nonlinearity(p, rows*float64(p.Out), i)
}

// attention keeps queries, keys and values as it takes them, and a number a head; what it puts out is the next
// product's input. Where positions were turned into them by kernels that see all three as one, the product's output
// stays too; flash-attention's own lays keys and values together again. Without a fused kernel the scores stay, which
// float32 with fewer heads of keys has none for.
func (l *leaver) attention(p *Part) {
	heads, both := float64(p.Heads*p.HeadDim), float64((p.Heads+p.KVHeads)*p.HeadDim)
	keys := both - heads
	numbers := heads + 2*keys
	if l.gated {
		switch l.j.Kernels {
		case Fused:
			numbers += both
		case Mixed:
			numbers += 2 * keys
		}
		if l.j.Plain { // keys and values are repeated for all heads
			numbers += 2 * (heads - keys)
		}
	}
	fallback := l.j.Precision.Width() == 4 && p.KVHeads < p.Heads && l.j.Kernels != Fused
	switch {
	case l.j.Unfused:
		l.scores += 2.5 * l.width * float64(p.Heads)
	case fallback:
		l.scores += 2 * l.width * float64(p.Heads)
		numbers += 2 * (heads - keys)
	}
	l.all.cut += l.width*numbers + 4*float64(p.Heads)
}
