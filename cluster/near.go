package cluster

import "busbar.dev/unit"

// Near is what a GPU has for the network: the NICs at the nearest class.
type Near struct {
	GPU   int
	NICs  []int // none when no path is known
	Class Class
}

// Nearest lists the nearest NICs of every GPU, in the order of the GPUs.
func (t *NodeType) Nearest() []Near { return newNodeRoutes(t).nearestAll() }

func (n *nodeRoutes) nearestAll() []Near {
	all := make([]Near, len(n.gpus))
	for i, g := range n.gpus {
		all[i] = Near{GPU: g, NICs: n.near[g]}
		if len(all[i].NICs) > 0 {
			_, all[i].Class = n.path(g, all[i].NICs[0])
		}
	}
	return all
}

// Share is a set of GPUs and the NICs that they, and no other GPU, have nearest.
type Share struct {
	GPUs, NICs []int
	// Each is what a GPU gets when all of them send at once, one direction:
	// unknown when the rate of a NIC is.
	Each Fact[unit.Rate]
}

// Crowded reports whether there are more GPUs than NICs.
func (s Share) Crowded() bool { return len(s.GPUs) > len(s.NICs) }

// Shares groups the GPUs by the NICs they use: GPUs whose nearest NICs overlap
// are in one group. GPUs without a NIC are in none.
func (t *NodeType) Shares() []Share {
	n := newNodeRoutes(t)
	near := n.nearestAll()
	owner := make(map[int]int) // NIC → group
	var groups []Share
	for _, g := range near {
		at := -1
		for _, nic := range g.NICs {
			switch o, ok := owner[nic]; {
			case !ok:
			case at < 0:
				at = o
			case o != at: // this GPU ties two groups together
				groups[at].GPUs = append(groups[at].GPUs, groups[o].GPUs...)
				groups[at].NICs = append(groups[at].NICs, groups[o].NICs...)
				for _, moved := range groups[o].NICs {
					owner[moved] = at
				}
				groups[o] = Share{}
			}
		}
		if len(g.NICs) == 0 {
			continue
		}
		if at < 0 {
			at = len(groups)
			groups = append(groups, Share{})
		}
		groups[at].GPUs = append(groups[at].GPUs, g.GPU)
		for _, nic := range g.NICs {
			if _, ok := owner[nic]; !ok {
				owner[nic] = at
				groups[at].NICs = append(groups[at].NICs, nic)
			}
		}
	}
	var out []Share
	for _, s := range groups {
		if len(s.GPUs) > 0 {
			s.Each = n.perGPU(s)
			out = append(out, s)
		}
	}
	return out
}

// perGPU divides what the NICs carry, each no more than its PCIe link feeds.
func (n *nodeRoutes) perGPU(s Share) Fact[unit.Rate] {
	t := n.t
	var sum Fact[unit.Rate]
	for _, nic := range s.NICs {
		r := nicRate(t.Devices[nic].NIC)
		if !r.Known() {
			return Fact[unit.Rate]{}
		}
		if up := n.up[nic]; up >= 0 && t.Links[up].Rate.Known() && t.Links[up].Rate.Value < r.Value {
			r = t.Links[up].Rate
		}
		if !sum.Known() || r.Origin < sum.Origin {
			sum.Origin, sum.Source = r.Origin, r.Source
		}
		sum.Value += r.Value
	}
	sum.Value /= unit.Rate(len(s.GPUs))
	return sum
}
