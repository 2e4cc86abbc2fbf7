package schedule

import (
	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Layout tells where chunks of Data and Out lie. The memory consists of Blocks equal blocks
// (one a rank for the blocked kinds, else one), each of which is cut into equal pieces. Chunks
// are numbered by channel first, then by block in the layout's order, then by piece, so that
// what an algorithm sends in one message is one range of chunks, whatever the numbers of its
// ranks.
type Layout struct {
	Chunks   int     // in all
	Blocks   int     // 1 or the number of ranks
	Channels int     // parts of every block
	Order    []int32 // the block at each place; nil is 0, 1, 2, …
}

// Pieces is the number of chunks of a block.
func (l Layout) Pieces() int { return l.Chunks / max(l.Blocks, 1) }

// Place is the block and the piece within it that a chunk of Data or Out is.
func (l Layout) Place(chunk int) (block, piece int) {
	channel := l.Chunks / l.Channels
	part := channel / l.Blocks
	block = chunk % channel / part
	if l.Order != nil {
		block = int(l.Order[block])
	}
	return block, chunk/channel*part + chunk%part
}

// Elements is the part [from, to) of its block's n elements that piece has of pieces. Pieces
// differ by at most one element; none is lost.
func Elements(n int64, piece, pieces int) (from, to int64) {
	p := int64(pieces)
	q, r := n/p, n%p
	cut := func(i int64) int64 { return i*q + i*r/p }
	return cut(int64(piece)), cut(int64(piece) + 1)
}

// Bytes is the size of what an op moves. A chunk of scratch counts as a whole part of a block.
func (s *Schedule) Bytes(op coll.Op, o Op) unit.Bytes {
	if op.Kind == coll.Barrier {
		return 0
	}
	elem := int64(op.Type.Size())
	if o.Class > 0 {
		pair := int(o.Class - 1)
		n := int64(op.Pair(s.Ranks, pair/s.Ranks, pair%s.Ranks)) / elem
		return unit.Bytes(s.spread(n, o) * elem)
	}
	n := int64(op.Block(s.Ranks)) / elem
	return unit.Bytes(s.spread(n, o) * elem)
}

// spread is the number of elements of a range of chunks of blocks of n elements.
func (s *Schedule) spread(n int64, o Op) int64 {
	pieces := s.Layout.Pieces()
	if n%int64(pieces) == 0 {
		return n / int64(pieces) * int64(o.To-o.From)
	}
	if o.Buf == Temp { // not known which pieces they are; they differ by one element at most
		return (n*int64(o.To-o.From) + int64(pieces) - 1) / int64(pieces)
	}
	var sum int64
	for c := o.From; c < o.To; c++ {
		_, piece := s.Layout.Place(int(c))
		from, to := Elements(n, piece, pieces)
		sum += to - from
	}
	return sum
}
