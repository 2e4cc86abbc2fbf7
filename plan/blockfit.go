package plan

import (
	"math/bits"
	"slices"
)

// Blocks is how Slurm's topology/block sees the free nodes.
type Blocks struct {
	Of    []int // the base block of each free node, -1 where it is in none
	N     int   // base blocks, in the order of the configuration
	Sizes []int // nodes of the blocks that Slurm plans in, a base block's first
}

// BlockFit is the nodes that Slurm's topology/block takes: all of one block of the smallest planned size that could hold the
// job, the one with the fewest free nodes that suffice. In it base blocks are taken as fewest larger ones are opened, each
// time the tightest that holds what is missing or else the fullest; of equals the last, and in a base block nodes in their order.
// It reports false where no block suffices, and the job waits. Source: SchedMD, topology/block (eval_nodes_block.c) of August 2026;
// 24.11 answers the same. Segments are not asked for.
func (x *Placer) BlockFit(b Blocks) ([]int, bool) {
	f := blockFit{free: make([][]int, b.N), need: x.n}
	for i, k := range b.Of {
		if k >= 0 {
			f.free[k] = append(f.free[k], i)
		}
	}
	outer := f.plan(b.Sizes)
	at, best := -1, 0
	for i := 0; i < b.N; i += outer {
		if n := f.count(i, outer); f.holds(i, outer) && (at < 0 || n <= best) {
			at, best = i, n
		}
	}
	if at < 0 {
		return nil, false
	}
	nodes, ok := f.take(at, min(at+outer, b.N))
	slices.Sort(nodes)
	return nodes, ok
}

// blockFit is free nodes by base block, and what a job needs of them.
type blockFit struct {
	free  [][]int
	need  int
	inner int // base blocks of the larger ones of which a job opens as few as it can
	most  int // how many of those it may open; 0 is any number
}

// plan finds how many base blocks the block has that a job must fit into, and the size below it.
func (f *blockFit) plan(sizes []int) (outer int) {
	base := sizes[0]
	level := bits.Len(uint((f.need+base-1)/base - 1)) // powers of two that the job needs
	f.inner = 1
	for _, s := range sizes {
		switch k := s / base; {
		case k < 1<<level:
			f.inner = max(f.inner, k)
		case outer == 0 || k < outer:
			outer = k
		}
	}
	if outer == 0 {
		outer = len(f.free) // no size is planned that large: all blocks
	}
	if f.most = (f.need + f.inner*base - 1) / (f.inner * base); f.most*f.inner == outer {
		f.most = 0 // the job may take all of them
	}
	return outer
}

// count is how many nodes are free in base blocks from one on.
func (f *blockFit) count(at, blocks int) (n int) {
	for _, l := range f.free[at:min(at+blocks, len(f.free))] {
		n += len(l)
	}
	return n
}

// holds reports whether a block has the nodes, in no more inner blocks than the job may open.
func (f *blockFit) holds(at, outer int) bool {
	if f.most == 0 {
		return f.count(at, outer) >= f.need
	}
	var inner []int
	for i := at; i < min(at+outer, len(f.free)); i += f.inner {
		inner = append(inner, f.count(i, f.inner))
	}
	slices.SortFunc(inner, func(a, b int) int { return b - a })
	n := 0
	for _, k := range inner[:min(f.most, len(inner))] {
		n += k
	}
	return n >= f.need
}

// take takes nodes of the base blocks from one to another.
func (f *blockFit) take(from, to int) (nodes []int, ok bool) {
	taken, opened := map[int]bool{}, map[int]bool{}
	for f.need > 0 {
		best := -1
		for i := from; i < to; i++ {
			if !taken[i] && len(f.free[i]) > 0 && (best < 0 || f.better(i, best, opened)) {
				best = i
			}
		}
		if best < 0 || f.most > 0 && !opened[best/f.inner] && len(opened) == f.most {
			return nodes, false
		}
		k := min(f.need, len(f.free[best]))
		nodes = append(nodes, f.free[best][:k]...)
		taken[best], opened[best/f.inner] = true, true
		f.need -= k
	}
	return nodes, true
}

// better reports whether base block a is to be taken rather than b, which comes before it.
func (f *blockFit) better(a, b int, opened map[int]bool) bool {
	if ia, ib := a/f.inner, b/f.inner; f.most > 0 && ia != ib {
		if opened[ia] != opened[ib] {
			return opened[ia]
		}
		if na, nb := f.count(ia*f.inner, f.inner), f.count(ib*f.inner, f.inner); na != nb {
			return f.tighter(na, nb)
		}
	}
	na, nb := len(f.free[a]), len(f.free[b])
	return na == nb || f.tighter(na, nb)
}

// tighter reports whether na nodes fit what is missing better than nb do.
func (f *blockFit) tighter(na, nb int) bool {
	fits := na >= f.need
	switch {
	case fits != (nb >= f.need):
		return fits
	case fits:
		return na < nb
	}
	return na > nb
}
