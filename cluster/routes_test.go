package cluster

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/unit"
)

// twoSocket is a synthetic node: two sockets with a NUMA domain each; per socket
// one PCIe switch with two GPUs and a NIC, one GPU on a root port of its own, and
// NVLink through a switch when asked.
func twoSocket(nvswitch bool) *NodeType {
	t := &NodeType{Name: "two-socket", Tree: Read}
	var numas, gpus []int
	for s := range 2 {
		sock := t.Add(Device{Kind: Socket, Index: s, Parent: -1})
		numa := t.Add(Device{Kind: NUMA, Index: s, Parent: sock})
		root := t.Add(Device{Kind: RootComplex, Index: -1, Parent: numa})
		sw := t.Add(Device{Kind: PCISwitch, Index: -1, Parent: root})
		t.Connect(Link{A: numa, B: root, Kind: OnDie})
		t.Connect(Link{A: root, B: sw, Kind: PCIe, Lanes: 16, Rate: FromSpec(32*unit.GBps, "test")})
		for i := range 2 {
			g := t.Add(Device{Kind: GPU, Index: 3*s + i, Parent: sw})
			t.Connect(Link{A: sw, B: g, Kind: PCIe, Lanes: 16, Rate: FromSpec(32*unit.GBps, "test")})
			gpus = append(gpus, g)
		}
		n := t.Add(Device{
			Kind: NIC, Index: s, Label: fmt.Sprintf("mlx5_%d", s), Parent: sw,
			NIC: &NICInfo{Kind: InfiniBand, Ports: []Port{{Num: 1, Rate: FromRead(200*unit.Gbps, "test")}}},
		})
		t.Connect(Link{A: sw, B: n, Kind: PCIe, Lanes: 16, Rate: FromSpec(32*unit.GBps, "test")})
		root2 := t.Add(Device{Kind: RootComplex, Index: -1, Parent: numa})
		t.Connect(Link{A: numa, B: root2, Kind: OnDie})
		g := t.Add(Device{Kind: GPU, Index: 3*s + 2, Parent: root2})
		t.Connect(Link{A: root2, B: g, Kind: PCIe, Lanes: 16, Rate: FromSpec(32*unit.GBps, "test")})
		gpus = append(gpus, g)
		numas = append(numas, numa)
	}
	t.Connect(Link{A: numas[0], B: numas[1], Kind: SMP, Rate: FromAssumed(20*unit.GBps, "test")})
	if nvswitch {
		s := t.Add(Device{Kind: NVSwitch, Index: -1, Parent: -1})
		for _, g := range gpus {
			t.Connect(Link{A: g, B: s, Kind: NVLink, Lanes: 12, Rate: FromSpec(300*unit.GBps, "test"), Duplex: 600 * unit.GBps})
		}
	}
	return t
}

func TestMatrixWords(t *testing.T) {
	for _, tt := range []struct {
		nvswitch bool
		a, b     string
		want     string
	}{
		{false, "gpu0", "gpu0", "X"},
		{false, "gpu0", "gpu1", "PIX"},
		{false, "gpu0", "gpu2", "NODE"},
		{false, "gpu0", "gpu3", "SYS"},
		{false, "gpu0", "nic0", "PIX"},
		{false, "gpu2", "nic0", "NODE"},
		{false, "gpu0", "nic1", "SYS"},
		{false, "nic0", "nic1", "SYS"},
		{true, "gpu0", "gpu5", "NV12"},
		{true, "gpu0", "nic1", "SYS"},
	} {
		m := twoSocket(tt.nvswitch).Matrix()
		at := func(name string) int {
			for i, n := range m.Names {
				if n == name {
					return i
				}
			}
			t.Fatalf("no %s in %v", name, m.Names)
			return 0
		}
		if got := m.Class[at(tt.a)][at(tt.b)]; got != tt.want {
			t.Errorf("nvswitch=%v %s–%s: %s, want %s", tt.nvswitch, tt.a, tt.b, got, tt.want)
		}
	}
}

func TestSwitchDepth(t *testing.T) {
	nt := &NodeType{}
	numa := nt.Add(Device{Kind: NUMA, Parent: -1})
	root := nt.Add(Device{Kind: RootComplex, Parent: numa})
	top := nt.Add(Device{Kind: PCISwitch, Parent: root})
	low := nt.Add(Device{Kind: PCISwitch, Parent: top})
	a := nt.Add(Device{Kind: GPU, Parent: low})
	b := nt.Add(Device{Kind: GPU, Parent: low})
	c := nt.Add(Device{Kind: GPU, Parent: top})
	d := nt.Add(Device{Kind: GPU, Parent: root})
	e := nt.Add(Device{Kind: NIC, Parent: root, PCI: "0000:41:00.0"})
	f := nt.Add(Device{Kind: NIC, Parent: root, PCI: "0000:41:00.1"})
	n := newNodeRoutes(nt)
	for _, tt := range []struct {
		x, y int
		want string
	}{{a, b, "PIX"}, {a, c, "PXB"}, {a, d, "PHB"}, {e, f, "PIX"}, {d, e, "PHB"}, {a, numa, "PHB"}} {
		if _, got := n.path(tt.x, tt.y); got.String() != tt.want {
			t.Errorf("%s–%s: %v, want %s", nt.Devices[tt.x].Name, nt.Devices[tt.y].Name, got, tt.want)
		}
	}
}

