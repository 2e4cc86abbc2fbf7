package nccl

import "slices"

// Wiring joins the orders inside nodes to rings and trees over all ranks. Rings
// and trees are computed when asked for, because a large job has too many to keep.
type Wiring struct {
	r      *rules
	nodes  []PlanNode
	nRanks int
	search int   // channels that every node found
	cross  int   // whether some node's ring crosses NICs, as nodes agree upon it
	origin []int // per channel the one it repeats, below 2×search
	split  bool  // channels are not doubled for the second tree: half of them have it (RCCL)
}

// Links is a rank's place in a tree; -1 means none.
type Links struct {
	Up   int
	Down [3]int
}

// newWiring takes nodes in NCCL's order (by lowest rank) and the number of search
// channels they agreed upon.
func newWiring(r *rules, nodes []PlanNode, search int) *Wiring {
	w := &Wiring{r: r, nodes: nodes, search: search}
	for _, m := range nodes {
		w.nRanks += len(m.Ranks)
		w.cross = max(w.cross, m.View.Graphs.Ring.CrossNIC)
	}
	for c := range min(2*search, r.MaxChannels) {
		w.origin = append(w.origin, c)
	}
	return w
}

// repeat copies channels from the first on until there are n.
func (w *Wiring) repeat(n int) {
	period := len(w.origin)
	for c := period; c < n && period > 0; c++ {
		w.origin = append(w.origin, w.origin[c-period])
	}
}

// limit keeps the first n channels.
func (w *Wiring) limit(n int) { w.origin = w.origin[:min(n, len(w.origin))] }

// Count is the number of channels of collectives.
func (w *Wiring) Count() int { return len(w.origin) }

// Period is after how many channels the same rings and trees come again, also of channels beyond the count.
func (w *Wiring) Period() int {
	n := len(w.origin)
	for p := 1; p < n; p++ {
		if n%p == 0 && slices.Equal(w.origin[p:], w.origin[:n-p]) {
			return p
		}
	}
	return max(1, n)
}

// ringChannel is the channel whose order a node uses for a ring. Where rings cross
// NICs, odd nodes take the partner's, so that a cable's ends are on one rail
// (NCCL 2.28 src/graph/connect.cc, ncclTopoPostset).
func (w *Wiring) ringChannel(node, c int) int {
	c = w.origin[c] % w.search
	if node%2 == 0 || w.search%2 != 0 || !w.r.PairedRings {
		return c
	}
	switch {
	case w.r.CrossTwo:
		cross := w.cross
		if w.r.CrossByNode { // each node for itself
			cross = w.nodes[node].View.Graphs.Ring.CrossNIC
		}
		if cross != 2 {
			return c
		}
	case w.cross == 0, !w.r.OddCross && len(w.nodes)%2 != 0:
		return c
	}
	return c ^ 1
}

// Ring is the cycle of a channel in the direction of sending, from rank 0.
func (w *Wiring) Ring(c int) []int {
	ring := make([]int, 0, w.nRanks)
	add := func(node int, order []int) {
		for _, g := range order {
			ring = append(ring, w.nodes[node].Ranks[g])
		}
	}
	first := w.ringOrder(0, c)
	start := max(0, slices.Index(first, 0)) // rank 0 is the first of the first node
	add(0, first[start:])
	for n := 1; n < len(w.nodes); n++ {
		add(n, w.ringOrder(n, c))
	}
	add(0, first[:start])
	return ring
}

// ringOrder is the order of a node's ranks on the ring of a channel, as positions among them.
func (w *Wiring) ringOrder(node, c int) []int {
	return w.nodes[node].View.Graphs.ring(node, len(w.nodes)).Intra[w.ringChannel(node, c)]
}

// Beside is who is a step of 1 or -1 further on from a rank of a node on the ring of a channel.
func (w *Wiring) Beside(node, rank, c, step int) int {
	n, order := &w.nodes[node], w.ringOrder(node, c)
	at := rank - n.Ranks[0] // mostly a node's ranks follow each other
	if at >= len(n.Ranks) || n.Ranks[at] != rank {
		at, _ = slices.BinarySearch(n.Ranks, rank)
	}
	at = slices.Index(order, at) + step
	if at < 0 || at >= len(order) { // in the next node or the one before
		node = (node + step + len(w.nodes)) % len(w.nodes)
		n, order = &w.nodes[node], w.ringOrder(node, c)
		if at = 0; step < 0 {
			at = len(order) - 1
		}
	}
	return n.Ranks[order[at]]
}

// Tree is the tree of a channel, by rank.
func (w *Wiring) Tree(c int) []Links {
	links := make([]Links, w.nRanks)
	base, which := w.tree(c)
	for n, m := range w.nodes {
		order := m.View.Graphs.Tree.Intra[base]
		for i, g := range order {
			l := Links{Up: -1, Down: [3]int{-1, -1, -1}}
			if i > 0 {
				l.Up = m.Ranks[order[i-1]]
			}
			if i < len(order)-1 {
				l.Down[0] = m.Ranks[order[i+1]]
			}
			links[m.Ranks[g]] = l
		}
		place := Dtree(len(w.nodes), n)[which]
		toParent := w.attach(n, base, -1)
		if place.Parent >= 0 {
			links[toParent].Up = w.attach(place.Parent, base, place.Slot)
		}
		for slot, child := range place.Child {
			if child >= 0 {
				links[w.attach(n, base, slot)].addDown(w.attach(child, base, -1))
			}
		}
	}
	return links
}

// Parents is the parent of every rank in the tree of a channel, -1 for the root.
func (w *Wiring) Parents(c int) []int {
	list := make([]int, w.nRanks)
	base, which := w.tree(c)
	for n, m := range w.nodes {
		order := m.View.Graphs.Tree.Intra[base]
		for i, g := range order {
			list[m.Ranks[g]] = -1
			if i > 0 {
				list[m.Ranks[g]] = m.Ranks[order[i-1]]
			}
		}
		if place := Dtree(len(w.nodes), n)[which]; place.Parent >= 0 {
			list[w.attach(n, base, -1)] = w.attach(place.Parent, base, place.Slot)
		}
	}
	return list
}

// tree is the order inside nodes and which of the two trees between them a channel has.
func (w *Wiring) tree(c int) (base, which int) {
	base, which = w.origin[c]%w.search, w.origin[c]/w.search
	if w.split {
		which = bit(base >= w.search/2)
	}
	return base, which
}

// attach is the rank of a node that holds the link to its parent (slot -1) or to
// a child (0, 1) in other nodes (NCCL 2.28 src/graph/connect.cc, connectTrees).
func (w *Wiring) attach(node, base, slot int) int {
	m := w.nodes[node]
	g := &m.View.Graphs.Tree
	at := 0
	switch {
	case slot == 0 && g.Pattern != TreePattern, slot == 1 && g.Pattern == SplitTree:
		at = 1
	}
	order := g.Intra[base]
	return m.Ranks[order[min(at, len(order)-1)]]
}

// addDown puts a child into the first free place.
func (l *Links) addDown(rank int) {
	for i, d := range l.Down {
		if d < 0 {
			l.Down[i] = rank
			return
		}
	}
}

// NIC is what a channel of a ring uses at a node's ends: positions among the
// node's NICs of receiving and of sending; -1 on a single node.
func (w *Wiring) NIC(node, c int) [2]int {
	inter := w.nodes[node].View.Graphs.ring(node, len(w.nodes)).Inter
	if ch := w.ringChannel(node, c); ch < len(inter) && len(w.nodes) > 1 {
		return inter[ch]
	}
	return [2]int{-1, -1}
}
