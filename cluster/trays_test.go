package cluster

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/unit"
)

// rack is a synthetic NVLink domain: trays of one NUMA domain with two GPUs and
// two NICs, and one NVSwitch for all.
func rack(trays int) *NodeType {
	t := &NodeType{Name: "rack", Preset: "some", Trays: trays, Tree: Spec}
	var gpus []int
	for tray := range trays {
		numa := t.Add(Device{Kind: NUMA, Index: 0, Name: fmt.Sprintf("numa%d", tray), Parent: -1, Tray: tray})
		for k := range 2 {
			root := t.Add(Device{Kind: RootComplex, Index: -1, Parent: numa, Tray: tray})
			t.Connect(Link{A: numa, B: root, Kind: OnDie})
			g := t.Add(Device{Kind: GPU, Index: k, Name: fmt.Sprintf("gpu%d", 2*tray+k), Parent: root, Tray: tray})
			n := t.Add(Device{
				Kind: NIC, Index: k, Name: fmt.Sprintf("nic%d", 2*tray+k), Parent: root, Tray: tray,
				NIC: &NICInfo{Kind: InfiniBand, Ports: []Port{{Num: 1, Rate: FromRead(400*unit.Gbps, "test")}}},
			})
			t.Connect(Link{A: root, B: g, Kind: PCIe, Lanes: 16})
			t.Connect(Link{A: root, B: n, Kind: PCIe, Lanes: 16})
			gpus = append(gpus, g)
		}
	}
	sw := t.Add(Device{Kind: NVSwitch, Index: -1, Parent: -1})
	for _, g := range gpus {
		t.Connect(Link{A: g, B: sw, Kind: NVLink, Lanes: 18, Rate: FromSpec(900*unit.GBps, "test")})
	}
	return t
}

// racks is a cluster of two racks of three trays with a plain host between them:
// NIC 0 of every tray on leaf0, NIC 1 on leaf1, by one link per NIC, and all
// hosts by an unknown NIC on "mgmt".
func racks() *Cluster {
	c := &Cluster{
		Name: "racks", Types: []*NodeType{twoSocket(false), rack(3)},
		Hosts: []Host{{Name: "r0", Type: 1}, {Name: "plain"}, {Name: "r1", Type: 1}, {Name: "blank", Type: -1}},
	}
	c.Network.Switches = []Switch{{Name: "leaf0"}, {Name: "leaf1"}, {Name: "mgmt"}}
	both := []Span{{0, 1}, {2, 1}}
	for nic := range 6 {
		c.Network.Links = append(c.Network.Links, NetLink{
			A: AtSwitch(nic%2, 10+nic), B: End{Switch: -1, Hosts: both, NIC: nic}, Speed: "4xNDR",
		})
	}
	c.Network.Links = append(c.Network.Links,
		NetLink{A: AtSwitch(0, 1), B: End{Switch: -1, Hosts: []Span{{0, 4}}, NIC: 1}},
		NetLink{A: AtSwitch(2, 0), B: End{Switch: -1, Hosts: []Span{{0, 4}}, NIC: -1}, Count: 4},
		NetLink{A: AtSwitch(2, 7), B: End{Switch: -1, NIC: -1}},
		NetLink{A: AtSwitch(2, 0), B: AtSwitch(0, 0), Count: 9})
	return c
}

// ends writes links as "leaf0:10 0+1,4+1/nic0 x2".
func ends(c *Cluster) string {
	var b strings.Builder
	one := func(e End) {
		if !e.ToHosts() {
			fmt.Fprintf(&b, "%s:%d", c.Network.Switches[e.Switch].Name, e.Port)
			return
		}
		for i, s := range e.Hosts {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%d+%d", s.First, s.N)
		}
		fmt.Fprintf(&b, "/nic%d", e.NIC)
	}
	for _, l := range c.Network.Links {
		one(l.A)
		b.WriteByte(' ')
		one(l.B)
		fmt.Fprintf(&b, " x%d\n", l.Cables())
	}
	return b.String()
}

