package schedule

import (
	"math/bits"

	"busbar.dev/coll"
)

// halving is recursive halving (a reduce-scatter with the far partner first, half of the rest
// in each step) and recursive doubling (an all-gather with the near partner first):
// Rabenseifner's all-reduce (ICCS 2004). Where n is no power of two, the first 2·(n-2^k)
// positions fold in pairs first and unfold at the end, as in Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19, 2005. The vector
// has 2^k blocks.
//
// When whole, every step exchanges the whole vector: recursive doubling of an all-reduce, for
// small vectors.
type halving struct {
	n     int
	kind  coll.Kind // AllReduce, ReduceScatter, AllGather; the latter two for powers of two only
	whole bool
}

// pow2 is the greatest power of two that is not above n.
func pow2(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// virtual is a position's place among the 2^k that work, -1 for one that has folded, and
// whether it has a fold to care for.
func (h halving) virtual(p int) (v int, fold bool) {
	rest := h.n - pow2(h.n)
	switch {
	case p >= 2*rest:
		return p - rest, false
	case p%2 == 0:
		return -1, true
	}
	return p / 2, true
}

func (h halving) real(v int) int32 {
	rest := h.n - pow2(h.n)
	if v < rest {
		return int32(2*v + 1)
	}
	return int32(v + rest)
}

// all is the number of blocks.
func (h halving) all() int32 {
	if h.whole {
		return 1
	}
	return int32(pow2(h.n))
}

func (h halving) steps() int {
	k := bits.Len(uint(pow2(h.n))) - 1
	if h.kind == coll.AllReduce && !h.whole {
		return 2 * k
	}
	return k
}

func (h halving) size(p, _ int) int {
	v, fold := h.virtual(p)
	n := 2 * h.steps()
	if v < 0 {
		n = 0
	}
	if fold {
		n += 2
	}
	return n
}

func (h halving) op(p, _, i int) Op {
	v, fold := h.virtual(p)
	if v < 0 {
		verb := Send
		if i == 1 {
			verb = Recv
		}
		return Op{Verb: verb, Peer: int32(p + 1), To: h.all()}
	}
	if fold {
		if i == 0 {
			return Op{Verb: RecvReduce, Peer: int32(p - 1), To: h.all()}
		}
		if i--; i == 2*h.steps() {
			return Op{Verb: Send, Peer: int32(p - 1), To: h.all()}
		}
	}
	return h.exchange(v, i/2, i%2 == 1)
}

// exchange is one half of a step.
func (h halving) exchange(v, step int, receive bool) Op {
	count := pow2(h.n)
	k := bits.Len(uint(count)) - 1
	if h.whole {
		o := Op{Verb: Send, Peer: h.real(v ^ 1<<step), To: 1}
		if receive {
			o.Verb = RecvReduce
		}
		return o
	}
	spread := h.kind == coll.AllGather || step >= k
	far := count >> (step + 1)
	if spread {
		far = 1 << (step % k)
	}
	mine, theirs := int32(v&^(far-1)), int32((v^far)&^(far-1))
	o := Op{Peer: h.real(v ^ far)}
	switch {
	case spread && receive: // what the partner has gathered
		o.Verb, o.From = Recv, theirs
	case spread:
		o.Verb, o.From = Send, mine
	case receive: // my half of what is left
		o.Verb, o.From = RecvReduce, mine
	default:
		o.Verb, o.From = Send, theirs
	}
	o.To = o.From + int32(far)
	return o
}

// dissemination is the barrier in which step k hears from 2^k places back (Hensgen, Finkel,
// Manber, IJPP 17, 1988).
type dissemination struct{ n int }

func (d dissemination) size(_, _ int) int { return 2 * bits.Len(uint(d.n-1)) }

func (d dissemination) op(p, _, i int) Op {
	far := 1 << (i / 2)
	if i%2 == 0 {
		return Op{Verb: Send, Peer: int32(mod(p+far, d.n)), To: 1}
	}
	return Op{Verb: RecvReduce, Peer: int32(mod(p-far, d.n)), To: 1}
}
