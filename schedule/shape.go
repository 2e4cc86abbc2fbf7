package schedule

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// shape is a tree over positions for every channel. The parent of the root is -1.
type shape interface {
	parent(p, channel int) int
	children(p, channel int) int // their number
	child(p, channel, k int) int
}

// chain is a tree in which everyone has one child.
type chain struct{ n int }

func (c chain) parent(p, _ int) int { return p - 1 }

func (c chain) children(p, _ int) int {
	if p+1 < c.n {
		return 1
	}
	return 0
}

func (c chain) child(p, _, _ int) int { return p + 1 }

// binomial is the tree in which position p is below p without its lowest bit; the children are
// in order of the size of what is below them.
type binomial struct{ n int }

func (b binomial) parent(p, _ int) int {
	if p == 0 {
		return -1
	}
	return p & (p - 1)
}

func (b binomial) children(p, _ int) int {
	k := bits.Len(uint(b.n - 1 - p)) // p + 2^j < n for j below k
	if p > 0 {
		k = min(k, bits.TrailingZeros(uint(p)))
	}
	return k
}

func (b binomial) child(p, _, k int) int { return p + 1<<k }

// star joins all positions to one switch, which is position n.
type star struct{ n int }

func (s star) parent(p, _ int) int {
	if p == s.n {
		return -1
	}
	return s.n
}

func (s star) children(p, _ int) int {
	if p == s.n {
		return s.n
	}
	return 0
}

func (s star) child(_, _, k int) int { return k }

// chains joins the groups' chains to one switch (NCCL's CollNet chain). In channel c member c
// of a group, modulo its size, is the head that talks to the switch, and the members after it
// follow.
type chains struct {
	*grouping
	ranks int // the switch's position
}

func (c chains) parent(p, channel int) int {
	if p == c.ranks {
		return -1
	}
	group, k := c.placed(p, channel)
	if k == 0 {
		return c.ranks
	}
	return c.seen(group, k-1, channel)
}

func (c chains) children(p, channel int) int {
	if p == c.ranks {
		return c.count
	}
	if group, k := c.placed(p, channel); k+1 < c.sizeOf(group) {
		return 1
	}
	return 0
}

func (c chains) child(p, channel, k int) int {
	if p == c.ranks {
		return c.seen(k, 0, channel)
	}
	group, at := c.placed(p, channel)
	return c.seen(group, at+1, channel)
}

// Trees is trees from outside, taken by the channels in turn.
type Trees struct {
	open    *openRings // instead of all below
	parents []([]int32)
	first   []([]int32) // where a rank's children begin in kids, and the end
	kids    []([]int32)
	leaves  sync.Map // as those of tree
}

// openRings is rings cut open at the root, of which nothing is kept.
type openRings struct {
	ranks, count int
	root         int
	up           bool
	beside       func(rank, ring, step int) int
	leaf         []int // by ring: the one that everyone else is above
}

// OpenRings is rings cut open at a root, as trees in which everyone has one child: data comes to a rank from the one
// before it, or, on its way up to the root, leaves for the one behind it. The function tells who is a step of 1 or -1
// further on.
func OpenRings(ranks, rings, root int, up bool, beside func(rank, ring, step int) int) *Trees {
	o := &openRings{ranks: ranks, count: rings, root: root, up: up, beside: beside}
	for ring := range rings {
		o.leaf = append(o.leaf, beside(root, ring, o.step()))
	}
	return &Trees{open: o}
}

// step is the direction of the parent.
func (o *openRings) step() int {
	if o.up {
		return 1
	}
	return -1
}

// Add adds the tree of one more channel: the parent of every rank, -1 for the root. Schedules that have the trees
// already keep theirs.
func (g *Trees) Add(parents []int) error {
	t, n := len(g.parents), len(parents)
	if t > 0 && n != g.ranks() {
		return fmt.Errorf("tree %d has parents for %d ranks; there are %d", t, n, g.ranks())
	}
	list, first, kids := make([]int32, n), make([]int32, n+2), make([]int32, n)
	roots := 0
	for r, up := range parents {
		if up < -1 || up >= n || up == r {
			return fmt.Errorf("tree %d: rank %d has the parent %d", t, r, up)
		}
		list[r] = int32(up)
		if up < 0 {
			roots++
		} else {
			first[up+2]++
		}
	}
	if roots != 1 {
		return fmt.Errorf("tree %d has %d roots; a tree has one", t, roots)
	}
	for r := range n {
		first[r+2] += first[r+1]
	}
	for r, up := range list { // first[up+1] goes on from where the children of up begin to where they end
		if up >= 0 {
			kids[first[up+1]] = int32(r)
			first[up+1]++
		}
	}
	g.parents, g.first, g.kids = append(g.parents, list), append(g.first, first), append(g.kids, kids)
	return nil
}

// Count is the number of trees.
func (g *Trees) Count() int {
	if g.open != nil {
		return g.open.count
	}
	return len(g.parents)
}

// ranks is how many they are over.
func (g *Trees) ranks() int {
	if g.open != nil {
		return g.open.ranks
	}
	if len(g.parents) == 0 {
		return 0
	}
	return len(g.parents[0])
}

// rooted checks that all trees have their root at a rank.
func (g *Trees) rooted(root int) error {
	if g.open != nil && g.open.root != root {
		return fmt.Errorf("rings are cut open at %d; the operation has the root %d", g.open.root, root)
	}
	for t, parents := range g.parents {
		if at := slices.Index(parents, -1); at != root {
			return fmt.Errorf("tree %d has the root %d; the operation has %d", t, at, root)
		}
	}
	return nil
}

func (g *Trees) tree(channel int) int {
	n := g.Count()
	if channel < n { // mostly, and a division costs more than the rest
		return channel
	}
	return channel % n
}

func (g *Trees) parent(p, channel int) int {
	if o := g.open; o != nil {
		if p == o.root {
			return -1
		}
		return o.beside(p, g.tree(channel), o.step())
	}
	return int(g.parents[g.tree(channel)][p])
}

func (g *Trees) children(p, channel int) int {
	if g.open != nil {
		if p == g.open.leaf[g.tree(channel)] {
			return 0
		}
		return 1
	}
	f := g.first[g.tree(channel)]
	return int(f[p+1] - f[p])
}

func (g *Trees) child(p, channel, k int) int {
	t := g.tree(channel)
	if o := g.open; o != nil {
		return o.beside(p, t, -o.step())
	}
	return int(g.kids[t][int(g.first[t][p])+k])
}
