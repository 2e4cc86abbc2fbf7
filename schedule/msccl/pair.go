package msccl

import (
	"cmp"
	"slices"

	"busbar.dev/schedule"
)

// block is a thread block in the making.
type block struct {
	lane       int
	send, recv int // peers, or -1
	steps      []Step
	known      []int // by block: steps that it has waited for
}

func (x *rank) add(lane, send, recv int) int {
	x.blocks = append(x.blocks, &block{lane: lane, send: send, recv: recv})
	return len(x.blocks) - 1
}

// couple is a receiving and a sending connection of a lane, and how often a receive from the one
// goes straight on to the other.
type couple struct{ lane, from, to, times int }

// sharing says which connections of a rank share a block.
type sharing uint8

const (
	// chains: a receive and the send that passes its chunks on, in one instruction.
	chains sharing = iota
	// apart: none, so that a send that waits for room keeps no receive from being done.
	apart
	// partners: both directions of an exchange, which then need no waits between them.
	partners
)

// pair gives every connection of a rank a block, shared where that is asked for, or where there
// would be too many.
func (x *rank) pair(how sharing) {
	switch how {
	case chains:
		x.chain()
	case partners:
		x.partner()
	}
	x.rest()
	for i := range x.ops {
		if j := x.follower(i); j >= 0 && x.recv[x.ops[i].far()] == x.send[x.ops[j].far()] {
			x.ops[i].next, x.ops[j].taken = j, true
		}
	}
}

// far is the connection of an op.
func (o *op) far() peer { return peer{o.lane, int(o.Peer)} }

// chain lets two connections that pass chunks on share a block, those that do it most often first.
func (x *rank) chain() {
	count := map[couple]int{}
	for i := range x.ops {
		if j := x.follower(i); j >= 0 {
			count[couple{lane: x.ops[i].lane, from: int(x.ops[i].Peer), to: int(x.ops[j].Peer)}]++
		}
	}
	var list []couple
	for c, n := range count {
		c.times = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b couple) int {
		return cmp.Or(a.lane-b.lane, b.times-a.times, a.from-b.from, a.to-b.to)
	})
	for _, c := range list {
		in, out := peer{c.lane, c.from}, peer{c.lane, c.to}
		_, a := x.recv[in]
		if _, b := x.send[out]; a || b {
			continue
		}
		x.recv[in] = x.add(c.lane, c.to, c.from)
		x.send[out] = x.recv[in]
	}
}

// partner lets the two directions to a peer share a block.
func (x *rank) partner() {
	sends := map[peer]bool{}
	for i := range x.ops {
		if x.ops[i].Verb == schedule.Send {
			sends[x.ops[i].far()] = true
		}
	}
	for i := range x.ops {
		p := x.ops[i].far()
		if _, ok := x.recv[p]; ok || !x.ops[i].Verb.Receives() || !sends[p] {
			continue
		}
		x.recv[p] = x.add(p.lane, p.rank, p.rank)
		x.send[p] = x.recv[p]
	}
}

// follower is the send that passes on what a receive took, or -1.
func (x *rank) follower(i int) int {
	if i+1 >= len(x.ops) {
		return -1
	}
	a, b := &x.ops[i], &x.ops[i+1]
	if a.Verb.Receives() && b.Verb == schedule.Send && b.After.Count == 0 && a.lane == b.lane && a.Buf == b.Buf && a.From == b.From && a.To == b.To {
		return i + 1
	}
	return -1
}

// rest gives blocks to the connections that have none.
func (x *rank) rest() {
	var in, out []peer
	for i := range x.ops {
		o := &x.ops[i]
		p := peer{o.lane, int(o.Peer)}
		if o.Verb == schedule.Send {
			if _, ok := x.send[p]; !ok && !slices.Contains(out, p) {
				out = append(out, p)
			}
		} else if o.Verb.Receives() {
			if _, ok := x.recv[p]; !ok && !slices.Contains(in, p) {
				in = append(in, p)
			}
		}
	}
	crowded := len(x.blocks)+len(in)+len(out) >= maxBlocks // one is left for local ops
	for _, p := range in {
		x.recv[p] = x.add(p.lane, -1, p.rank)
	}
	for _, p := range out { // the same peer in both directions
		if b, ok := x.recv[p]; ok && crowded && x.blocks[b].send < 0 {
			x.blocks[b].send, x.send[p] = p.rank, b
		}
	}
	for _, p := range out {
		if _, ok := x.send[p]; ok {
			continue
		}
		free := -1
		if crowded {
			free = slices.IndexFunc(x.blocks, func(b *block) bool { return b.lane == p.lane && b.send < 0 })
		}
		if free < 0 {
			free = x.add(p.lane, -1, -1)
		}
		x.blocks[free].send, x.send[p] = p.rank, free
	}
}
