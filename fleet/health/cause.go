package health

import (
	"math"

	"busbar.dev/finding"
	"busbar.dev/result/pairs"
)

// cause is one fault that may be: what it covers is all pairs of its sort.
type cause struct {
	kind finding.Kind
	a, b int32 // nodes, or leaves, or a node and a rail; -1 where there is none
	c    int32 // the rail of a direction of a pair
}

// covers tells whether a pair suffers under a cause.
func (h *History) covers(c cause, k pairKey) bool {
	lf, lt := h.node[k.from].leaf, h.node[k.to].leaf
	across := lf >= 0 && lt >= 0 && lf != lt
	switch c.kind {
	case pairs.SlowHost:
		return k.from == c.a || k.to == c.a
	case pairs.SlowOut:
		return k.from == c.a
	case pairs.SlowIn:
		return k.to == c.a
	case SlowNIC:
		return (k.from == c.a || k.to == c.a) && k.rail == c.b
	case SlowNICOut:
		return k.from == c.a && k.rail == c.b
	case SlowNICIn:
		return k.to == c.a && k.rail == c.b
	case SlowLeaf:
		return across && (lf == c.a || lt == c.a)
	case SlowLeafOut:
		return across && lf == c.a
	case SlowLeafIn:
		return across && lt == c.a
	case SlowPath:
		return across && (lf == c.a && lt == c.b || lf == c.b && lt == c.a)
	case SlowRail:
		return k.rail == c.a
	case pairs.SlowPair:
		return k.from == c.a && k.to == c.b || k.from == c.b && k.to == c.a
	case pairs.OneWay:
		return k.from == c.a && k.to == c.b
	}
	return false
}

// wide are the causes that a pair's slowness can have beside its own.
func (h *History) wide(k pairKey, leafNodes []int, leaves int, put func(cause)) {
	put(cause{kind: pairs.SlowHost, a: k.from, b: -1})
	put(cause{kind: pairs.SlowHost, a: k.to, b: -1})
	put(cause{kind: pairs.SlowOut, a: k.from, b: -1})
	put(cause{kind: pairs.SlowIn, a: k.to, b: -1})
	if len(h.rails.list) > 1 {
		put(cause{kind: SlowNIC, a: k.from, b: k.rail})
		put(cause{kind: SlowNIC, a: k.to, b: k.rail})
		put(cause{kind: SlowNICOut, a: k.from, b: k.rail})
		put(cause{kind: SlowNICIn, a: k.to, b: k.rail})
		put(cause{kind: SlowRail, a: k.rail, b: -1})
	}
	lf, lt := h.node[k.from].leaf, h.node[k.to].leaf
	if lf < 0 || lt < 0 || lf == lt {
		return
	}
	if len(leafNodes) <= mostPaths {
		put(cause{kind: SlowPath, a: min(lf, lt), b: max(lf, lt)})
	}
	if leaves < 3 {
		return // of two leaves nobody can say which: the path between them
	}
	// A leaf of one node is that node.
	if leafNodes[lf] > 1 {
		put(cause{kind: SlowLeaf, a: lf, b: -1})
		put(cause{kind: SlowLeafOut, a: lf, b: -1})
	}
	if leafNodes[lt] > 1 {
		put(cause{kind: SlowLeaf, a: lt, b: -1})
		put(cause{kind: SlowLeafIn, a: lt, b: -1})
	}
}

// suspects is how many causes of its kind there are: what a penalty and a threshold grow with.
func (s *state) suspects(k finding.Kind) float64 {
	n, l, r := float64(len(s.h.node)), float64(len(s.h.leaves.list)), float64(len(s.h.rails.list))
	switch k {
	case pairs.SlowHost, pairs.SlowOut, pairs.SlowIn:
		return 3 * n
	case SlowNIC, SlowNICOut, SlowNICIn:
		return 3 * n * r
	case SlowLeaf, SlowLeafOut, SlowLeafIn:
		return 3 * l
	case SlowPath:
		return l * l
	case SlowRail:
		return r
	}
	return n * n * r
}

// penalty is what an explanation costs: the logarithm of how many such there are, and of
// how much rarer than a bad host or pair they are.
func (s *state) penalty(k finding.Kind) float64 {
	p := 3 + math.Log(s.suspects(k))
	switch k {
	case SlowLeaf, SlowLeafOut, SlowLeafIn, SlowPath, SlowRail:
		p += 2
	}
	return p
}
