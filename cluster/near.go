package cluster

import (
	"slices"

	"busbar.dev/unit"
)

// Near is what a GPU has for the network: the NICs at the nearest class.
type Near struct {
	GPU   int
	NICs  []int // none when no path is known
	Class Class
}

// Nearest lists the nearest NICs of every GPU, in the order of the GPUs.
func (t *NodeType) Nearest() []Near {
	n := newNodeRoutes(t)
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
	sets := NewPartition(len(t.Devices))
	for _, g := range n.gpus {
		for _, nic := range n.near[g] {
			sets.Unite(g, nic)
		}
	}
	at := make(map[int]int) // by set
	var out []Share
	for _, g := range n.gpus {
		if len(n.near[g]) == 0 {
			continue
		}
		k, ok := at[sets.Find(g)]
		if !ok {
			k = len(out)
			at[sets.Find(g)] = k
			out = append(out, Share{})
		}
		s := &out[k]
		s.GPUs = append(s.GPUs, g)
		for _, nic := range n.near[g] {
			if !slices.Contains(s.NICs, nic) {
				s.NICs = append(s.NICs, nic)
			}
		}
	}
	for i := range out {
		out[i].Each = n.perGPU(out[i])
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

// nearest lists the NICs at the nearest class from a GPU, leaving out those
// whose every port is down. A NIC of another tray can be reached over NVLink
// (PXN), but is near only to a GPU whose own tray has none.
func (n *nodeRoutes) nearest(g int) []int {
	own, other := n.nics, []int(nil)
	if n.t.Trays > 1 {
		own = nil
		for _, k := range n.nics {
			if n.t.Devices[k].Tray == n.t.Devices[g].Tray {
				own = append(own, k)
			} else {
				other = append(other, k)
			}
		}
	}
	if list := n.nearestOf(g, own); len(list) > 0 {
		return list
	}
	return n.nearestOf(g, other)
}

func (n *nodeRoutes) nearestOf(g int, nics []int) []int {
	var best Class
	var list []int
	for _, k := range nics {
		if n.t.Devices[k].NIC.Down() {
			continue
		}
		_, c := n.path(g, k)
		switch {
		case c.Type == Apart:
		case list == nil || c.Nearer(best):
			best, list = c, []int{k}
		case c == best:
			list = append(list, k)
		}
	}
	return n.worthwhile(list)
}

// worthwhile drops the slow ports among equally near NICs: an on-board management
// port beside a fabric adapter is no choice. Slow means less than a quarter of
// the fastest; of NICs without a rate, Ethernet gives way to other fabrics.
func (n *nodeRoutes) worthwhile(list []int) []int {
	var fastest unit.Rate
	fabric := false
	for _, k := range list {
		nic := n.t.Devices[k].NIC
		fastest = max(fastest, nicRate(nic).Value)
		fabric = fabric || nic != nil && nic.Kind != Ethernet && nic.Kind != ""
	}
	var keep []int
	for _, k := range list {
		nic := n.t.Devices[k].NIC
		r := nicRate(nic)
		if r.Known() && r.Value < fastest/4 || !r.Known() && fabric && nic != nil && nic.Kind == Ethernet {
			continue
		}
		keep = append(keep, k)
	}
	return keep
}

// Down reports whether every port of a NIC is down; of no NIC and of ports that nobody read it is false.
func (n *NICInfo) Down() bool {
	return n != nil && len(n.Ports) > 0 && !slices.ContainsFunc(n.Ports, func(p Port) bool { return p.State != Down })
}

// Matrix is the table of path classes between the node's GPUs and NICs, in
// nvidia-smi's words.
func (t *NodeType) Matrix() Matrix {
	n := newNodeRoutes(t)
	return t.matrixOf(slices.Concat(n.gpus, n.nics), func(a, b int) Class {
		_, c := n.path(a, b)
		return c
	})
}

// matrixOf is a table of some devices.
func (t *NodeType) matrixOf(ids []int, class func(a, b int) Class) Matrix {
	m := Matrix{Names: make([]string, len(ids)), Class: make([][]string, len(ids))}
	for i, a := range ids {
		m.Names[i] = t.Devices[a].Name
		m.Class[i] = make([]string, len(ids))
		for j, b := range ids {
			m.Class[i][j] = class(a, b).String()
		}
	}
	return m
}

// Rails lists the NICs that at least one GPU reaches without leaving its PCIe
// switches (PIX or PXB): the ones meant for GPU traffic. Where no NIC is that
// near, every NIC that is nearest to some GPU counts.
func (t *NodeType) Rails() []int {
	n := newNodeRoutes(t)
	near, far := map[int]bool{}, map[int]bool{}
	for _, g := range n.gpus {
		for _, k := range n.near[g] {
			far[k] = true
			if _, c := n.path(g, k); c.Type <= PXB {
				near[k] = true
			}
		}
	}
	if len(near) == 0 {
		near = far
	}
	var rails []int
	for _, k := range n.nics {
		if near[k] {
			rails = append(rails, k)
		}
	}
	return rails
}
