package traffic

import (
	"cmp"
	"slices"

	"busbar.dev/input/nccllog"
)

// channels takes rings and trees from the log.
func (b *builder) channels() {
	index := map[int]int{}
	get := func(c int) *Channel {
		at, ok := index[c]
		if !ok {
			at = len(b.Channels)
			index[c] = at
			b.Channels = append(b.Channels, Channel{Index: c, RingLike: c, TreeLike: c})
		}
		return &b.Channels[at]
	}
	firsts := b.firsts()
	for _, g := range b.comm.Rings {
		c := get(g.Channel)
		c.Ring, c.Cut = g.Ranks, g.Cut
		if c.Cut {
			if whole := follow(firsts[g.Channel], g.Ranks, b.NRanks); whole != nil {
				c.Ring, c.Cut = whole, false
			}
		}
	}
	b.up = map[edge]bool{}
	for _, t := range b.comm.Trees {
		c := get(t.Channel)
		c.Parent = make([]int, b.NRanks)
		for i := range c.Parent {
			c.Parent[i] = -2
		}
		for _, k := range t.Nodes {
			b.hang(c, k)
		}
	}
	slices.SortFunc(b.Channels, func(x, y Channel) int { return cmp.Compare(x.Index, y.Index) })
}

// hang puts a rank's line about its place into the tree.
func (b *builder) hang(c *Channel, k nccllog.TreeNode) {
	if k.Rank < 0 || k.Rank >= b.NRanks || k.Parent >= b.NRanks {
		return
	}
	c.Parent[k.Rank] = max(k.Parent, -1)
	if k.Parent >= 0 {
		b.up[edge{c.Index, k.Rank, k.Parent}] = true
	}
	for _, child := range k.Children {
		if child >= 0 && child < b.NRanks {
			b.up[edge{c.Index, child, k.Rank}] = true
			if c.Parent[child] == -2 {
				c.Parent[child] = k.Rank
			}
		}
	}
}

// firsts are the ranks that each rank connected to first in a channel: NCCL
// connects the ring before the trees.
func (b *builder) firsts() map[int]map[int]int {
	next, line := map[int]map[int]int{}, map[edge]nccllog.Pos{}
	for e, n := range b.send {
		if next[e.channel] == nil {
			next[e.channel] = map[int]int{}
		}
		key := edge{e.channel, e.from, 0}
		old, ok := line[key]
		if ok && (old.Source != n.First.Source || old.Line <= n.First.Line) {
			continue
		}
		line[key] = n.First
		next[e.channel][e.from] = e.to
	}
	return next
}

// follow completes a ring of which NCCL printed the first ranks. It is nil unless
// the links lead through every rank once and agree with what was printed.
func follow(next map[int]int, printed []int, n int) []int {
	if len(printed) == 0 || len(next) == 0 {
		return nil
	}
	ring := slices.Clone(printed)
	seen := make(map[int]bool, n)
	for _, k := range ring {
		if seen[k] {
			return nil
		}
		seen[k] = true
	}
	for len(ring) < n {
		k, ok := next[ring[len(ring)-1]]
		if !ok || seen[k] {
			return nil
		}
		seen[k] = true
		ring = append(ring, k)
	}
	if k, ok := next[ring[n-1]]; ok && k != ring[0] {
		return nil
	}
	return ring
}

// alike finds channels with the same ring through the same NICs, and with the
// same tree.
func (b *builder) alike() {
	way := map[edge][2]int{}
	for i := range b.Hops {
		if h := &b.Hops[i]; h.Ring {
			way[edge{h.Channel, h.From, h.To}] = [2]int{h.Out, h.In}
		}
	}
	same := func(x, y *Channel) bool {
		if len(x.Ring) == 0 || x.Cut != y.Cut || !slices.Equal(x.Ring, y.Ring) {
			return false
		}
		for k, from := range x.Ring {
			to := x.Ring[(k+1)%len(x.Ring)]
			if way[edge{x.Index, from, to}] != way[edge{y.Index, from, to}] {
				return false
			}
		}
		return true
	}
	for i := range b.Channels {
		x := &b.Channels[i]
		for j := range i {
			y := &b.Channels[j]
			if x.RingLike == x.Index && y.RingLike == y.Index && same(x, y) {
				x.RingLike = y.Index
			}
			if x.TreeLike == x.Index && y.TreeLike == y.Index && x.Parent != nil && slices.Equal(x.Parent, y.Parent) {
				x.TreeLike = y.Index
			}
		}
	}
}

// turn begins every ring where it enters a host, so that the ranks of a host
// stand together.
func (b *builder) turn() {
	for i := range b.Channels {
		c := &b.Channels[i]
		if c.Cut {
			continue
		}
		for k := range c.Ring {
			before := c.Ring[(k+len(c.Ring)-1)%len(c.Ring)]
			if b.Ranks[before].Host != b.Ranks[c.Ring[k]].Host {
				if b.Ranks[c.Ring[k]].Host == b.Ranks[c.Ring[0]].Host {
					c.Ring = slices.Concat(c.Ring[k:], c.Ring[:k])
					break
				}
			}
		}
	}
}
