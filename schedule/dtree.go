package schedule

// Pattern says at which members of a group the links to other groups are, in NCCL's words.
type Pattern uint8

// Patterns. The link to the parent is always at the first member.
const (
	Balanced   Pattern = iota // the first child's link at the second member, the second child's at the first
	SplitTree                 // both children's at the second member
	SingleTree                // both children's at the first member
)

// dtree is NCCL's double binary tree: a binary tree over the groups, built so that a second
// one, mirrored (even number) or shifted by one (odd), has its inner nodes where the first has
// leaves; inside a group a chain. (Sanders, Speck, Träff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", Parallel Computing 35, 2009; the exact construction
// is ncclGetDtree's.) The first half of the channels uses the first tree, the rest the second.
type dtree struct {
	*grouping
	channels int
	pattern  Pattern
	turn     bool // channel c begins every group with its member c
}

// seen is member k of a group as a channel sees it.
func (d dtree) seen(group, k, channel int) int32 {
	if d.turn {
		k = (k + channel) % d.sizeOf(group)
	}
	return d.member(group, k)
}

// place is where a rank is in its group as a channel sees it.
func (d dtree) place(p, channel int) (group, k int) {
	group, k = d.group(p), d.pos(p)
	if d.turn {
		k = mod(k-channel, d.sizeOf(group))
	}
	return group, k
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
		turn := func(x int) int {
			if x < 0 {
				return x
			}
			return n - 1 - x
		}
		return turn(p), turn(a), turn(b)
	}
	p, a, b := btree(n, mod(node-1, n))
	turn := func(x int) int {
		if x < 0 {
			return x
		}
		return (x + 1) % n
	}
	return turn(p), turn(a), turn(b)
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
func (d dtree) port(group, channel int, secondChild bool) int32 {
	at := 0
	switch d.pattern {
	case Balanced:
		if !secondChild {
			at = 1
		}
	case SplitTree:
		at = 1
	}
	return d.seen(group, min(at, d.sizeOf(group)-1), channel)
}

func (d dtree) parent(p, channel int) int {
	g, k := d.place(p, channel)
	if k > 0 {
		return int(d.seen(g, k-1, channel))
	}
	parent, _, _ := BinaryTree(d.count, g, d.second(channel))
	if parent < 0 {
		return -1
	}
	_, _, c1 := BinaryTree(d.count, parent, d.second(channel))
	return int(d.port(parent, channel, c1 == g))
}

// childList lists the children: the next member of the chain, then those in other groups.
func (d dtree) childList(p, channel int) (list [3]int, n int) {
	g, k := d.place(p, channel)
	if k+1 < d.sizeOf(g) {
		list[n] = int(d.seen(g, k+1, channel))
		n++
	}
	_, c0, c1 := BinaryTree(d.count, g, d.second(channel))
	if c0 >= 0 && int(d.port(g, channel, false)) == p {
		list[n] = int(d.seen(c0, 0, channel))
		n++
	}
	if c1 >= 0 && int(d.port(g, channel, true)) == p {
		list[n] = int(d.seen(c1, 0, channel))
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

// btrees is the double tree over positions, without groups; for a rooted collective both trees
// are turned so that position 0 is their root.
type btrees struct {
	n, channels int
	rooted      bool
}

func (b btrees) around(p, channel int) (parent, c0, c1 int) {
	second := channel%b.channels >= (b.channels+1)/2
	if !b.rooted || !second {
		return BinaryTree(b.n, p, second)
	}
	root := 1 % b.n // of the second tree
	if b.n%2 == 0 {
		root = b.n - 1
	}
	parent, c0, c1 = BinaryTree(b.n, (p+root)%b.n, true)
	turn := func(x int) int {
		if x < 0 {
			return x
		}
		return mod(x-root, b.n)
	}
	return turn(parent), turn(c0), turn(c1)
}

func (b btrees) parent(p, channel int) int {
	parent, _, _ := b.around(p, channel)
	return parent
}

func (b btrees) children(p, channel int) int {
	_, c0, c1 := b.around(p, channel)
	n := 0
	if c0 >= 0 {
		n++
	}
	if c1 >= 0 {
		n++
	}
	return n
}

func (b btrees) child(p, channel, k int) int {
	_, c0, c1 := b.around(p, channel)
	if k == 0 && c0 >= 0 {
		return c0
	}
	return c1
}