func TestByTray(t *testing.T) {
	c := racks()
	c.Hosts[2].IDs = []Identity{
		{Device: "gpu3", UUID: "GPU-3"},
		{Device: "nic5", Port: 1, GUID: "5"},
		{Device: "nvswitch0", UUID: "S"},
		{Device: "gpu9", UUID: "GPU-9"},
	}
	before := ends(c)
	got := c.ByTray()
	if ends(c) != before || len(c.Hosts) != 4 || c.Types[1].Trays != 3 || len(c.Network.Switches) != 3 {
		t.Error("the cluster itself changed")
	}
	var hosts []string
	for _, h := range got.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s/%d", h.Name, h.Type))
	}
	if want := "r0-t00/1 r0-t01/1 r0-t02/1 plain/0 r1-t00/1 r1-t01/1 r1-t02/1 blank/-1"; strings.Join(hosts, " ") != want {
		t.Errorf("hosts %v; want %s", hosts, want)
	}
	if a, b := fmt.Sprint(got.Hosts[5].IDs),
		fmt.Sprint(got.Hosts[6].IDs); a != "[{gpu1 GPU-3 0  0 map[]}]" || b != "[{nic1  1 5 0 map[]}]" {
		t.Errorf("identities %s and %s", a, b)
	}
	if want := `leaf0:10 0+1,4+1/nic0 x1
leaf1:11 0+1,4+1/nic1 x1
leaf0:12 1+1,5+1/nic0 x1
leaf1:13 1+1,5+1/nic1 x1
leaf0:14 2+1,6+1/nic0 x1
leaf1:15 2+1,6+1/nic1 x1
leaf0:1 0+1,3+2,7+1/nic1 x1
mgmt:0 0+3,4+3/nic-1 x2
mgmt:0 3+1,7+1/nic-1 x4
mgmt:7 /nic-1 x1
mgmt:0 leaf0:0 x9
r0:0 0+3/nic-1 x1
r1:0 4+3/nic-1 x1
`; ends(got) != want {
		t.Errorf("links\n%swant\n%s", ends(got), want)
	}
	if sw := got.Network.Switches[4]; !sw.Domain || sw.Name != "r1" || sw.Tier != Leaf || sw.Rail != -1 {
		t.Errorf("grouping %+v", sw)
	}
	if s := got.Summary(); s.Nodes != 8 || s.GPUs != 2*6+6 || s.NICs != 2*6+2 || s.Switches != 3 {
		t.Errorf("%+v", s)
	}
	if got.ByTray() != got {
		t.Error("a cluster of trays is split again")
	}
}

// Equal trays share a type; one that differs has its own.
func TestByTrayTypes(t *testing.T) {
	c := racks()
	r := c.Types[1]
	r.Pairs = []Pair{
		{A: r.ByName("gpu2"), B: r.ByName("gpu3"), P2P: Yes}, {A: r.ByName("gpu0"), B: r.ByName("gpu3"), P2P: Yes},
	}
	r.Devices[r.ByName("gpu5")].Model = FromRead("odd", "test")
	got := c.ByTray()
	if len(got.Types) != 4 || got.Types[1].Name != "rack-tray" || got.Types[3].Name != "rack-tray-t02" ||
		got.Hosts[6].Type != 3 {
		for _, n := range got.Types {
			t.Log(n.Name)
		}
		t.Fatalf("%d types; hosts %v", len(got.Types), got.Hosts)
	}
	// The middle tray has a measured pair that the first has not.
	if len(got.Types[1].Pairs) != 0 || len(got.Types[2].Pairs) != 1 || got.Types[2].Name != "rack-tray-t01" {
		t.Errorf("pairs %v and %v in %s", got.Types[1].Pairs, got.Types[2].Pairs, got.Types[2].Name)
	}
	for _, n := range got.Types {
		if err := n.Check(); err != nil {
			t.Error(err)
		}
	}
	n := got.Types[2]
	var names []string
	for i := range n.Devices {
		names = append(names, n.Devices[i].Name)
	}
	if want := "numa0 root0 gpu0 nic0 root1 gpu1 nic1 nvswitch0"; strings.Join(names, " ") != want || n.Trays != 0 ||
		n.Preset != "" || n.Devices[5].Tray != 0 {
		t.Errorf("%v; want %s; %+v", names, want, n)
	}
	if len(n.Links) != 2+4+2 {
		t.Errorf("%d links", len(n.Links))
	}
}

