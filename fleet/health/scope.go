package health

import "slices"

// scope is whom a fall of whole classes is about.
type scope struct {
	id, name string
	subject  string // the subject of a sentence
	fix      string
	nodes    []string
}

// acrossID is the scope of all pairs across leaves.
const acrossID = "across-leaves"

const (
	changed = "Look for what changed on all of them at that time: driver, firmware, kernel or NCCL, MTU, congestion " +
		"control, PFC and ECN of hosts and switches, power or clock limits, another tenant or job. "
	repeat = "Then measure again while nothing else runs, with the same message size and --max-rate as before."
)

// scope finds the least that the fallen classes are: those across leaves or inside them, those of one
// type of node, or all pairs where no class is known to have stayed as it was.
func (h *History) scope(falls []fall, stayed bool, last *sweep) scope {
	down := map[int]bool{}
	fell := 0
	for _, f := range falls {
		down[f.class] = true
		fell += f.pairs
	}
	// covers tells whether what fell is most of some classes, and hardly anything else.
	covers := func(in func(class int) bool) bool {
		of, both := 0, 0
		for class, n := range last.pairs {
			if in(class) {
				of += int(n)
				if down[class] {
					both += int(n)
				}
			}
		}
		return 4*both >= 3*of && 10*both >= 9*fell
	}
	switch {
	case !stayed:
		return scope{"", "", "The fleet", changed + repeat, h.members(func(*node) bool { return true })}
	case covers(func(c int) bool { return c%sorts == acrossLeaves }):
		return scope{
			acrossID, "across leaves", "All that crosses leaves",
			"Pairs inside leaves are healthy, so look at what the others share: spine switches and their load, uplinks that " +
				"are down, ECMP or adaptive routing, settings of switches that changed at that time, another tenant's traffic. " +
				repeat,
			h.members(func(n *node) bool { return n.leaf >= 0 }),
		}
	case covers(func(c int) bool { return c%sorts == sameLeaf }):
		return scope{
			"inside-leaves", "inside leaves", "All that stays inside leaves", changed + repeat,
			h.members(func(n *node) bool { return n.leaf >= 0 }),
		}
	}
	types := len(h.types.list) + 1
	for kind, name := range h.types.list {
		if covers(func(c int) bool { return c/sorts/types == kind+1 || c/sorts%types == kind+1 }) {
			return scope{
				"type/" + name, name, "All nodes of type " + name, changed + repeat,
				h.members(func(n *node) bool { return n.kind == int32(kind) }),
			}
		}
	}
	return scope{
		"part", "part of the fleet", "A part of the fleet", changed + repeat, h.members(func(*node) bool { return true }),
	}
}

// members are the names of nodes of some sort.
func (h *History) members(in func(*node) bool) []string {
	list := []string{}
	for i := range h.node {
		if n := &h.node[i]; !n.gone && in(n) {
			list = append(list, h.nodes.list[i])
		}
	}
	slices.Sort(list)
	return list
}

// partOfWhole tells whether a fault of leaves is what all of them have.
func (h *History) partOfWhole(r *raised) bool {
	return h.whole != nil && h.whole.ID == "slow-fleet:"+acrossID && r.fig == rate && sides(r.cause.kind) == 2 &&
		r.finding.Factor > 0.8*h.whole.Factor
}

// twoLeaves tells that what crosses leaves is one path, which is found and named as such.
func (h *History) twoLeaves() bool {
	found := slices.ContainsFunc(h.sorted(), func(r *raised) bool { return r.fig == rate && r.cause.kind == SlowPath })
	leaves := map[int32]bool{}
	for i := range h.node {
		if n := &h.node[i]; !n.gone && n.leaf >= 0 {
			leaves[n.leaf] = true
		}
	}
	return found && len(leaves) < 3
}
