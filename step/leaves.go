package step

import (
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// leaves is which hosts share a leaf switch. It is looked at only where leaves have less upward than their
// hosts can send: elsewhere a host's own ports are what its groups share.
type leaves struct {
	oversubscribed bool
	of             []int // by host; -1 where nobody knows
}

// leavesOf looks at a cluster's network.
func leavesOf(c *cluster.Cluster) *leaves {
	l := &leaves{oversubscribed: c != nil && oversubscribed(&c.Network)}
	if !l.oversubscribed {
		return l
	}
	routes := cluster.NewRoutes(c)
	l.of = make([]int, len(c.Hosts))
	for h := range l.of {
		l.of[h] = -1
		t := c.TypeOf(h)
		if t == nil {
			continue
		}
		for _, nic := range t.Of(cluster.NIC) {
			if sw, _ := routes.Leaf(h, nic); sw >= 0 {
				l.of[h] = sw
				break
			}
		}
	}
	return l
}

// enough is the share of what hosts can send that is no oversubscription.
const enough = 0.99

// oversubscribed reports whether a leaf's uplinks carry less than its hosts' links. Two sums of each switch are kept, a
// tenth of what Network.Sides has: a million GPUs have 40,000 switches.
func oversubscribed(n *cluster.Network) bool {
	hosts, up := make([]unit.Rate, len(n.Switches)), make([]unit.Rate, len(n.Switches))
	tier := func(e cluster.End) cluster.Tier { return max(cluster.Leaf, n.Switches[e.Switch].Tier) }
	for i := range n.Links {
		l := &n.Links[i]
		if l.State == cluster.Down || max(l.A.Switch, l.B.Switch) >= len(n.Switches) {
			continue
		}
		self, far, rate := l.A, l.B, l.Rate.Value*unit.Rate(l.Cables())
		for range 2 {
			switch {
			case self.ToHosts():
			case far.ToHosts():
				for _, span := range far.Hosts {
					hosts[self.Switch] += rate * unit.Rate(span.N)
				}
			case tier(far) > tier(self):
				up[self.Switch] += rate
			}
			self, far = far, self
		}
	}
	for i, rate := range up {
		if rate > 0 && rate < enough*hosts[i] {
			return true
		}
	}
	return false
}

// differ reports whether two hosts hang on different leaves of a tight network.
func (l *leaves) differ(a, b int) bool { return l.oversubscribed && l.of[a] != l.of[b] }

// crosses reports whether ranks hang on different leaves of a tight network.
func (l *leaves) crosses(list nccl.Layout) bool {
	return slices.ContainsFunc(list, func(r nccl.Rank) bool { return l.differ(r.Host, list[0].Host) })
}

// Bounds of the groups that are priced beside another.
const (
	mostConcurrent      = 512
	mostConcurrentRanks = 1 << 13
)

// pricedGroup is the group of a kind that is priced, by its first rank, counted from the one that rank 0 begins: the
// first one, or the first that goes up from a leaf of a tight network, since others wait for it.
func (f *Fabric) pricedGroup(g Group) int {
	if !f.leaves.oversubscribed {
		return 0
	}
	at := f.pattern(g)
	for r := 0; at.from+r < len(f.layout); r++ {
		if f.begins(at, r) && f.leaves.crosses(f.ranks(g, r)) {
			return r
		}
	}
	return 0
}

// concurrent are the groups of a kind that communicate at the same time as one and share links with it: those of its
// first host and, where it goes up from a leaf of a tight network, those of all hosts of the leaf.
func (f *Fabric) concurrent(g Group, first int) []nccl.Layout {
	at := f.pattern(g)
	host := f.layout[at.from+first].Host
	var list []nccl.Layout
	if !f.leaves.oversubscribed {
		from := first
		for from > 0 && f.layout[at.from+from-1].Host == host {
			from--
		}
		for r := from; at.from+r < len(f.layout) && f.layout[at.from+r].Host == host; r++ {
			if r != first && f.begins(at, r) {
				list = append(list, f.ranks(g, r))
			}
		}
		return list
	}
	up := f.leaves.crosses(f.ranks(g, first))
	for r := 0; at.from+r < len(f.layout) && len(list) < mostConcurrent && len(list)*at.size < mostConcurrentRanks; r++ {
		h := f.layout[at.from+r].Host
		if r == first || h != host && (!up || f.leaves.differ(h, host)) || !f.begins(at, r) {
			continue
		}
		list = append(list, f.ranks(g, r))
	}
	return list
}
