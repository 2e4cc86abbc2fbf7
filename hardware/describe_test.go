package hardware

import (
	"fmt"
	"math"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// built makes the node of a tree.
func built(gpu string, nic *card, tree string) *cluster.NodeType {
	r := &nodeRow{Tree: treeOf("%s", tree), CPU: "Intel Xeon test", CPUID: cpuSpec{"x86_64", "GenuineIntel", 6, 143}}
	return r.node(mustGPU(gpu), nic, fromPreset)
}

// hosts makes n hosts of one type with nics network cards of a kind.
func hosts(n, nics int, kind cluster.NetKind, speed string) *cluster.Cluster {
	t := built("", &card{Kind: kind, Speed: speed, Slot: slot{5, 16}}, fmt.Sprintf("socket(root(%d*nic))", nics))
	t.Name = "box"
	c := &cluster.Cluster{Types: []*cluster.NodeType{t}, Hosts: make([]cluster.Host, n)}
	Complete(c)
	return c
}

// capacity sums, per switch, the cables towards hosts and towards upper tiers.
func capacity(c *cluster.Cluster) (down, up []float64) {
	down, up = make([]float64, len(c.Network.Switches)), make([]float64, len(c.Network.Switches))
	for _, l := range c.Network.Links {
		r := l.Rate.Value.GBps() * float64(l.Cables())
		if l.B.ToHosts() {
			for _, s := range l.B.Hosts {
				down[l.A.Switch] += r * float64(s.N)
			}
			continue
		}
		up[l.B.Switch] += r
		down[l.A.Switch] += r
	}
	return down, up
}

// TestDescribe checks counts and capacities: every NIC hangs on exactly one
// leaf, and a full leaf's uplinks carry its hosts' rate divided by the ratio.
func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		name               string
		n, nics            int
		d                  Description
		leaves, spines, up int // spines and core entries; cables of a leaf
	}{
		{"one leaf", 8, 1, Description{NodesPerLeaf: 16}, 1, 0, 0},
		{"two leaves", 32, 1, Description{NodesPerLeaf: 16}, 2, 1, 16},
		{"two to one", 32, 1, Description{NodesPerLeaf: 16, Oversubscription: 2}, 2, 1, 8},
		{"three to one", 32, 1, Description{NodesPerLeaf: 16, Oversubscription: 3}, 2, 1, 6},
		{"rails", 40, 8, Description{Rails: 8, NodesPerLeaf: 32}, 16, 1, 32},
		{"two rails of eight NICs", 40, 8, Description{Rails: 2, NodesPerLeaf: 8}, 10, 1, 32},
		{"few nodes with rails", 2, 8, Description{Rails: 8, NodesPerLeaf: 32}, 8, 1, 2},
		{"whole nodes", 10, 4, Description{NodesPerLeaf: 5}, 2, 1, 20},
		{"one node, asked", 1, 2, Description{Rails: 2, Always: true}, 2, 1, 1},
		{"pods by size", 4096, 1, Description{NodesPerLeaf: 32, Radix: 64}, 128, 5, 32},
		{"pods asked for", 64, 1, Description{NodesPerLeaf: 8, LeavesPerPod: 4}, 8, 3, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := hosts(tt.n, tt.nics, cluster.InfiniBand, "4xNDR")
			if err := Describe(tt.d, c); err != nil {
				t.Fatal(err)
			}
			leaves := 0
			for _, s := range c.Network.Switches {
				if s.Tier == cluster.Leaf {
					leaves++
				}
			}
			if leaves != tt.leaves || len(c.Network.Switches)-leaves != tt.spines {
				t.Errorf("%d leaves and %d above, want %d and %d", leaves, len(c.Network.Switches)-leaves, tt.leaves, tt.spines)
			}
			checkCables(t, c, tt.nics)
			down, up := capacity(c)
			ratio := math.Max(1, tt.d.Oversubscription)
			if tt.up > 0 && !near(up[0]*ratio, down[0], 1e-9) {
				t.Errorf("leaf 0: %g GB/s down, %g up, ratio %g", down[0], up[0], ratio)
			}
			for _, l := range c.Network.Links {
				if !l.B.ToHosts() && l.B.Switch == 0 && l.Cables() != tt.up {
					t.Errorf("leaf 0 has %d cables up, want %d", l.Cables(), tt.up)
				}
			}
		})
	}
}

func checkCables(t *testing.T, c *cluster.Cluster, nics int) {
	t.Helper()
	seen := make(map[[2]int]int)
	for _, l := range c.Network.Links {
		for _, s := range l.B.Hosts {
			for h := s.First; h < s.First+s.N; h++ {
				seen[[2]int{h, l.B.NIC}]++
			}
		}
		if l.Rate.Value <= 0 || l.Rate.Value > 50*unit.GBps*1.0001 {
			t.Errorf("a cable of %v", l.Rate.Value)
		}
	}
	for h := range c.Hosts {
		for k := range nics {
			if seen[[2]int{h, k}] != 1 {
				t.Fatalf("host %d NIC %d hangs on %d leaves", h, k, seen[[2]int{h, k}])
			}
		}
	}
	if len(seen) != len(c.Hosts)*nics {
		t.Errorf("%d cables to hosts, want %d", len(seen), len(c.Hosts)*nics)
	}
}

