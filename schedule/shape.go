package schedule

import "math/bits"

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

func (c chains) turn(p, channel int) (group []int32, k int) {
	group = c.groups[c.groupOf[p]]
	return group, mod(int(c.posOf[p])-channel, len(group))
}

func (c chains) parent(p, channel int) int {
	if p == c.ranks {
		return -1
	}
	group, k := c.turn(p, channel)
	if k == 0 {
		return c.ranks
	}
	return int(group[mod(int(c.posOf[p])-1, len(group))])
}

func (c chains) children(p, channel int) int {
	if p == c.ranks {
		return len(c.groups)
	}
	if group, k := c.turn(p, channel); k+1 < len(group) {
		return 1
	}
	return 0
}

func (c chains) child(p, channel, k int) int {
	if p == c.ranks {
		return int(c.groups[k][channel%len(c.groups[k])])
	}
	group := c.groups[c.groupOf[p]]
	return int(group[(int(c.posOf[p])+1)%len(group)])
}

// given is trees from outside, one for every channel, by the parent of each rank.
type given struct {
	parents []([]int32)
	first   []([]int32) // where a rank's children begin in kids, and the end
	kids    []([]int32)
}

func (g *given) tree(channel int) int { return channel % len(g.parents) }

func (g *given) parent(p, channel int) int { return int(g.parents[g.tree(channel)][p]) }

func (g *given) children(p, channel int) int {
	f := g.first[g.tree(channel)]
	return int(f[p+1] - f[p])
}

func (g *given) child(p, channel, k int) int {
	t := g.tree(channel)
	return int(g.kids[t][int(g.first[t][p])+k])
}
