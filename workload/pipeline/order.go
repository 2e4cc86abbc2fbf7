package pipeline

// Kind is what a pass computes.
type Kind uint8

// Kinds of passes.
const (
	Forward  Kind = iota
	Backward      // gradients, where the backward pass is cut those of inputs only
	Weight        // gradients of weights
)

func (k Kind) String() string { return [...]string{"forward", "backward", "weights"}[k] }

// Pass is one micro-batch through one of a rank's chunks.
type Pass struct {
	Micro int32
	Chunk int16
	Kind  Kind
}

// Order is what a rank does, one pass after the other.
func (s Shape) Order(rank int) []Pass {
	switch s.Schedule {
	case GPipe:
		return s.phases()
	case Interleaved:
		return s.alternate(2*(s.Ranks-1-rank) + (s.Chunks-1)*s.Ranks)
	case ZeroBubble:
		return s.split(s.Ranks-1-rank, rank)
	case ZeroBubble2:
		return s.split(2*(s.Ranks-1-rank), 2*rank)
	case ZeroBubbleV:
		return s.zbv(rank)
	}
	return s.alternate(s.Ranks - 1 - rank)
}

// phases is all forward passes, then all backward passes, the last micro-batch's first: its
// activations are the freshest.
func (s Shape) phases() []Pass {
	list := make([]Pass, 0, 2*s.Micros)
	for k := range s.Micros {
		list = append(list, Pass{Micro: int32(k)})
	}
	for k := s.Micros - 1; k >= 0; k-- {
		list = append(list, Pass{Micro: int32(k), Kind: Backward})
	}
	return list
}

// pass is a rank's k-th forward or backward pass. With chunks, groups of as many micro-batches
// as there are ranks go through all chunks before the next group.
func (s Shape) pass(k int, kind Kind) Pass {
	if s.Chunks == 1 {
		return Pass{Micro: int32(k), Kind: kind}
	}
	group := k / (s.Ranks * s.Chunks)
	in := k - group*s.Ranks*s.Chunks
	c := in / s.Ranks
	if kind == Backward {
		c = s.Chunks - 1 - c
	}
	return Pass{Micro: int32(group*s.Ranks + in%s.Ranks), Chunk: int16(c), Kind: kind}
}

// alternate is some forward passes ahead, one forward and one backward in turn, and the
// backward passes that are left.
func (s Shape) alternate(ahead int) []Pass {
	n := s.Micros * s.Chunks
	ahead = min(n, ahead)
	list := make([]Pass, 0, 2*n)
	for k := range ahead {
		list = append(list, s.pass(k, Forward))
	}
	for k := ahead; k < n; k++ {
		list = append(list, s.pass(k, Forward), s.pass(k-ahead, Backward))
	}
	for k := n - ahead; k < n; k++ {
		list = append(list, s.pass(k, Backward))
	}
	return list
}

// split is alternate with gradients of weights on their own: so many micro-batches later than
// those of inputs, then in turn with them, which fills the time in which a rank waits for the
// one behind it.
func (s Shape) split(ahead, later int) []Pass {
	n := s.Micros
	ahead = min(n, ahead)
	list := make([]Pass, 0, 3*n)
	weights := 0
	for k := range ahead {
		list = append(list, s.pass(k, Forward))
	}
	for k := range n {
		if k+ahead < n {
			list = append(list, s.pass(k+ahead, Forward))
		} else {
			later = 0
		}
		list = append(list, s.pass(k, Backward))
		if k-weights >= later {
			list = append(list, s.pass(weights, Weight))
			weights++
		}
	}
	for ; weights < n; weights++ {
		list = append(list, s.pass(weights, Weight))
	}
	return list
}

// zbv is the order of ZB-V: forward passes of the first half until the second half comes
// back, then the four of both halves in turn, each with its gradients of weights, and at the end
// those that were put off.
func (s Shape) zbv(rank int) []Pass {
	v := &zbvBuilder{n: max(s.Micros, 2*s.Ranks-1), real: s.Micros}
	for range 2*(s.Ranks-rank) - 1 {
		v.addPass(0, Forward)
	}
	for range rank {
		v.addPass(1, Forward)
		v.addPass(0, Forward)
	}
	for range s.Ranks - rank {
		v.addPass(1, Forward)
		v.addPass(1, Backward)
		v.addPass(1, Weight)
	}
	for v.done[1][Forward] < v.done[0][Forward] || v.done[0][Forward] < v.n {
		if v.done[0][Forward] < v.n {
			v.addPass(0, Forward)
		}
		v.addPass(0, Backward)
		v.addPass(0, Weight)
		v.addPass(1, Forward)
		v.addPass(1, Backward)
		v.addPass(1, Weight)
	}
	for range rank {
		v.addPass(0, Backward)
		v.addPass(1, Backward)
	}
	for range s.Ranks - rank {
		v.addPass(0, Backward)
		v.addPass(0, Weight)
	}
	for _, c := range []int{1, 0} {
		for v.done[c][Weight] < v.done[c][Backward] {
			v.addPass(c, Weight)
		}
	}
	return v.list
}

// zbvBuilder counts what a rank of ZB-V has done. The order is made for enough micro-batches to fill
// the pipeline; those that do not exist are left out.
type zbvBuilder struct {
	n, real int
	done    [2][3]int
	list    []Pass
}

func (v *zbvBuilder) addPass(chunk int, kind Kind) {
	k := v.done[chunk][kind]
	v.done[chunk][kind]++
	if k < v.real {
		v.list = append(v.list, Pass{Micro: int32(k), Chunk: int16(chunk), Kind: kind})
	}
}
