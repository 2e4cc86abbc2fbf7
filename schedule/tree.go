package schedule

import "sync"

// tree is a reduction up, a broadcast down, or both, along trees, piece by piece so that the
// levels work at once. With both there are two lanes a channel, the even one for the way up and
// the odd one for the way down, as NCCL has two groups of threads: a piece comes down while the
// next goes up.
type tree struct {
	shape  shape
	n      int // positions from n on are switches
	pieces int
	way    direction
	leaves sync.Map // of a channel: its deepest leaf, which every rail asks for
}

type direction uint8

const (
	up direction = iota
	down
	upDown     // in two lanes
	upThenDown // in one lane, for a vector of one piece
)

func (t *tree) lane(lane int) (channel int, w direction) {
	if t.way == upDown {
		return lane / 2, direction(lane % 2)
	}
	return lane, t.way
}

// degree is the number of ops a piece in either direction.
func (t *tree) degree(p, channel int) int {
	d := t.shape.children(p, channel)
	if t.shape.parent(p, channel) >= 0 {
		d++
	}
	return d
}

func (t *tree) size(p, lane int) int {
	channel, w := t.lane(lane)
	n := t.pieces * t.degree(p, channel)
	if w == upThenDown {
		n *= 2
	}
	return n
}

func (t *tree) op(p, lane, i int) Op {
	channel, w := t.lane(lane)
	kids, parent := t.shape.children(p, channel), t.shape.parent(p, channel)
	d := kids
	if parent >= 0 {
		d++
	}
	if w == upThenDown {
		w = up
		if i >= t.pieces*d {
			w = down
			i -= t.pieces * d
		}
	}
	k := i % d
	piece := int32(i / d)
	o := Op{Peer: int32(parent), From: piece, To: piece + 1}
	if w == up {
		switch {
		case k == kids:
			o.Verb = Send
			return o
		case k == 0 && p >= t.n:
			o.Verb = Recv // a switch has nothing of its own to add to
		default:
			o.Verb = RecvReduce
		}
		o.Peer = int32(t.shape.child(p, channel, k))
		return o
	}
	if t.way == upDown && k == 0 {
		o.After = Wait{int32(lane - 1), (piece + 1) * int32(d)}
	}
	if parent >= 0 {
		if k == 0 {
			o.Verb = Recv
			return o
		}
		k--
	}
	// The children come in the other order: in a binomial tree the one with most below it first.
	o.Verb, o.Peer = Send, int32(t.shape.child(p, channel, kids-1-k))
	return o
}
