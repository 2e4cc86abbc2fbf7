package ibnet

import (
	"slices"

	"busbar.dev/cluster"
)

// tiers says how far each switch is from the hosts, in one breadth-first walk
// from the leaves. Switches that no leaf reaches are of no tier.
//
// A switch with hosts on it is a leaf, but for the one case that would turn a
// fabric upside down: a subnet manager, a fabric manager or a gateway on a spine.
// Such a switch is poor in hosts: fewer than one in eight of its cables lead to
// one. Being poor is not enough, since a leaf whose hosts are switched off is poor
// too. What tells them apart is where the other cables lead. A leaf's lead up, to
// switches that have no hosts or few; those of a spine lead down, and at least a
// quarter of them to switches that are rich in hosts (half do in a three-tier
// tree, all in a two-tier one). The same node on a core switch is two cables away
// from any leaf; it is told by its cables to switches taking up more than five
// eighths of its ports, since a leaf keeps half of them for hosts.
func (b *building) tiers() []cluster.Tier {
	hosts, trunks := b.degrees()
	poor := func(n int32) bool { return hosts[n]*8 < hosts[n]+trunks[n] }
	queue := make([]int32, 0, len(b.nodes))
	tier := make([]cluster.Tier, len(b.nodes))
	for n := range b.nodes {
		tier[n] = cluster.TierUnknown
		i := int32(n)
		if hosts[i] > 0 && (!poor(i) || !b.above(i, hosts, trunks, poor)) {
			tier[i] = cluster.Leaf
			queue = append(queue, i)
		}
	}
	const highest = 9
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for p := b.nodes[n].first; p >= 0; p = b.ports[p].next {
			m := b.trunk(p)
			if m >= 0 && tier[m] == cluster.TierUnknown {
				tier[m] = min(tier[n]+1, highest)
				queue = append(queue, m)
			}
		}
	}
	for n := range b.nodes {
		if i := int32(n); tier[n] > cluster.Spine && trunks[i]*8 <= int32(b.nodes[n].ports)*5 && b.besideLeaf(i, tier) {
			tier[n] = cluster.Leaf
		}
	}
	return tier
}

// neighbours are the switches that a switch is cabled to, in order.
func (b *building) neighbours(n int32) (to []int32) {
	for p := b.nodes[n].first; p >= 0; p = b.ports[p].next {
		if m := b.trunk(p); m >= 0 {
			to = append(to, m)
		}
	}
	slices.Sort(to)
	return slices.Compact(to)
}

// besideLeaf reports a switch without hosts that is cabled to nothing but what a leaf is cabled to. With room for hosts
// it is a leaf whose hosts are off, since a core joins the spines of several pods. The leaves of a pod are alike, so
// that a few tell.
func (b *building) besideLeaf(n int32, tier []cluster.Tier) bool {
	left := 8
	spines := b.neighbours(n)
	for _, leaf := range b.neighbours(spines[0]) {
		if tier[leaf] != cluster.Leaf || left == 0 {
			continue
		}
		left--
		above := b.neighbours(leaf)
		apart := func(spine int32) bool { _, found := slices.BinarySearch(above, spine); return !found }
		if !slices.ContainsFunc(spines, apart) {
			return true
		}
	}
	return false
}

// degrees counts, per switch, the cables to hosts and to other switches.
func (b *building) degrees() (hosts, trunks []int32) {
	hosts, trunks = make([]int32, len(b.nodes)), make([]int32, len(b.nodes))
	for i := range b.ports {
		p := &b.ports[i]
		if p.peer < 0 || b.nodes[p.node].kind != aSwitch {
			continue
		}
		far := b.ports[p.peer].node
		if b.hostOf[far] >= 0 {
			hosts[p.node]++
		} else if b.nodes[far].kind == aSwitch {
			trunks[p.node]++
		}
	}
	return hosts, trunks
}

// trunk is the switch at the other end of a port's cable, or -1.
func (b *building) trunk(p int32) int32 {
	q := b.ports[p].peer
	if q < 0 || b.nodes[b.ports[q].node].kind != aSwitch {
		return -1
	}
	return b.ports[q].node
}

// above reports whether a switch with few hosts is one that leaves hang on.
func (b *building) above(n int32, hosts, trunks []int32, poor func(int32) bool) bool {
	rich := int32(0)
	for p := b.nodes[n].first; p >= 0; p = b.ports[p].next {
		if m := b.trunk(p); m >= 0 && hosts[m] > 0 && !poor(m) {
			rich++
		}
	}
	if rich*4 >= trunks[n] {
		return true
	}
	return rich == 0 && trunks[n]*8 > int32(b.nodes[n].ports)*5 && b.nodes[n].ports > 0
}
