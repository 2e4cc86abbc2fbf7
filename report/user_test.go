package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/clusterfile"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/svg"
	"busbar.dev/unit"
)

// What people stumbled over when they read the reports, one test each.

func text(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, c, TextOptions{Width: 200}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func has(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, got)
		}
	}
}

func hasNot(t *testing.T, got string, bad ...string) {
	t.Helper()
	for _, w := range bad {
		if strings.Contains(got, w) {
			t.Errorf("%q in\n%s", w, got)
		}
	}
}

// strangers is a node of which only the devices are known, as a log shows it.
func strangers(gpus, nics int) *cluster.Cluster {
	m := newMachine("strangers")
	for range gpus {
		m.add(cluster.GPU, -1, cluster.Device{})
	}
	for range nics {
		m.add(cluster.NIC, -1, cluster.Device{NIC: &cluster.NICInfo{Kind: cluster.OmniPath}})
	}
	return alone(m.NodeType, 1)
}

func TestUnknownPathsAreNotNone(t *testing.T) {
	row := func(c *cluster.Cluster) []string {
		_, table, _ := strings.Cut(text(t, c), "when all send\n")
		line, _, _ := strings.Cut(table, "\n")
		return strings.Fields(line)
	}
	for name, x := range map[string]struct {
		c    *cluster.Cluster
		want []string
	}{
		"unknown paths": {strangers(1, 4), []string{"gpu0", "?", "?", "?", "?", "?"}},
		"no NIC":        {strangers(2, 0), []string{"gpu0", "?", "?", "none", "–", "–"}},
	} {
		if got := row(x.c); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	c := alone(dgxH100(), 1)
	nic := c.Types[0].Devices[c.Types[0].ByName("nic0")].NIC
	nic.Ports[0].Rate = cluster.Fact[unit.Rate]{}
	if got := row(c); got[len(got)-1] != "?" {
		t.Errorf("a NIC of unknown rate: %q, want ? at the end", got)
	}
	for _, n := range c.Types[0].Of(cluster.NIC) {
		c.Types[0].Devices[n].NIC.Ports[0].State = cluster.Down
	}
	if got := strings.Join(row(c), " "); !strings.Contains(got, "none up") {
		t.Errorf("all NICs down: %q", got)
	}
}

func TestAnswersStandOutsideOrigins(t *testing.T) {
	m := newMachine("hca")
	for _, gdr := range []cluster.Tri{cluster.Yes, cluster.No, cluster.Maybe} {
		m.add(cluster.NIC, -1, cluster.Device{NIC: &cluster.NICInfo{
			Kind: cluster.InfiniBand, GDR: gdr,
			Ports: []cluster.Port{{Num: 1, Rate: cluster.FromRead(100*unit.Gbps, "ibstat"), State: cluster.Up}},
		}})
	}
	has(t, text(t, alone(m.NodeType, 1)), "100 Gb/s · up [read] · GDR-capable\n", "100 Gb/s · up [read] · no GDR\n",
		"100 Gb/s · up [read]\n")
}

// otherSocket is what nvidia-smi shows of four GPUs on one socket and a NIC on
// another whose number it does not say.
func otherSocket(far int) *cluster.NodeType {
	m := newMachine("other-socket")
	m.Tree = cluster.Assumed
	n := m.add(cluster.NUMA, -1, cluster.Device{Index: 1})
	for range 4 {
		m.gpu(n, 16, "", 0, 80, "32-63")
	}
	for range far {
		o := m.add(cluster.NUMA, -1, cluster.Device{})
		m.nic(o, 16, "", "", cluster.RoCE, 100*unit.Gbps)
		m.smp(n, o, 20*unit.GBps)
	}
	return m.NodeType
}

func TestDomainsWithoutNumber(t *testing.T) {
	got := text(t, alone(otherSocket(1), 1))
	has(t, got, "NUMA ? › nic0", "numa1–NUMA ?,")
	hasNot(t, got, "numa2")
	has(t, text(t, alone(otherSocket(2), 1)), "NUMA ?a › nic0", "NUMA ?b › nic1")
	pic := string(draw(t, alone(otherSocket(2), 1)))
	has(t, pic, ">NUMA 1<", ">NUMA ?a<", ">NUMA ?b<")
	if n := strings.Count(pic, ">NUMA 1<"); n != 1 {
		t.Errorf("%d boxes are called NUMA 1", n)
	}
}

// scheduled is a tree as a scheduler knows it: no cable, no rate.
func scheduled(hosts, leaves, groups int) *cluster.Cluster {
	c := &cluster.Cluster{Name: "slurm"}
	net := &c.Network
	for i := range leaves {
		net.Switches = append(net.Switches, cluster.Switch{Name: fmt.Sprintf("leaf%d", 100+i), Tier: cluster.Leaf, Rail: -1})
	}
	for i := range groups {
		net.Switches = append(net.Switches, cluster.Switch{Name: fmt.Sprintf("grp%d", i), Tier: cluster.Spine, Rail: -1})
	}
	for i := range leaves {
		net.Links = append(net.Links,
			cluster.NetLink{
				A: cluster.AtSwitch(i, 0), B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{{First: i * hosts, N: hosts}}},
			},
			cluster.NetLink{A: cluster.AtSwitch(leaves+i*groups/leaves, 0), B: cluster.AtSwitch(i, 0)})
		for h := range hosts {
			c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("peta%d", 10000+i*hosts+h), Type: -1})
		}
	}
	return c
}

