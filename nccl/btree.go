package nccl

import "math/bits"

// Place is a node's place in a tree over nodes; -1 means none.
type Place struct {
	Parent int
	Child  [2]int
	// Slot says which child of its parent the node is, 0 or 1; 0 at the root.
	Slot int
}

// Btree is the place of a node in NCCL's binary tree over n nodes. The root is
// node 0 with one child; leaves are the odd nodes (facts 2.7).
func Btree(n, node int) Place {
	p := Place{Parent: -1, Child: [2]int{-1, -1}}
	if node == 0 {
		if n > 1 {
			p.Child[1] = 1 << (bits.Len(uint(n-1)) - 1)
		}
		return p
	}
	bit := node & -node
	p.Parent = (node ^ bit) | bit<<1
	if p.Parent >= n {
		p.Parent = node ^ bit
	}
	if node > p.Parent {
		p.Slot = 1
	}
	half := bit >> 1
	if half > 0 {
		p.Child[0] = node - half
	}
	for ; half > 0; half >>= 1 {
		if node+half < n {
			p.Child[1] = node + half
			break
		}
	}
	return p
}

// Dtree is the place of a node in both trees of the double binary tree: the
// second is the first mirrored for even n, and shifted by one for odd n, so that
// for even n no node passes data on in both.
func Dtree(n, node int) [2]Place {
	first := Btree(n, node)
	back := func(r int) int { return n - 1 - r }
	if n%2 == 1 {
		back = func(r int) int { return (r + 1) % n }
	}
	label := n - 1 - node
	if n%2 == 1 {
		label = (node - 1 + n) % n
	}
	second := Btree(n, label)
	for _, r := range []*int{&second.Parent, &second.Child[0], &second.Child[1]} {
		if *r >= 0 {
			*r = back(*r)
		}
	}
	return [2]Place{first, second}
}