// railCluster has four nodes on two leaves per rail and a spine.
func railCluster(rails int) *Cluster {
	c := &Cluster{Name: "rails", Types: []*NodeType{twoSocket(true)}}
	for i := range 4 {
		c.Hosts = append(c.Hosts, Host{Name: fmt.Sprintf("node%d", i)})
	}
	net := &c.Network
	net.Rails = rails
	spine := 0
	net.Switches = append(net.Switches, Switch{Name: "spine", Tier: Spine, Rail: -1})
	for rail := range max(rails, 1) {
		for l := range 2 {
			leaf := len(net.Switches)
			net.Switches = append(net.Switches, Switch{Name: fmt.Sprintf("leaf%d.%d", rail, l), Tier: Leaf, Rail: rail})
			nic := rail
			if rails <= 1 {
				nic = -1
			}
			net.Links = append(net.Links,
				NetLink{
					A: AtSwitch(leaf, 0), B: End{Switch: -1, Hosts: []Span{{2 * l, 2}}, NIC: nic},
					Rate: FromSpec(200*unit.Gbps, "test"),
				},
				NetLink{A: AtSwitch(spine, 0), B: AtSwitch(leaf, 0), Count: 2, Rate: FromSpec(200*unit.Gbps, "test")})
		}
	}
	return c
}

func TestPathsBetweenNodes(t *testing.T) {
	for _, tt := range []struct {
		rails      int
		from, to   string
		class      string
		reach      Reach
		via        string
		bottleneck string
	}{
		{1, "node0/gpu0", "node1/gpu0", "PIX", OverLeaf, "near NIC, leaf only", "mlx5_0"},
		{1, "node0/gpu0", "node2/gpu0", "PIX", OverSpine, "near NIC, via spine", "mlx5_0"},
		{1, "node0/gpu2", "node1/gpu0", "NODE", OverLeaf, "NIC through the host (NODE), leaf only", "mlx5_0"},
		{2, "node0/gpu0", "node1/gpu3", "PXN", OverLeaf, "NVLink hop to the rail's NIC (PXN), leaf only", "mlx5_1"},
		{1, "node0/nic0", "node2/nic1", "NET", OverSpine, "via spine", "mlx5_0"},
		{2, "node0/gpu3", "node3/gpu3", "PIX", OverSpine, "rail-local NIC, via spine", "mlx5_1"},
	} {
		c := railCluster(tt.rails)
		r := NewRoutes(c)
		p := r.Path(place(t, c, tt.from), place(t, c, tt.to))
		if p.Class.String() != tt.class || p.Reach != tt.reach || p.Via != tt.via ||
			!strings.Contains(p.Bottleneck(), tt.bottleneck) {
			t.Errorf("%d rails, %s → %s: class %v, reach %v, via %q, bottleneck %q; want %s, %v, %q, %q",
				tt.rails, tt.from, tt.to, p.Class, p.Reach, p.Via, p.Bottleneck(), tt.class, tt.reach, tt.via, tt.bottleneck)
		}
		if p.Rate.Value != 25*unit.GBps {
			t.Errorf("%s → %s: rate %v, want 25 GB/s", tt.from, tt.to, p.Rate.Value)
		}
	}
}

func place(t *testing.T, c *Cluster, s string) Place {
	t.Helper()
	host, dev, _ := strings.Cut(s, "/")
	h := c.HostIndex(host)
	d := c.TypeOf(h).ByName(dev)
	if h < 0 || d < 0 {
		t.Fatalf("no %s", s)
	}
	return Place{h, d}
}

func TestMeasuredPairBeatsSpec(t *testing.T) {
	c := railCluster(1)
	nt := c.Types[0]
	a, b := nt.ByName("gpu0"), nt.ByName("gpu1")
	nt.Pairs = []Pair{{A: a, B: b, Rate: FromMeasured(274*unit.GBps, "p2p")}}
	p := NewRoutes(c).Path(Place{0, a}, Place{0, b})
	if p.Rate.Value != 274*unit.GBps || p.Rate.Origin != Measured || p.Via != "NVLink" {
		t.Errorf("rate %v %v via %s; want the measured 274 GB/s over NVLink", p.Rate.Value, p.Rate.Origin, p.Via)
	}
}

func TestPeerAccessRefusedGoesThroughTheHost(t *testing.T) {
	c := &Cluster{Types: []*NodeType{twoSocket(false)}, Hosts: []Host{{Name: "n"}}}
	nt := c.Types[0]
	a, b := nt.ByName("gpu0"), nt.ByName("gpu1")
	if p := NewRoutes(c).Path(Place{0, a}, Place{0, b}); p.Via != "P2P over PCIe" {
		t.Errorf("via %q", p.Via)
	}
	nt.Pairs = []Pair{{A: a, B: b, P2P: No, Why: "CNS"}}
	if p := NewRoutes(c).Path(Place{0, a}, Place{0, b}); p.Via != "through the host" {
		t.Errorf("via %q with peer access refused", p.Via)
	}
}

func TestUnknownPlacesHaveNoPath(t *testing.T) {
	c := &Cluster{Hosts: []Host{{Name: "a", Type: -1}, {Name: "b", Type: -1}}}
	p := NewRoutes(c).Path(Place{0, 0}, Place{1, 0})
	if p.Slowest != -1 || p.Class.Type != Apart {
		t.Errorf("%+v", p)
	}
}