func TestSchedulersKnowNoCables(t *testing.T) {
	c := scheduled(20, 20, 2)
	got := text(t, c)
	has(t, got, "20 hosts", "under a spine", "10 leaves")
	hasNot(t, got, "cable", "oversubscribed", "Rates are")
	pic := string(draw(t, c))
	has(t, pic, ">20 hosts each<", ">under a spine<", ">belongs to; no source says by which cables<")
	hasNot(t, pic, "network cable", "0 b/s")
	// A port is enough to make it a cable.
	for i := range c.Network.Links {
		c.Network.Links[i].A.Port = 1
	}
	has(t, text(t, c), "20 cables to hosts", "1 cable")
}

func TestHostsStandUnderTheirLeaves(t *testing.T) {
	pic := draw(t, scheduled(20, 12, 2))
	checkPicture(t, "slurm", pic)
	all, _, _ := shapes(t, pic)
	var leaves, hosts []float64
	for _, s := range all {
		switch {
		case s.kind == "rect" && s.class == "switch leaf":
			leaves = append(leaves, s.box.mid())
		case s.kind == "rect" && s.class == "pod":
			hosts = append(hosts, s.box.mid())
		}
	}
	if len(leaves) != 12 || len(hosts) != 12 {
		t.Fatalf("%d leaves and %d boxes of hosts, want 12 of each", len(leaves), len(hosts))
	}
	for i := range leaves {
		if math.Abs(leaves[i]-hosts[i]) > 1 {
			t.Errorf("hosts %d at %.0f, their leaf at %.0f", i, hosts[i], leaves[i])
		}
	}
	hasNot(t, string(pic), "not drawn")
	has(t, string(pic), ">peta10000–19<", ">peta10220–39<")
	// Where there are too many for one row, each says below which leaf it is.
	pic = draw(t, fabric(160, 40, 2))
	checkPicture(t, "40 leaves", pic)
	has(t, string(pic), ">40 × leaf[0-39]<", ">leaf0 · 4 hosts<", ">leaf39 · 4 hosts<")
	// Where groups have no room for names, the tier of hosts has them.
	has(t, string(draw(t, scheduled(20, 500, 2))), ">peta[10000-19999]<")
}

// TestUnjoinedRailsAreDrawnApart folds the leaves of a network by rail where nothing joins rails, and by their hosts
// where every spine has all rails; by rail, too, where groups of a topology and hosts are too many.
func TestUnjoinedRailsAreDrawnApart(t *testing.T) {
	for topology, want := range map[string][]string{
		"rail-only": {">4 × rail7-leaf[0-3]<", ">rail 7<", ">d[097-128]<", "rails are not joined"},
		"":          {">8 × rail[0-7]-leaf3<", ">4:1 oversubscribed<", ">each box: above the same"},
		// 256 leaves in 64 groups
		"dragonfly:4": {">32 × rail0-leaf[0-31]<", ">rail 7<", ">each box: one rail<"},
	} {
		perLeaf := 32
		if topology == "dragonfly:4" {
			perLeaf = 4
		}
		f, err := clusterfile.Read("rails.yaml", strings.NewReader(fmt.Sprintf(`nodes: [{hosts: "d[001-128]", type: dgx-h100}]
network: {kind: infiniband, speed: NDR, rails: 8, nodes_per_leaf: %d, oversubscription: 4, topology: "%s"}
`, perLeaf, topology)))
		if err != nil {
			t.Fatal(err)
		}
		pic := draw(t, &f.Cluster)
		checkPicture(t, topology, pic)
		has(t, string(pic), want...)
	}
}

