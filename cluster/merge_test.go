package cluster

import "testing"

// Of two matrices the first is kept; links that a source without a matrix names
// are believed, and the matrix that has none of them is told of.
func TestJoinMatrixAgainstLinks(t *testing.T) {
	node := func(class ClassType, linked bool) *NodeType {
		n := &NodeType{Tree: Assumed}
		top := n.Add(Device{Kind: RootComplex, Index: -1, Parent: -1})
		for i := range 2 {
			g := n.Add(Device{Kind: GPU, Index: i, Parent: top})
			n.Connect(Link{A: top, B: g, Kind: PCIe})
		}
		if linked {
			n.Connect(Link{A: 1, B: 2, Kind: NVLink, Lanes: 4})
		}
		if class != Apart {
			m := n.Matrix()
			m.Class[0][1], m.Class[1][0] = Class{Type: class, Links: 4}.String(), Class{Type: class, Links: 4}.String()
			n.Said = &m
		}
		return n
	}
	between := func(c *Cluster) string { return c.Types[0].Matrix().Class[0][1] }

	c := Join(fragment("one", "h", node(PHB, false)), fragment("two", "h", node(NV, true)))
	hasWarning(t, c, "two.txt (two) contradicts one.txt (one), which is kept", "NV4 there, PHB here")
	if got := between(c); got != "PHB" {
		t.Errorf("GPUs are %s of each other; the first matrix says PHB", got)
	}
	c = Join(fragment("one", "h", node(PHB, false)), fragment("two", "h", node(Apart, true)))
	hasWarning(t, c, "one.txt (one) contradicts two.txt (two), which is kept", "PHB there, NV4 here")
	if got := between(c); got != "NV4" {
		t.Errorf("GPUs are %s of each other; a source has four links between them", got)
	}
}
