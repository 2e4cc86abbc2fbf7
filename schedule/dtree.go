package schedule

// dtree is NCCL's double binary tree: a binary tree over the groups, built so that a second
// one, mirrored (even number) or shifted by one (odd), has its inner nodes where the first has
// leaves; inside a group a chain, whose first member has the links to the parent and the second child, and whose second
// one that to the first child, which NCCL calls balanced. (Sanders, Speck, Träff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", Parallel Computing 35, 2009; the exact construction
// is ncclGetDtree's.) The first half of the channels uses the first tree, the rest the second.
type dtree struct {
	*grouping
	channels int
	turn     bool // channel c begins every group with its member c
	rooted   bool // the first group is the root of the second tree too
}

// by is the member that a channel begins every group with.
func (d dtree) by(channel int) int {
	if d.turn {
		return channel
	}
	return 0
}

// second reports whether a channel uses the second tree.
func (d dtree) second(channel int) bool { return channel%d.channels >= (d.channels+1)/2 }

// BinaryTree is NCCL's binary tree over nodes 0 to n-1 as it stands around one of them: its
// parent and two children, -1 for none. The second tree is the complement of the first.
func BinaryTree(n, node int, second bool) (parent, child0, child1 int) {
	if !second {
		return btree(n, node)
	}
	if n%2 == 0 {
		p, a, b := btree(n, n-1-node)
		return renumber(p, a, b, func(x int) int { return n - 1 - x })
	}
	p, a, b := btree(n, mod(node-1, n))
	return renumber(p, a, b, func(x int) int { return (x + 1) % n })
}

// renumber gives a parent and two children other numbers; -1 stays.
func renumber(parent, child0, child1 int, to func(int) int) (int, int, int) {
	turn := func(x int) int {
		if x < 0 {
			return x
		}
		return to(x)
	}
	return turn(parent), turn(child0), turn(child1)
}

// around is what is around a group in a channel's tree of groups.
func (d dtree) around(group, channel int) (parent, child0, child1 int) {
	n, second := d.count, d.second(channel)
	if !d.rooted || !second {
		return BinaryTree(n, group, second)
	}
	root := 1 % n // of the second tree
	if n%2 == 0 {
		root = n - 1
	}
	p, a, b := BinaryTree(n, (group+root)%n, true)
	return renumber(p, a, b, func(x int) int { return mod(x-root, n) })
}

// btree is the first tree: leaves and inner nodes alternate, and the lowest set bit is the
// height.
func btree(n, node int) (parent, child0, child1 int) {
	if node == 0 {
		child1 = -1
		if n > 1 {
			child1 = 1
			for child1*2 < n {
				child1 *= 2
			}
		}
		return -1, -1, child1
	}
	bit := node & -node
	parent = node ^ bit | bit<<1
	if parent >= n {
		parent = node ^ bit
	}
	if bit == 1 {
		return parent, -1, -1
	}
	child1 = -1
	for half := bit / 2; half > 0; half /= 2 {
		if node+half < n {
			child1 = node + half
			break
		}
	}
	return parent, node - bit/2, child1
}

// port is the member of a group that has the link to its first or second child.
func (d dtree) port(group, channel int, secondChild bool) int {
	at := 1
	if secondChild {
		at = 0
	}
	return d.seen(group, min(at, d.sizeOf(group)-1), d.by(channel))
}

func (d dtree) parent(p, channel int) int {
	g, k := d.placed(p, d.by(channel))
	if k > 0 {
		return d.seen(g, k-1, d.by(channel))
	}
	parent, _, _ := d.around(g, channel)
	if parent < 0 {
		return -1
	}
	_, _, c1 := d.around(parent, channel)
	return d.port(parent, channel, c1 == g)
}

// childList lists the children: the next member of the chain, then those in other groups.
func (d dtree) childList(p, channel int) (list [3]int, n int) {
	g, k := d.placed(p, d.by(channel))
	if k+1 < d.sizeOf(g) {
		list[n] = d.seen(g, k+1, d.by(channel))
		n++
	}
	_, c0, c1 := d.around(g, channel)
	if c0 >= 0 && d.port(g, channel, false) == p {
		list[n] = d.seen(c0, 0, d.by(channel))
		n++
	}
	if c1 >= 0 && d.port(g, channel, true) == p {
		list[n] = d.seen(c1, 0, d.by(channel))
		n++
	}
	return list, n
}

func (d dtree) children(p, channel int) int {
	_, n := d.childList(p, channel)
	return n
}

func (d dtree) child(p, channel, k int) int {
	list, _ := d.childList(p, channel)
	return list[k]
}