func TestOversubscriptionBelowOne(t *testing.T) {
	for _, x := range []struct {
		r    float64
		want string
	}{{0, ""}, {0.25, "no"}, {0.944, "no"}, {0.998, "1:1"}, {1, "1:1"}, {1.06, "1.06:1"}, {2, "2:1"}} {
		if got := overWords(x.r); got != x.want {
			t.Errorf("%v: %q, want %q", x.r, got, x.want)
		}
	}
	c := railed(dgxH100(), 4, 1)
	for i := range c.Network.Links {
		if l := &c.Network.Links[i]; l.B.ToHosts() && i == 0 {
			l.B.Hosts = []cluster.Span{{First: 0, N: 1}} // a leaf that is not full
		}
	}
	for _, x := range []struct {
		stated float64
		want   string
	}{
		{1, "oversubscription 1:1 [spec], less where a leaf is not full"},
		{2, "oversubscription 2:1 [spec] if the leaves were full, now none"},
		{0.5, "oversubscription up to 1:1 (0.5:1 was stated [spec])"},
	} {
		c.Network.Oversubscription = spec(x.stated)
		got := text(t, c)
		has(t, got, x.want)
		hasNot(t, got, "0.25:1")
	}
	hasNot(t, string(draw(t, c)), "0.25:1")
}

func TestMatrixOfNothingIsLeftOut(t *testing.T) {
	got := text(t, strangers(4, 4))
	has(t, got, "Paths between devices are unknown: map the node itself or add its nvidia-smi topo -m.")
	hasNot(t, got, "X     ?", "? unknown")
}

func TestLargeMatrixHasNoNICRows(t *testing.T) {
	m := dgxH100()
	rows := func() int { return strings.Count(text(t, alone(m, 1)), "\n  nic") }
	if n := rows(); n != 8 {
		t.Errorf("16 devices: %d rows of NICs, want 8", n)
	}
	machine{m}.nic(m.ByName("pci0"), 32, "mlx5_9", "ConnectX-7", cluster.InfiniBand, 400*unit.Gbps)
	if n := rows(); n != 0 {
		t.Errorf("17 devices: %d rows of NICs, want none", n)
	}
	has(t, text(t, alone(m, 1)), "nic8")
	var b bytes.Buffer
	if err := Matrix(&b, alone(m, 1)); err != nil {
		t.Fatal(err)
	}
	has(t, b.String(), "\nNIC8")
}

func TestCaptionsAreNotCut(t *testing.T) {
	m := dgxH100()
	for i := range m.Links {
		m.Links[i].Rate.Origin = cluster.Assumed
	}
	pic := draw(t, alone(m, 1))
	checkPicture(t, "assumed", pic)
	has(t, string(pic), ">450 GB/s one direction<", ">assumed<")
}

func TestNamesOfLeavesDiffer(t *testing.T) {
	c := fabric(60, 16, 2)
	for i := range 16 {
		c.Network.Switches[i].Name = fmt.Sprintf("%c09-P1-IBLEAF-LONGNAME-%02d-%02d", 'A'+i%2, i/4, i)
	}
	pic := draw(t, c)
	checkPicture(t, "long names", pic)
	all, _, _ := shapes(t, pic)
	seen := make(map[string]bool)
	for _, s := range all {
		if s.kind == "text" && s.class == "switch leaf" && strings.ContainsAny(s.text, "AB") {
			if seen[s.text] {
				t.Errorf("two leaves are called %s", s.text)
			}
			seen[s.text] = true
		}
	}
	if !seen["A09…00-00"] || !seen["B09…03-15"] {
		t.Errorf("leaves are called %v", seen)
	}
}