func TestDescribeDefaults(t *testing.T) {
	c := hosts(100, 1, cluster.InfiniBand, "4xNDR")
	if err := Describe(Description{}, c); err != nil {
		t.Fatal(err)
	}
	n := c.Network
	if n.Kind != cluster.InfiniBand || len(n.Switches) != 5 || n.Switches[0].Model != "QM9700" ||
		n.Switches[0].Ports != 64 || n.Links[0].Speed != "4xNDR" {
		t.Errorf("%d switches, kind %s, first %+v", len(n.Switches), n.Kind, n.Switches[0])
	}
	if len(c.Warnings) != 1 || n.Oversubscription.Origin != cluster.Assumed {
		t.Errorf("what was assumed is not said: %v, %+v", c.Warnings, n.Oversubscription)
	}
	if n.Links[0].Latency.Origin != cluster.Assumed || n.Links[0].Latency.Value != 600*unit.Nanosecond {
		t.Errorf("latency %+v; NDR has none published", n.Links[0].Latency)
	}
}

// TestDescribeMixed has two types in turn, one of them without known NICs, and
// one whose second NIC is of another kind.
func TestDescribeMixed(t *testing.T) {
	a := hosts(1, 2, cluster.InfiniBand, "4xHDR").Types[0]
	a.Devices[a.Of(cluster.NIC)[1]].NIC.Kind = cluster.Ethernet
	bare := built("h100", nil, "gpu")
	bare.Name = "bare"
	eth := hosts(1, 1, cluster.Ethernet, "25GbE").Types[0]
	eth.Name = "eth"
	c := &cluster.Cluster{Types: []*cluster.NodeType{a, bare, eth}}
	for i := range 12 {
		c.Hosts = append(c.Hosts, cluster.Host{Type: i%4 - 1})
	}
	if err := Describe(Description{Kind: cluster.InfiniBand, NodesPerLeaf: 4}, c); err != nil {
		t.Fatal(err)
	}
	got := map[int]int{}
	for _, l := range c.Network.Links {
		for _, s := range l.B.Hosts {
			got[l.B.NIC] += s.N
		}
	}
	if got[0] != 3 || got[1] != 0 || got[-1] != 6 {
		t.Errorf("hosts by NIC %v; want 3 on NIC 0 and 6 on an unknown one", got)
	}
	if len(c.Warnings) != 1 || c.Warnings[0].Where != "eth" {
		t.Errorf("warnings %v; want one about the Ethernet nodes", c.Warnings)
	}
}

func TestDescribeErrors(t *testing.T) {
	for _, d := range []Description{
		{Rails: -1},
		{Rails: 5000},
		{NodesPerLeaf: -1},
		{LeavesPerPod: -2},
		{Oversubscription: -2},
		{Oversubscription: math.NaN()},
		{Oversubscription: 1e9},
		{Rate: -1},
		{Speed: "400"},
		{Speed: "warp"},
		{Radix: -1},
		{Radix: 1 << 20},
	} {
		if err := Describe(d, hosts(4, 1, cluster.InfiniBand, "4xHDR")); err == nil {
			t.Errorf("%+v: no error", d)
		}
	}
	if err := Describe(Description{Kind: cluster.RoCE, Speed: "400GbE"}, &cluster.Cluster{}); err != nil {
		t.Errorf("no hosts: %v", err)
	}
	c := &cluster.Cluster{Hosts: make([]cluster.Host, 40)}
	for i := range c.Hosts {
		c.Hosts[i].Type = -1
	}
	if err := Describe(Description{Speed: "4xHDR"}, c); err != nil || len(c.Network.Switches) != 3 {
		t.Errorf("hosts nobody described: %v, %d switches", err, len(c.Network.Switches))
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add(40, 8, 8, 32, 0, 1.0, 64)
	f.Add(7, 3, 2, 0, 1, 2.5, 3)
	f.Fuzz(func(t *testing.T, n, nics, rails, perLeaf, perPod int, over float64, radix int) {
		if n < 0 || n > 300 || nics < 0 || nics > 20 {
			return
		}
		c := hosts(n, nics, cluster.InfiniBand, "4xNDR")
		d := Description{Rails: rails, NodesPerLeaf: perLeaf, LeavesPerPod: perPod, Oversubscription: over, Radix: radix}
		if err := Describe(d, c); err != nil || len(c.Network.Switches) == 0 {
			return
		}
		if nics > 0 {
			checkCables(t, c, nics)
		}
		for _, l := range c.Network.Links {
			if l.A.Switch < 0 || l.A.Switch >= len(c.Network.Switches) ||
				!l.B.ToHosts() && l.B.Switch >= len(c.Network.Switches) {
				t.Fatalf("link %+v", l)
			}
		}
	})
}
