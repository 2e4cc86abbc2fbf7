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
func (f *fabric) tiers(around []around) []cluster.Tier {
	tier := make([]cluster.Tier, len(f.nodes))
	var queue []int
	for n, a := range around {
		tier[n] = cluster.TierUnknown
		if a.hosts > 0 && (!a.poor() || !f.above(n, around)) {
			tier[n] = cluster.Leaf
			queue = append(queue, n)
		}
	}
	const highest = 9
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, m := range around[n].switches {
			if tier[m] == cluster.TierUnknown {
				tier[m] = min(tier[n]+1, highest)
				queue = append(queue, m)
			}
		}
	}
	for n, a := range around {
		if tier[n] > cluster.Spine && a.trunks*8 <= f.nodes[n].ports*5 && besideLeaf(a.switches, around, tier) {
			tier[n] = cluster.Leaf
		}
	}
	return tier
}

// around is what the cables of a switch lead to: hosts, aggregation nodes and other switches, and which these are.
type around struct {
	hosts, inner, trunks int
	switches             []int
}

// poor reports a switch with few hosts.
func (a *around) poor() bool { return a.hosts*7 < a.trunks }

// neighbours are those of every node that is a switch.
func (f *fabric) neighbours() []around {
	all := make([]around, len(f.nodes))
	for _, p := range f.ports {
		if p.peer < 0 || f.nodes[p.node].kind != aSwitch {
			continue
		}
		a, far := &all[p.node], f.ports[p.peer].node
		switch {
		case f.nodes[far].host >= 0:
			a.hosts++
		case f.nodes[far].kind == aSwitch:
			a.trunks++
			a.switches = append(a.switches, far)
		case isAggregation(f.nodes[far].desc):
			a.inner++
		}
	}
	for n := range all {
		slices.Sort(all[n].switches)
		all[n].switches = slices.Compact(all[n].switches)
	}
	return all
}

// besideLeaf reports, of a switch without hosts, that it is cabled to nothing but what a leaf is cabled to. With room
// for hosts it is a leaf whose hosts are off, since a core joins the spines of several pods. The leaves of a pod are
// alike, so that a few tell.
func besideLeaf(spines []int, around []around, tier []cluster.Tier) bool {
	left := 8
	for _, leaf := range around[spines[0]].switches {
		if tier[leaf] != cluster.Leaf || left == 0 {
			continue
		}
		left--
		apart := func(m int) bool { _, found := slices.BinarySearch(around[leaf].switches, m); return !found }
		if !slices.ContainsFunc(spines, apart) {
			return true
		}
	}
	return false
}

// above reports whether a switch with few hosts is one that leaves hang on.
func (f *fabric) above(n int, around []around) bool {
	rich, ports := 0, f.nodes[n].ports
	for _, m := range around[n].switches {
		if around[m].hosts > 0 && !around[m].poor() {
			rich++
		}
	}
	return rich*4 >= len(around[n].switches) || rich == 0 && around[n].trunks*8 > ports*5 && ports > 0
}
