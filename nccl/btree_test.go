package nccl

import (
	"fmt"
	"strings"
	"testing"
)

// TestDtreeTables holds the trees to tables worked out by hand after ncclGetDtree
// (NCCL 2.28 src/graph/trees.cc).
func TestDtreeTables(t *testing.T) {
	tables := map[int][2]string{
		2: {"0→(–,1)", "1→(–,0)"},
		3: {"0→(–,2) 2→(1,–)", "0→(2,–) 1→(–,0)"},
		4: {"0→(–,2) 2→(1,3)", "1→(2,0) 3→(–,1)"},
		5: {"0→(–,4) 2→(1,3) 4→(2,–)", "0→(3,–) 1→(–,0) 3→(2,4)"},
		6: {"0→(–,4) 2→(1,3) 4→(2,5)", "1→(3,0) 3→(4,2) 5→(–,1)"},
		7: {"0→(–,4) 2→(1,3) 4→(2,6) 6→(5,–)", "0→(6,–) 1→(–,5) 3→(2,4) 5→(3,0)"},
		8: {"0→(–,4) 2→(1,3) 4→(2,6) 6→(5,7)", "1→(2,0) 3→(5,1) 5→(6,4) 7→(–,3)"},
	}
	name := func(r int) string {
		if r < 0 {
			return "–"
		}
		return fmt.Sprint(r)
	}
	for n, want := range tables {
		for k := range 2 {
			var rows []string
			for r := range n {
				if c := Dtree(n, r)[k].Child; c != [2]int{-1, -1} {
					rows = append(rows, fmt.Sprintf("%d→(%s,%s)", r, name(c[0]), name(c[1])))
				}
			}
			if got := strings.Join(rows, " "); got != want[k] {
				t.Errorf("%d nodes, tree %d: %s, want %s", n, k, got, want[k])
			}
		}
	}
}

// TestDtreeIsTree checks that parents and children agree, that there is one root,
// and that every node hangs below it.
func TestDtreeIsTree(t *testing.T) {
	for n := 1; n <= 300; n++ {
		for k := range 2 {
			roots, interior := 0, 0
			for r := range n {
				p := Dtree(n, r)[k]
				if p.Parent < 0 {
					roots++
				} else if got := Dtree(n, p.Parent)[k].Child[p.Slot]; got != r {
					t.Fatalf("%d nodes, tree %d: %d says it is child %d of %d, which has %d there", n, k, r, p.Slot, p.Parent, got)
				}
				if p.Child != [2]int{-1, -1} {
					interior++
					if n%2 == 0 && Dtree(n, r)[1-k].Child != [2]int{-1, -1} {
						t.Fatalf("%d nodes: %d is interior in both trees", n, r)
					}
				}
				for up, steps := r, 0; up >= 0; up, steps = Dtree(n, up)[k].Parent, steps+1 {
					if steps > 2*12 {
						t.Fatalf("%d nodes, tree %d: %d does not reach a root", n, k, r)
					}
				}
			}
			if roots != 1 {
				t.Fatalf("%d nodes, tree %d: %d roots", n, k, roots)
			}
		}
	}
}
