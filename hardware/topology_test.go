package hardware

import (
	"testing"

	"busbar.dev/cluster"
)

// Topologies have the links that define them: neighbours of a leaf, and how far the farthest leaves are apart.
func TestTopologies(t *testing.T) {
	for _, tt := range []struct {
		topology string
		leaves   int
		degree   int // most lateral links of a leaf
		hops     int // between the farthest two
	}{
		{"torus:4x4", 16, 4, 4},
		{"torus:3x3x3", 27, 6, 3},
		{"torus:2x2", 4, 2, 2},
		{"hyperx:4x4", 16, 6, 2},
		{"dragonfly:4", 16, 4, 3},
		{"dragonfly+:4", 16, 0, 3},
	} {
		c, err := Preset("dgx-h100", tt.leaves*2)
		if err != nil {
			t.Fatal(err)
		}
		if err := Describe(Description{NodesPerLeaf: 2, Topology: tt.topology, Oversubscription: 1}, c); err != nil {
			t.Errorf("%s: %v", tt.topology, err)
			continue
		}
		degree := make([]int, len(c.Network.Switches))
		for i := range c.Network.Links {
			if l := &c.Network.Links[i]; !l.A.ToHosts() && !l.B.ToHosts() &&
				c.Network.Switches[l.A.Switch].Tier == c.Network.Switches[l.B.Switch].Tier &&
				c.Network.Switches[l.A.Switch].Tier == cluster.Leaf {
				degree[l.A.Switch]++
				degree[l.B.Switch]++
			}
		}
		most := 0
		for _, n := range degree {
			most = max(most, n)
		}
		hops := 0
		routes := cluster.NewRoutes(c)
		nic := c.Types[0].Of(cluster.NIC)[0]
		for h := 0; h < len(c.Hosts); h += 2 {
			legs, _, ok := routes.Between(0, nic, h, nic)
			if !ok {
				t.Errorf("%s: no path from node0 to %s", tt.topology, c.Hosts[h].Name)
			}
			hops = max(hops, len(legs)-2)
		}
		if most != tt.degree || hops != tt.hops {
			t.Errorf("%s: %d links of a leaf, %d hops; want %d and %d", tt.topology, most, hops, tt.degree, tt.hops)
		}
	}
	for _, bad := range []string{"ring:4", "torus", "torus:4x", "torus:4x0", "dragonfly:2x2", "rail-only:3"} {
		if _, err := parseTopology(bad); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
	// Rails that nothing joins: a leaf of one rail reaches none of another.
	c, err := Preset("dgx-h100", 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := Describe(Description{NodesPerLeaf: 32, Rails: 8, Topology: "rail-only"}, c); err != nil {
		t.Fatal(err)
	}
	routes, nics := cluster.NewRoutes(c), c.Types[0].Of(cluster.NIC)
	if _, _, ok := routes.Between(0, nics[0], 40, nics[0]); !ok {
		t.Error("no path inside a rail")
	}
	if _, _, ok := routes.Between(0, nics[0], 40, nics[1]); ok {
		t.Error("a path between rails")
	}
}
