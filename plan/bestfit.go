package plan

import "slices"

// BestFit is the nodes that Slurm's topology/tree takes: leaf after leaf, each time the one that holds what is missing with
// the fewest nodes to spare; where none does, one below the tightest switch that does, with the most nodes; leaves nearer to
// those taken first. In a leaf nodes are taken in their order. Source: SchedMD, Topology Guide, and eval_nodes_tree.c of Slurm 25.11.
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

// compare is above zero where a is the better leaf, and tells whether what is missing fits into the switch of a's that decided.
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
