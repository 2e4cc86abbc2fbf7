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
// share a message. With full aggregation the rounds are logarithmic; with less, the first
// log2(agg) rounds are, and the rest grow linearly.
//
// What all positions do alike is stored, a number a block; the ops are computed.
type pat struct {
	n, agg int
	far    []int32 // by round: the distance of the partner
	first  []int32 // by round: where its list begins in steps, and the end
	ops    []int32 // by round: the ops before it, and the sum
	steps  []int32 // the distance s of every block that arrives
}

// newPAT aggregates agg blocks a message at most, rounded down to a power of two; 0 is as many
// as there are.
func newPAT(n, agg int) *pat {
	t := &pat{n: n, agg: 1, first: []int32{0}, ops: []int32{0}}
	if n == 1 {
		return t
	}
	delta := 1 << bits.Len(uint(n-1))
	for t.agg < n/2 && (agg <= 0 || 2*t.agg <= agg) {
		t.agg *= 2
		delta /= 2
	}
	for scale := t.agg / 2; scale > 0; scale /= 2 {
		for a := range t.agg / (2 * scale) {
			t.addStep((2*a + 1) * scale * delta)
		}
		t.close(scale * delta)
	}
	for _, as := range patOrder(delta) {
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

// patOrder is the order in which NCCL walks the trees below the aggregated levels: steps 1 to
// delta-1, none before the one it continues, so that few blocks wait to be passed on at a time.
func patOrder(delta int) []int {
	dim := bits.Len(uint(delta - 1))
	count, zeros := make([]int, dim), make([]int, dim)
	for d := range dim {
		count[d], zeros[d] = dim-d, 1
	}
	v := 0
	next := func() int {
		for d := range dim {
			bit := 1 << d
			if count[d]--; count[d] > 0 {
				continue
			}
			v ^= bit
			count[d] = bit
			if v&bit != 0 {
				continue
			}
			count[d] += bits.TrailingZeros(uint(zeros[d])) - 1
			if count[d] == 0 {
				v ^= bit
				count[d] = bit
			}
			zeros[d]++
		}
		return v
	}
	order := make([]int, 0, delta-1)
	for len(order) < delta-1 {
		order = append(order, next())
	}
	return order
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
