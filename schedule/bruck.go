package schedule

import "math/bits"

// Bruck et al., "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE TPDS 8, 1997: the fewest rounds for any number of ranks, at
// the price of local copies.

// bruckGather is the all-gather: scratch place j is the block of the rank j further on; each
// round doubles what is there. In the end the blocks are turned into their places.
type bruckGather struct{ n int }

func (b bruckGather) rounds() int { return bits.Len(uint(b.n - 1)) }

func (b bruckGather) size(p, _ int) int {
	if b.n == 1 {
		return 0
	}
	n := 1 + 2*b.rounds() + 2
	if p == 0 || p == b.n-1 {
		n--
	}
	return n
}

func (b bruckGather) op(p, _, i int) Op {
	if i == 0 {
		return Op{Verb: Copy, Buf: Data, From: int32(p), To: int32(p + 1), Dst: Temp}
	}
	i--
	if i < 2*b.rounds() {
		far := 1 << (i / 2)
		count := min(far, b.n-far)
		if i%2 == 0 {
			return Op{Verb: Send, Peer: int32(mod(p-far, b.n)), Buf: Temp, To: int32(count)}
		}
		return Op{Verb: Recv, Peer: int32(mod(p+far, b.n)), Buf: Temp, From: int32(far), To: int32(far + count)}
	}
	wrap := int32(b.n - p) // the scratch place of block 0
	if i == 2*b.rounds() && p < b.n-1 {
		return Op{Verb: Copy, Buf: Temp, From: 1, To: wrap, Dst: Data, At: int32(p + 1)}
	}
	return Op{Verb: Copy, Buf: Temp, From: wrap, To: int32(b.n), Dst: Data, At: 0}
}

// bruckExchange is the all-to-all: scratch place j is the block for the rank j further on;
// round k passes on every block whose j has bit k, so that it arrives after as many hops as j
// has bits. Blocks of a round are packed into one message. Scratch is n places, then a half for
// packing, then a half for what comes.
type bruckExchange struct{ n int }

func (b bruckExchange) half() int { return (b.n + 1) / 2 }

// runs is the number of runs of places with bit k, and count that of the places.
func (b bruckExchange) runs(k int) int { return ((b.n-1)>>k + 1) / 2 }

func (b bruckExchange) count(k int) int {
	return b.n>>(k+1)<<k + max(0, b.n&(2<<k-1)-1<<k)
}

// turn is the number of copies that turn the blocks at first.
func (b bruckExchange) turn(p int) int {
	if p == 0 {
		return 1
	}
	return 2
}

func (b bruckExchange) size(p, _ int) int {
	n := b.turn(p) + b.n
	for k := 0; 1<<k < b.n; k++ {
		n += 2*b.runs(k) + 2
	}
	return n
}

func (b bruckExchange) op(p, _, i int) Op {
	if i < b.turn(p) {
		if i == 0 {
			return Op{Verb: Copy, Buf: Data, From: int32(p), To: int32(b.n), Dst: Temp}
		}
		return Op{Verb: Copy, Buf: Data, From: 0, To: int32(p), Dst: Temp, At: int32(b.n - p)}
	}
	i -= b.turn(p)
	for k := 0; 1<<k < b.n; k++ {
		runs := b.runs(k)
		if i < 2*runs+2 {
			return b.round(p, k, runs, i)
		}
		i -= 2*runs + 2
	}
	return Op{Verb: Copy, Buf: Temp, From: int32(i), To: int32(i + 1), Dst: Out, At: int32(mod(p-i, b.n))}
}

func (b bruckExchange) round(p, k, runs, i int) Op {
	far := 1 << k
	pack, come := b.n, b.n+b.half()
	switch {
	case i == runs:
		return Op{Verb: Send, Peer: int32(mod(p+far, b.n)), Buf: Temp, From: int32(pack), To: int32(pack + b.count(k))}
	case i == runs+1:
		return Op{Verb: Recv, Peer: int32(mod(p-far, b.n)), Buf: Temp, From: int32(come), To: int32(come + b.count(k))}
	}
	m := i
	if i > runs {
		m = i - runs - 2
	}
	first := (2*m + 1) * far
	n := min(far, b.n-first)
	if i < runs {
		return Op{Verb: Copy, Buf: Temp, From: int32(first), To: int32(first + n), Dst: Temp, At: int32(pack + m*far)}
	}
	return Op{Verb: Copy, Buf: Temp, From: int32(come + m*far), To: int32(come + m*far + n), Dst: Temp, At: int32(first)}
}