// Inside a tray GPUs still speak NVLink; to another tray of their rack they go
// over the NICs, because a grouping carries no traffic.
func TestByTrayRoutes(t *testing.T) {
	c := racks()
	whole := NewRoutes(c)
	n := c.Types[1]
	if got := whole.Path(Place{0, n.ByName("gpu0")}, Place{0, n.ByName("gpu2")}).Class.String(); got != "NV18" {
		t.Errorf("in the rack: %s", got)
	}
	split := c.ByTray()
	r := NewRoutes(split)
	g := split.Types[1].ByName("gpu0")
	if got := r.Path(Place{0, g}, Place{0, split.Types[1].ByName("gpu1")}).Class.String(); got != "NV18" {
		t.Errorf("in a tray: %s", got)
	}
	p := r.Path(Place{0, g}, Place{1, g})
	if p.Reach != OverLeaf || p.Class.Type == NV {
		t.Errorf("between trays: %v %v %s", p.Class, p.Reach, p.Via)
	}
	for host, want := range []string{"leaf0", "leaf0", "leaf0"} {
		sw, _ := r.Leaf(host, split.Types[1].ByName("nic0"))
		if sw < 0 || split.Network.Switches[sw].Name != want {
			t.Errorf("tray %d: nic0 on switch %d; want %s", host, sw, want)
		}
	}
}

func TestByTrayOdd(t *testing.T) {
	same := &Cluster{Types: []*NodeType{twoSocket(true)}, Hosts: []Host{{Name: "a"}}}
	if same.ByTray() != same {
		t.Error("a cluster without trays is copied")
	}
	unused := racks()
	unused.Hosts = unused.Hosts[1:2]
	if unused.ByTray() != unused {
		t.Error("no host has trays, and yet the cluster is copied")
	}
	// Trays that nobody described are no hosts, however many are said to be there.
	few := rack(2)
	few.Trays = 1 << 40
	few.Devices[0].Tray = -1
	few.Devices[few.ByName("gpu3")].Tray = 1 << 39
	c := &Cluster{Types: []*NodeType{few}, Hosts: []Host{{Name: "r0"}, {Name: ""}, {Name: "x", Type: 9}}}
	c.Network.Switches = []Switch{{Name: "r0"}}
	c.Network.Links = []NetLink{{A: AtSwitch(0, 0), B: End{Switch: -1, Hosts: []Span{{-2, 99}}, NIC: 7}}}
	got := c.ByTray()
	if len(got.Hosts) != 7 || got.Hosts[2].Name != "r0-t549755813888" || got.Hosts[3].Name != "" ||
		got.Hosts[0].Name != "r0-t000000000000" {
		t.Errorf("%v", got.Hosts)
	}
	if got.Network.Switches[1].Name != "r0 (group)" ||
		!strings.HasPrefix(ends(got), "r0:0 0+6/nic-1 x1\nr0:0 6+1/nic7 x1\n") {
		t.Errorf("%s", ends(got))
	}
	for _, n := range got.Types {
		if err := n.Check(); err != nil {
			t.Error(err)
		}
	}
	all0 := rack(2)
	for i := range all0.Devices {
		all0.Devices[i].Tray = 0
	}
	if one := (&Cluster{Types: []*NodeType{all0}, Hosts: []Host{{Name: "a"}}}); one.ByTray() != one {
		t.Error("one known tray is split off")
	}
}
