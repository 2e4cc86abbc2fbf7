package plan

import (
	"math/bits"
	"slices"

	"busbar.dev/step"
	"busbar.dev/workload"
)

// BestFit is the nodes that Slurm's topology/tree takes: leaf after leaf, each time the one that holds what is missing
// with the fewest nodes to spare; where none does, one below the tightest switch that does, with the most nodes; leaves
// nearer to those taken first. In a leaf nodes are taken in their order. Source: SchedMD, Topology Guide, and
// eval_nodes_tree.c of Slurm 25.11.
func (x *Placer) BestFit() []int { return x.bestFit(x.at) }

// Tree is a scheduler's own tree of switches: of each the one above, and of each free node its leaf; -1 is none.
type Tree struct{ Up, Of []int }

// BestFitIn is BestFit by a tree that is not that of the cables.
func (x *Placer) BestFitIn(t Tree) []int {
	at := make([]place, len(x.free))
	for i, sw := range t.Of {
		at[i] = place{-1, -1, -1}
		for k := len(place{}) - 1; k >= 0 && sw >= 0; k-- {
			at[i][k], sw = sw, t.Up[sw]
		}
	}
	return x.bestFit(at)
}

func (x *Placer) bestFit(at []place) []int {
	leaves := map[place][]int{}
	var order []place
	for i, p := range at {
		if leaves[p] == nil {
			order = append(order, p)
		}
		leaves[p] = append(leaves[p], i)
	}
	var nodes []int
	var taken []place
	for len(nodes) < x.n {
		left := fit{leaves, taken, x.n - len(nodes)}
		best := -1
		for i, p := range order {
			if len(leaves[p]) > 0 && (best < 0 || left.better(p, order[best])) {
				best = i
			}
		}
		p := order[best]
		k := min(left.need, len(leaves[p]))
		nodes, taken = append(nodes, leaves[p][:k]...), append(taken, p)
		leaves[p] = nil
	}
	return slices.Sorted(slices.Values(nodes))
}

// fit is how leaves fit what is missing.
type fit struct {
	leaves map[place][]int
	taken  []place
	need   int
}

// count is how many nodes are left below the switch of a leaf's at a height; 0 is the leaf itself.
func (f *fit) count(p place, height int) int {
	n := 0
	for q, list := range f.leaves {
		if distance(p, q) <= height {
			n += len(list)
		}
	}
	return n
}

// away is how far a leaf is from those that were taken.
func (f *fit) away(p place) int {
	sum := 0
	for _, q := range f.taken {
		sum += distance(p, q)
	}
	return sum
}

func (f *fit) better(a, b place) bool {
	order, fits := f.compare(a, b)
	da, db := f.away(a), f.away(b)
	return da < db && fits || da == db && order > 0
}

// compare is above zero where a is the better leaf, and tells whether what is missing fits into the switch of a's that
// decided.
func (f *fit) compare(a, b place) (order int, fits bool) {
	for height := 0; ; height++ {
		na, nb := f.count(a, height), f.count(b, height)
		fits = na >= f.need
		switch {
		case fits && nb >= f.need:
			return nb - na, true
		case fits:
			return 1, true
		case nb >= f.need:
			return -1, false
		case height+1 >= len(place{}) || distance(a, b) <= height+1:
			return na - nb, false
		}
	}
}

// Blocks is how Slurm's topology/block sees the free nodes.
type Blocks struct {
	Of    []int // the base block of each free node, -1 where it is in none
	N     int   // base blocks, in the order of the configuration
	Sizes []int // nodes of the blocks that Slurm plans in, a base block's first
}

// BlockFit is the nodes that Slurm's topology/block takes: all of one block of the smallest planned size that could
// hold the job, the one with the fewest free nodes that suffice. In it base blocks are taken as fewest larger ones are
// opened, each time the tightest that holds what is missing or else the fullest; of equals the last, and in a base
// block nodes in their order. It reports false where no block suffices, and the job waits. Source: SchedMD,
// topology/block (eval_nodes_block.c) of August 2026; 24.11 answers the same. Segments are not asked for.
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
	nodes, ok := f.takeBlocks(at, min(at+outer, b.N))
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

// takeBlocks takes nodes of the base blocks from one to another.
func (f *blockFit) takeBlocks(from, to int) (nodes []int, ok bool) {
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

// Fits is the setting of another space that needs least of a GPU's memory, where it fits; nil where
// none does. Nothing is priced.
func (q *Query) Fits(x *Space) *Lean {
	own := *q
	own.Spaces = []*Space{x}
	s := &search{q: &own, room: q.Room(), bounds: step.NewBounds(x.Base.Model, q.GPU)}
	var best *Lean
	for _, d := range x.splits() {
		x.families(d, func(j *workload.Job) {
			lean, ok := s.fits(&family{Family: s.bounds.Family(j)})
			if ok && (best == nil || lean.Memory.Total() < best.Memory.Total()) {
				best = lean
			}
		})
	}
	return best
}
