package nccl

import (
	"fmt"
	"strings"
	"testing"
)

// sameOrders makes nodes of equal shape with block placement whose channels all
// use one order.
func sameOrders(nodes, gpus, channels int, pattern Pattern) []PlanNode {
	order := make([]int, gpus)
	for i := range order {
		order[i] = i
	}
	v := &View{}
	g := &v.Graphs
	g.Tree.Pattern = pattern
	for range channels {
		g.Ring.Intra = append(g.Ring.Intra, order)
		g.Tree.Intra = append(g.Tree.Intra, order)
	}
	var all []PlanNode
	for n := range nodes {
		m := PlanNode{View: v}
		for i := range gpus {
			m.Ranks = append(m.Ranks, n*gpus+i)
		}
		all = append(all, m)
	}
	return all
}

// printed is how NCCL prints a place in a tree: children->rank->parent.
func (l Links) printed(rank int) string {
	return fmt.Sprintf("%d/%d/%d->%d->%d", l.Down[0], l.Down[1], l.Down[2], rank, l.Up)
}

// TestTreeExamples are examples worked out by hand after connectTrees (NCCL 2.28
// src/graph/connect.cc).
func TestTreeExamples(t *testing.T) {
	for _, c := range []struct {
		nodes, gpus int
		pattern     Pattern
		want        map[int]string // rank: tree of channel 0, of channel 1
	}{
		{4, 2, BalancedTree, map[int]string{
			0: "1/4/-1->0->-1 1/-1/-1->0->2", 1: "-1/-1/-1->1->0 -1/-1/-1->1->0",
			2: "3/-1/-1->2->5 3/0/-1->2->6", 3: "-1/-1/-1->3->2 4/-1/-1->3->2",
			4: "5/6/-1->4->0 5/-1/-1->4->3", 5: "2/-1/-1->5->4 -1/-1/-1->5->4",
			6: "7/-1/-1->6->4 7/2/-1->6->-1", 7: "-1/-1/-1->7->6 -1/-1/-1->7->6",
		}},
		{2, 4, BalancedTree, map[int]string{
			0: "1/4/-1->0->-1 1/-1/-1->0->4", 4: "5/-1/-1->4->0 5/0/-1->4->-1", 7: "-1/-1/-1->7->6 -1/-1/-1->7->6",
		}},
	} {
		w := newWiring(Newest.rules(), sameOrders(c.nodes, c.gpus, 1, c.pattern), 1)
		for rank, want := range c.want {
			got := w.Tree(0)[rank].printed(rank) + " " + w.Tree(1)[rank].printed(rank)
			if got != want {
				t.Errorf("%d×%d rank %d: %s, want %s", c.nodes, c.gpus, rank, got, want)
			}
		}
	}
}

// TestWiringIsWhole checks, over shapes and patterns, that rings visit every rank
// once and that trees have one root and children who know their parents.
func TestWiringIsWhole(t *testing.T) {
	for _, pattern := range []Pattern{BalancedTree, SplitTree, TreePattern} {
		for nodes := 1; nodes <= 17; nodes++ {
			for _, gpus := range []int{1, 2, 3, 8} {
				w := newWiring(Newest.rules(), sameOrders(nodes, gpus, 3, pattern), 3)
				w.repeat(9)
				for c := range w.Count() {
					ring := w.Ring(c)
					checkRing(t, ring, nodes*gpus)
					for i, r := range ring {
						if next := ring[(i+1)%len(ring)]; w.Beside(r/gpus, r, c, 1) != next || w.Beside(next/gpus, next, c, -1) != r {
							t.Fatalf("ring %v: behind %d is %d, before %d is %d", ring, r, w.Beside(r/gpus, r, c, 1), next,
								w.Beside(next/gpus, next, c, -1))
						}
					}
					checkTree(t, w.Tree(c))
				}
			}
		}
	}
}

func checkRing(t *testing.T, ring []int, n int) {
	t.Helper()
	seen := make([]bool, n)
	for _, r := range ring {
		if seen[r] {
			t.Fatalf("ring %v visits %d twice", ring, r)
		}
		seen[r] = true
	}
	if len(ring) != n || ring[0] != 0 {
		t.Fatalf("ring %v: want %d ranks from 0", ring, n)
	}
}

func checkTree(t *testing.T, tree []Links) {
	t.Helper()
	roots, kids := 0, 0
	for r, l := range tree {
		if l.Up < 0 {
			roots++
		}
		for _, d := range l.Down {
			if d < 0 {
				continue
			}
			kids++
			if tree[d].Up != r {
				t.Fatalf("%d has child %d whose parent is %d", r, d, tree[d].Up)
			}
		}
	}
	if roots != 1 || kids != len(tree)-1 {
		t.Fatalf("%d roots and %d children of %d ranks", roots, kids, len(tree))
	}
}

func TestRepeatAndLimit(t *testing.T) {
	w := newWiring(Newest.rules(), sameOrders(2, 2, 2, TreePattern), 2)
	w.repeat(6)
	w.repeat(15)
	w.limit(14)
	if got := strings.Trim(fmt.Sprint(w.origin), "[]"); got != "0 1 2 3 0 1 0 1 2 3 0 1 0 1" {
		t.Error(got)
	}
}
