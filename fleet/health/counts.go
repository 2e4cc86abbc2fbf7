package health

import "busbar.dev/result/pairs"

// counts are how many pairs are measured of every node, NIC and leaf.
type counts struct {
	out, in         []int
	nicOut, nicIn   []int
	leafOut, leafIn []int
	path            []int // by both leaves, the lesser first
	leaves          int
	rail            []int
	rails           int
	leafNodes       []int // nodes of a leaf
}

// mostPaths is up to how many leaves paths between two of them are looked at.
const mostPaths = 2048

func newCounts(h *History) *counts {
	n, r, l := len(h.node), len(h.rails.list), len(h.leaves.list)
	c := &counts{
		out: make([]int, n), in: make([]int, n), nicOut: make([]int, n*r), nicIn: make([]int, n*r),
		leafOut: make([]int, l), leafIn: make([]int, l), leafNodes: make([]int, l), rail: make([]int, r), rails: r, leaves: l,
	}
	if l <= mostPaths {
		c.path = make([]int, l*l)
	}
	for i := range h.node {
		if p := &h.node[i]; p.leaf >= 0 && !p.gone {
			c.leafNodes[p.leaf]++
		}
	}
	return c
}

func (c *counts) add(h *History, k pairKey) {
	c.out[k.from]++
	c.in[k.to]++
	c.rail[k.rail]++
	c.nicOut[int(k.from)*c.rails+int(k.rail)]++
	c.nicIn[int(k.to)*c.rails+int(k.rail)]++
	lf, lt := h.node[k.from].leaf, h.node[k.to].leaf
	if lf < 0 || lt < 0 || lf == lt {
		return
	}
	c.leafOut[lf]++
	c.leafIn[lt]++
	if c.path != nil {
		c.path[int(min(lf, lt))*c.leaves+int(max(lf, lt))]++
	}
}

// total is how many pairs a cause covers.
func (c *counts) total(k cause) int {
	nic := int(k.a)*c.rails + int(k.b)
	switch k.kind {
	case pairs.SlowHost:
		return c.out[k.a] + c.in[k.a]
	case pairs.SlowOut:
		return c.out[k.a]
	case pairs.SlowIn:
		return c.in[k.a]
	case SlowNIC:
		return c.nicOut[nic] + c.nicIn[nic]
	case SlowNICOut:
		return c.nicOut[nic]
	case SlowNICIn:
		return c.nicIn[nic]
	case SlowLeaf:
		return c.leafOut[k.a] + c.leafIn[k.a]
	case SlowLeafOut:
		return c.leafOut[k.a]
	case SlowLeafIn:
		return c.leafIn[k.a]
	case SlowPath:
		return c.path[int(k.a)*c.leaves+int(k.b)]
	case SlowRail:
		return c.rail[k.a]
	}
	return 0
}
