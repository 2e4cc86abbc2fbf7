package nccl

import "busbar.dev/schedule"

// Place is a node's place in a tree over nodes; -1 means none.
type Place struct {
	Parent int
	Child  [2]int
	// Slot says which child of its parent the node is, 0 or 1; 0 at the root.
	Slot int
}

// Dtree is the place of a node in both trees of the double binary tree over n nodes:
// the second is the first mirrored for even n, and shifted by one for odd n, so that
// for even n no node passes data on in both (NCCL 2.28 src/graph/trees.cc,
// ncclGetDtree).
func Dtree(n, node int) [2]Place {
	var both [2]Place
	for i := range both {
		p := &both[i]
		p.Parent, p.Child[0], p.Child[1] = schedule.BinaryTree(n, node, i == 1)
		if p.Parent >= 0 {
			if _, _, second := schedule.BinaryTree(n, p.Parent, i == 1); second == node {
				p.Slot = 1
			}
		}
	}
	return both
}
