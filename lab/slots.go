package lab

import "cmp"

// Slot is where a rank runs: its node, and the NICs that it uses, the first of them
// where it has one connection a peer.
type Slot struct {
	Node  int
	Local int // its number on the node, which is that of its GPU
	NICs  []int
}

// Slots puts each ranks on each of the first nodes, in the order of the nodes; each 0 is
// what the plan says.
func (p *Plan) Slots(nodes, each int) []Slot {
	var slots []Slot
	for n := range min(nodes, len(p.Nodes)) {
		for i := range cmp.Or(each, p.Nodes[n].GPUs) {
			s := Slot{Node: n, Local: i}
			if near := p.Nodes[n].Near; len(near) > 0 {
				s.NICs = near[i%len(near)]
			}
			slots = append(slots, s)
		}
	}
	return slots
}
