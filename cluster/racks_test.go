package cluster

import (
	"fmt"
	"testing"
)

// Two racks of two hosts each: their trays keep their GPUs, their NICs and the switches that those hang on.
func TestByRack(t *testing.T) {
	c := railCluster(2)
	got := c.ByRack([]Rack{{"r0", []int{0, 1}}, {"r1", []int{2, 3}}, {"twice", []int{3, 0}}})
	n := got.Types[got.Hosts[1].Type]
	if len(got.Hosts) != 2 || n.Trays != 2 || n.Count(GPU) != 12 || n.Count(NIC) != 4 || n.Check() != nil {
		t.Fatalf("%d hosts of %d trays, %d GPUs, %v", len(got.Hosts), n.Trays, n.Count(GPU), n.Check())
	}
	if name := got.Hosts[1].TrayName(1, 2); name != "node3" {
		t.Errorf("tray %s", name)
	}
	if name := c.Hosts[1].TrayName(7, 18); name != "node1-t07" {
		t.Errorf("tray %s", name)
	}
	was, now := NewRoutes(c), NewRoutes(got)
	for k, nic := range n.Of(NIC) {
		a, _ := was.Leaf(2+k/2, c.Types[0].Of(NIC)[k%2])
		if b, _ := now.Leaf(1, nic); a != b {
			t.Errorf("NIC %d is on switch %d, was on %d", k, b, a)
		}
	}
	if class := n.Matrix().Class[0][11]; class != "NV12" {
		t.Errorf("GPUs of two trays are %s of each other", class)
	}
	if same := c.ByRack([]Rack{{"alone", []int{0}}, {"twice", []int{1, 1}}}); same != c {
		t.Error(fmt.Sprint("no rack, and yet ", same.Hosts))
	}
}
