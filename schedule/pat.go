package schedule

import (
	"math/bits"
	"slices"
)

// pat is NCCL's parallel aggregated trees (NCCL 2.23; Jeaugey, "PAT: a new algorithm for
// all-gather and reduce-scatter operations at scale", 2025), the all-gather; the reduce-scatter
// is its mirror. Every rank's block spreads along a binomial tree towards lower positions: the
// block of position p+s arrives at p from p+d, d being the lowest bit of s, and far partners
// come first, when there is least to send. Up to agg blocks of trees that lie regularly spaced
// share a message: as many as NCCL aggregates, half of the ranks, so that the rounds are logarithmic.
//
// What all positions do alike is stored, a number a block; the ops are computed.
type pat struct {
	n, agg int
	far    []int32 // by round: the distance of the partner
	first  []int32 // by round: where its list begins in steps, and the end
	ops    []int32 // by round: the ops before it, and the sum
	steps  []int32 // the distance s of every block that arrives
}

// newPAT lays out the rounds.
func newPAT(n int) *pat {
	t := &pat{n: n, agg: 1, first: []int32{0}, ops: []int32{0}}
	if n == 1 {
		return t
	}
	delta := 1 << bits.Len(uint(n-1))
	for t.agg < n/2 {
		t.agg *= 2
		delta /= 2
	}
	for scale := t.agg / 2; scale > 0; scale /= 2 {
		for a := range t.agg / (2 * scale) {
			t.addStep((2*a + 1) * scale * delta)
		}
		t.close(scale * delta)
	}
	below := []int{1}
	if delta == 4 {
		below = []int{2, 3, 1}
	}
	for _, as := range below { // the trees below the aggregated levels, in NCCL's order
		for a := range t.agg {
			t.addStep(a*delta + as)
		}
		t.close(as & -as)
	}
	return t
}

func (t *pat) addStep(s int) {
	if s < t.n {
		t.steps = append(t.steps, int32(s))
	}
}

// close ends a round, unless it is empty because n is no power of two.
func (t *pat) close(far int) {
	begin, end := t.first[len(t.first)-1], int32(len(t.steps))
	if begin == end {
		return
	}
	t.far = append(t.far, int32(far))
	t.first = append(t.first, end)
	ops := 2 * (end - begin + 1)
	if end-begin == 1 {
		ops = 2 // one block needs no packing
	}
	t.ops = append(t.ops, t.ops[len(t.ops)-1]+ops)
}

func (t *pat) size(_, _ int) int { return int(t.ops[len(t.ops)-1]) }

func (t *pat) op(p, _, i int) Op {
	round, found := slices.BinarySearch(t.ops, int32(i))
	if !found {
		round--
	}
	i -= int(t.ops[round])
	list := t.steps[t.first[round]:t.first[round+1]]
	far, n := int(t.far[round]), len(list)
	to, from := int32(mod(p-far, t.n)), int32(mod(p+far, t.n))
	block := func(k, back int) int32 { return int32(mod(p+int(list[k])-back, t.n)) }
	if n == 1 {
		if i == 0 {
			b := block(0, far)
			return Op{Verb: Send, Peer: to, From: b, To: b + 1}
		}
		b := block(0, 0)
		return Op{Verb: Recv, Peer: from, From: b, To: b + 1}
	}
	come := int32(t.agg)
	switch {
	case i < n:
		b := block(i, far)
		return Op{Verb: Copy, Buf: Data, From: b, To: b + 1, Dst: Temp, At: int32(i)}
	case i == n:
		return Op{Verb: Send, Peer: to, Buf: Temp, To: int32(n)}
	case i == n+1:
		return Op{Verb: Recv, Peer: from, Buf: Temp, From: come, To: come + int32(n)}
	}
	k := int32(i - n - 2)
	return Op{Verb: Copy, Buf: Temp, From: come + k, To: come + k + 1, Dst: Data, At: block(int(k), 0)}
}
