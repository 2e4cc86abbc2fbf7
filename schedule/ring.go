package schedule

import "busbar.dev/coll"

// ring is the bandwidth-optimal ring: in n-1 steps every block travels once around, summed or
// copied at each stop (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", JPDC 69, 2009). An all-reduce is a reduce-scatter and an
// all-gather in the same direction, as in NCCL. When both, odd lanes run the other way round.
type ring struct {
	n    int
	kind coll.Kind // AllReduce, ReduceScatter, AllGather
	both bool
}

func (r ring) size(p, lane int) int {
	if r.kind == coll.AllReduce {
		return 4 * (r.n - 1)
	}
	return 2 * (r.n - 1)
}

func (r ring) op(p, lane, i int) Op {
	d := 1
	if r.both && lane%2 == 1 {
		d = -1
	}
	gather := r.kind == coll.AllGather
	if r.kind == coll.AllReduce && i >= 2*(r.n-1) {
		gather = true
		i -= 2 * (r.n - 1)
	}
	block := p - d*(i/2+i%2) // a receive takes the block that is sent on in the next step
	verb := Recv
	if !gather {
		block -= d
		verb = RecvReduce
	}
	from := int32(wrap(block, r.n))
	if i%2 == 0 {
		return Op{Verb: Send, Peer: int32(wrap(p+d, r.n)), From: from, To: from + 1}
	}
	return Op{Verb: verb, Peer: int32(wrap(p-d, r.n)), From: from, To: from + 1}
}

// rings is the ring with an order of its own for every channel.
type rings struct {
	ring
	seating
	blocks bool // blocks belong to ranks: not those of an all-reduce
}

// seating tells who is where on the ring of a channel.
type seating interface {
	at(pos, channel int) int
	where(rank, channel int) int
	repeating
}

func (r *rings) op(p, lane, i int) Op {
	o := r.ring.op(r.where(p, lane), lane, i)
	o.Peer = int32(r.at(int(o.Peer), lane))
	if r.blocks {
		o.From = int32(r.at(int(o.From), lane))
		o.To = o.From + 1
	}
	return o
}

// sum is the plain ring's, which is over positions; the seat's are ranks.
func (r *rings) sum(dst []Flow, first int, s *seat, p, lane int) []Flow {
	at := len(dst)
	dst = r.ring.sum(dst, at, s, r.where(p, lane), lane)
	if len(dst) > at {
		f := dst[at]
		f.Peer = r.at(f.Peer, lane)
		dst = addFlow(dst[:at], first, f)
	}
	return dst
}

// kept are orders as NCCL's search gives them, taken by the channels in turn.
type kept []*Order

func (k kept) at(pos, channel int) int { return int(k[channel%len(k)].ranks[pos]) }

func (k kept) where(rank, channel int) int { return int(k[channel%len(k)].pos[rank]) }

// Order is an order of ranks on a ring.
type Order struct {
	ranks []int32 // the rank at each position
	pos   []int32 // and back
}

// NewOrder is an order in which every rank from 0 on is there once.
func NewOrder(ranks []int) (*Order, error) {
	n := len(ranks)
	if err := permutation(ranks, n); err != nil {
		return nil, err
	}
	both := make([]int32, 2*n)
	o := &Order{both[:n], both[n:]}
	for k, rank := range ranks {
		o.ranks[k], o.pos[rank] = int32(rank), int32(k)
	}
	return o, nil
}

// turned goes through the groups one after the other, and channel c begins every group with its member c. Nothing is
// stored by channel.
type turned struct {
	*grouping
	start []int32 // the position at which each group begins
}

func newTurned(g *grouping) *turned {
	t := &turned{g, make([]int32, g.count+1)}
	for k := range g.count {
		t.start[k+1] = t.start[k] + int32(g.sizeOf(k))
	}
	return t
}

// at is the rank at a position of a channel.
func (t *turned) at(pos, channel int) int {
	k := pos / t.rails // right where all groups are as large as the greatest
	if !t.equal {
		k = 0
		for hi := t.count; k+1 < hi; {
			if mid := (k + hi) / 2; int(t.start[mid]) <= pos {
				k = mid
			} else {
				hi = mid
			}
		}
	}
	return t.seen(k, pos-int(t.start[k]), channel)
}

// where is the position of a rank in a channel.
func (t *turned) where(rank, channel int) int {
	group, k := t.placed(rank, channel)
	return int(t.start[group]) + k
}