func TestShortNames(t *testing.T) {
	for _, x := range []struct{ in, want []string }{
		{[]string{"leaf1"}, []string{"leaf1"}},
		{[]string{"leaf1", "leaf2"}, []string{"leaf1", "leaf2"}},
		{[]string{"dc-a-leaf-1", "dc-a-leaf-2"}, []string{"…1", "…2"}},
		{[]string{"l1.ib.site", "l2.ib.site"}, []string{"l1…", "l2…"}},
		{[]string{"A-P-1", "B-P-2"}, []string{"A…1", "B…2"}},
		{[]string{"a-1", "b"}, []string{"a-1", "b"}},
		{[]string{"same-1", "same-1"}, []string{"same-1", "same-1"}},
		{[]string{"", ""}, []string{"", ""}},
	} {
		if got := cluster.ShortNames(x.in); !slices.Equal(got, x.want) {
			t.Errorf("%q: %q, want %q", x.in, got, x.want)
		}
	}
}

func TestFitList(t *testing.T) {
	names := []string{"node0001", "node0002", "node0003", "node0004"}
	for w, want := range map[float64]string{
		200: "4 × node[0001-0004]", 115: "4 × node0001–04", 104: "4 × node0001, …", 80: "4 × no…1, …",
	} {
		got := fitList("4 × ", names, nameType, w)
		if got != want || svg.TextWidth(got, nameType) > w {
			t.Errorf("%v: %q of width %v, want %q", w, got, svg.TextWidth(got, nameType), want)
		}
	}
}

func TestFarNICIsMarked(t *testing.T) {
	pic := string(draw(t, alone(otherSocket(1), 1)))
	if n := strings.Count(pic, ">across sockets<"); n != 4 {
		t.Errorf("%d GPUs are marked, want 4", n)
	}
	has(t, pic, "nearest NIC is across CPU sockets")
	hasNot(t, string(draw(t, alone(dgxH100(), 1))), "across sockets", "nearest NIC is across")
}

func TestNameOfTheKindIsSaidOnce(t *testing.T) {
	m := newMachine("cray")
	m.nic(-1, 0, "cxi0", "Slingshot Cassini", cluster.Slingshot, 200*unit.Gbps)
	c := alone(m.NodeType, 2)
	c.Network.Kind, c.Network.Name = cluster.Slingshot, "Slingshot"
	got := text(t, c)
	hasNot(t, got, "Slingshot · Slingshot", "Cassini · Slingshot")
	has(t, got, "\n  Slingshot\n")
}

func TestHostsAreSorted(t *testing.T) {
	c := scheduled(3, 2, 1)
	for i, n := range []string{"r14i7n7", "r14i7n3", "r8i1n10", "n10", "n9", "n2"} {
		c.Hosts[i].Name = n
	}
	has(t, text(t, c), "n[2,9-10],r8i1n10,r14i7n[3,7]")
	all, _, _ := shapes(t, draw(t, c))
	var order []string
	for _, s := range all {
		if s.kind == "text" && s.class == "" && !strings.Contains(s.text, " ") && s.text != "slurm" {
			order = append(order, s.text)
		}
	}
	if want := []string{"r8i1n10", "r14i7n3", "r14i7n7", "n2", "n9", "n10"}; !slices.Equal(order, want) {
		t.Errorf("drawn as %q, want %q", order, want)
	}
	for _, x := range [][2]string{{"a1", "a1b"}, {"a2", "a10"}, {"a02", "a3"}, {"a01", "a1"}, {"b", "c1"}, {"", "a"}} {
		if natural.Compare(x[0], x[1]) >= 0 || natural.Compare(x[1], x[0]) <= 0 {
			t.Errorf("%q does not come before %q", x[0], x[1])
		}
	}
}

func TestUnlikeHostsOnALeaf(t *testing.T) {
	c := fabric(16, 1, 1)
	for i := range 4 {
		c.Network.Links[i].Rate.Value = 100 * unit.Gbps
	}
	has(t, text(t, c), "4 × 100 Gb/s, 12 × 200 Gb/s to hosts")
	c.Network.Links[0].Rate = cluster.Fact[unit.Rate]{}
	has(t, text(t, c), "1 × ?, 3 × 100 Gb/s, 12 × 200 Gb/s to hosts")
	// Leaves with the same total and other cables are told apart.
	c = fabric(8, 2, 1)
	c.Network.Links[0].Rate.Value, c.Network.Links[1].Rate.Value = 100*unit.Gbps, 300*unit.Gbps
	has(t, text(t, c), "1 × 100 Gb/s, 2 × 200 Gb/s, 1 × 300 Gb/s to hosts", "4 × 200 Gb/s to hosts")
}
