package ibnet

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

func readDiscover(t *testing.T, text string) *cluster.Fragment {
	t.Helper()
	if !Discover.Match([]byte(text)) {
		t.Fatalf("not recognised: %.80q", text)
	}
	f, err := Discover.Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	check(t, f)
	return f
}

func warned(f *cluster.Fragment, text string) bool {
	for _, w := range f.Warnings {
		if strings.Contains(w.String(), text) {
			return true
		}
	}
	return false
}

var small = fatTree{leaves: 3, spines: 2, hosts: 4, cables: 2, speed: "HDR", scanned: true}

func TestFatTree(t *testing.T) {
	f := readDiscover(t, small.text())
	if s := f.Summary(); s.Switches != 5 || s.Nodes != 12 || len(f.Network.Links) != 12+12 || len(f.Types) != 1 ||
		len(f.Warnings) != 0 {
		t.Errorf("%+v, %d links, %v", s, len(f.Network.Links), f.Warnings)
	}
	nic := f.Types[0].Devices[0]
	if nic.Model.Value != "MT4129" || nic.Label != "mlx5_0" || nic.NIC.Kind != cluster.InfiniBand ||
		nic.NIC.Rate().Value != 200*unit.Gbps || nic.UUID != "" {
		t.Errorf("%+v", nic)
	}
	if id := f.Hosts[0].IDs[0]; id.UUID != "0x"+small.hostGUID(1) || id.GUID != "0x"+small.portGUID(1) || id.LID != 6 {
		t.Errorf("%+v", id)
	}
}

// Whatever stands around and before the lines, the fabric is the same.
func TestInsideALog(t *testing.T) {
	want := readDiscover(t, small.text())
	text := small.text()
	for name, in := range map[string]string{
		"mpirun":     "NCCL INFO x\n" + before1("[1,0]<stdout>:", text),
		"srun -l":    before1(" 3: ", text),
		"CR LF":      strings.ReplaceAll(text, "\n", "\r\n"),
		"Markdown":   "```\n" + before1("    ", text) + "```\n",
		"colours":    strings.ReplaceAll(text, "Switch", "\x1b[1mSwitch\x1b[0m"),
		"noise":      strings.ReplaceAll(text, "\nvendid", "\nibwarn: [12] mad_rpc: timeout\n[0] NCCL INFO\nvendid"),
		"binary":     "\x00\xff\xfe\x00\n" + text + "\x00\x01",
		"no newline": strings.TrimRight(text, "\n"),
	} {
		f := readDiscover(t, in)
		if f.Summary() != want.Summary() || len(f.Network.Links) != len(want.Network.Links) || len(f.Warnings) != 0 {
			t.Errorf("%s: %+v, %d links, %v", name, f.Summary(), len(f.Network.Links), f.Warnings)
		}
	}
}

func before1(prefix, text string) string {
	lines := strings.SplitAfter(text, "\n")
	return prefix + strings.Join(lines[:len(lines)-1], prefix)
}

func TestSlowAndPulled(t *testing.T) {
	tree := small
	tree.slow = map[string]string{"leaf2[5]": "4xEDR", "leaf3[2]": "1xHDR"}
	tree.pulled = map[string]bool{"leaf1[6]": true}
	f := readDiscover(t, tree.text())
	for at, want := range map[string]unit.Rate{"leaf2[5]": 100, "leaf3[2]": 50, "leaf1[5]": 200} {
		var port int
		sw, rest, _ := strings.Cut(at, "[")
		fmt.Sscanf(rest, "%d", &port)
		i := linkAt(f, sw, port)
		if i < 0 || f.Network.Links[i].Rate.Value != want*unit.Gbps {
			t.Errorf("%s: link %d", at, i)
		}
	}
	if linkAt(f, "leaf1", 6) >= 0 || len(f.Network.Links) != 23 || len(f.Warnings) != 0 {
		t.Errorf("%d links, %v", len(f.Network.Links), f.Warnings)
	}
	if len(f.Types) != 2 {
		t.Errorf("%d types; the host on the narrow cable differs", len(f.Types))
	}
}

func TestTierRule(t *testing.T) {
	manager := fatTree{leaves: 4, spines: 2, hosts: 4, cables: 4, speed: "HDR", manager: true}
	alone := fatTree{leaves: 4, spines: 2, hosts: 4, cables: 8, speed: "HDR", pulled: map[string]bool{}}
	for h := 2; h <= 4; h++ {
		alone.pulled[fmt.Sprintf("leaf2[%d]", h)] = true
	}
	for name, tree := range map[string]fatTree{"manager on a spine": manager, "leaf with one host left": alone} {
		f := readDiscover(t, tree.text())
		for _, s := range f.Network.Switches {
			want := cluster.Leaf
			if strings.HasPrefix(s.Name, "spine") {
				want = cluster.Spine
			}
			if s.Tier != want {
				t.Errorf("%s: %s is a %v", name, s.Name, s.Tier)
			}
		}
	}
}

// A leaf whose hosts are off is no core above the spines.
func TestTierOfEmptyLeaf(t *testing.T) {
	tree := fatTree{leaves: 4, spines: 2, hosts: 4, cables: 4, speed: "HDR", pulled: map[string]bool{}}
	for h := 1; h <= tree.hosts; h++ {
		tree.pulled[fmt.Sprintf("leaf4[%d]", h)] = true
	}
	f, err := Discover.Read("in", strings.NewReader(tree.text()))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Network.Switches {
		want := cluster.Spine
		if strings.HasPrefix(s.Name, "leaf") {
			want = cluster.Leaf
		}
		if s.Tier != want {
			t.Errorf("%s is of tier %v, want %v", s.Name, s.Tier, want)
		}
	}
}

func TestTierOfManagerOnCore(t *testing.T) {
	var b strings.Builder
	// Synthetic: two leaves with two hosts each, two spines, a core of eight ports
	// of which seven lead down and one to a manager.
	for l := 1; l <= 2; l++ {
		fmt.Fprintf(&b, "Switch 8 \"leaf%d\"\n[1] \"n%da\"[1]\n[2] \"n%db\"[1]\n[3] \"spine1\"[%d]\n[4] \"spine2\"[%d]\n\n",
			l, l, l, l, l)
		fmt.Fprintf(&b, "Hca 1 \"n%da\"\n[1] \"leaf%d\"[1]\n\nHca 1 \"n%db\"\n[1] \"leaf%d\"[2]\n\n", l, l, l, l)
	}
	core := "Switch 8 \"core\"\n"
	for s := 1; s <= 2; s++ {
		fmt.Fprintf(&b, "Switch 8 \"spine%d\"\n[1] \"leaf1\"[%d]\n[2] \"leaf2\"[%d]\n", s, s+2, s+2)
		for c := 1; c <= 5-s; c++ {
			p := (s-1)*4 + c
			fmt.Fprintf(&b, "[%d] \"core\"[%d]\n", c+2, p)
			core += fmt.Sprintf("[%d] \"spine%d\"[%d]\n", p, s, c+2)
		}
	}
	b.WriteString("\n" + core + "[8] \"ufm\"[1]\n\nHca 1 \"ufm\"\n[1] \"core\"[8]\n")
	f := readDiscover(t, b.String())
	got := ""
	for _, s := range f.Network.Switches {
		got += s.Name + "=" + s.Tier.String() + " "
	}
	// One host in eight cables is not poor: the core counts as a leaf.
	if want := "core=leaf leaf1=leaf leaf2=leaf spine1=spine spine2=spine "; got != want {
		t.Errorf("with one host in eight: %s", got)
	}
	wide := strings.ReplaceAll(b.String(), "[8] \"ufm\"[1]\n", "[8] \"ufm\"[1]\n[9] \"spine2\"[7]\n[10] \"spine2\"[8]\n")
	wide = strings.ReplaceAll(wide, "Switch 8 \"core\"", "Switch 10 \"core\"")
	f = readDiscover(t, wide)
	got = ""
	for _, s := range f.Network.Switches {
		got += s.Name + "=" + s.Tier.String() + " "
	}
	if want := "leaf1=leaf leaf2=leaf spine1=spine spine2=spine core=core "; got != want {
		t.Errorf("with one host in ten: %s", got)
	}
}

func TestDamage(t *testing.T) {
	const head = "Switch\t4 \"S-0000000000000001\"\t\t# \"leaf1\" base port 0 lid 1 lmc 0\n"
	const ca = "Ca\t1 \"H-0000000000000002\"\t\t# \"n1 mlx5_0\"\n"
	for name, c := range map[string]struct {
		text, warning string
		links         int
	}{
		"one end only": {
			head + "[1]\t\"H-0000000000000002\"[1](3) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n" + ca,
			"1 cable is listed by one end only, the first: leaf1[1] to n1 mlx5_0[1]", 1,
		},
		"neighbour unseen": {
			head + "[1]\t\"H-0000000000000002\"[1](3) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n",
			"1 node is named as a neighbour without lines", 1,
		},
		"two places": {head + "[1]\t\"H-0000000000000002\"[1](3) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n" +
			"[2]\t\"H-0000000000000002\"[1](3) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n" + ca, "1 cable contradicts", 2},
		"unlike speeds": {
			head + "[1]\t\"H-0000000000000002\"[1](3) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n" + ca +
				"[1](3) \t\"S-0000000000000001\"[1]\t\t# lid 2 lmc 0 \"leaf1\" lid 1 4xEDR\n",
			"leaf1[1] says 4xHDR, n1 mlx5_0[1] says 4xEDR; took the slower", 1,
		},
		"impossible port": {
			head + "[70000]\t\"H-0000000000000002\"[1](3) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n" + ca,
			"a port number that no switch has", 0,
		},
		"cut in a line": {head + "[1]\t\"H-00000000", "a port line without the neighbour's whole name and port", 0},
		"cut in a port": {
			head + "[1]\t\"H-0000000000000002\"[1", "a port line without the neighbour's whole name and port", 0,
		},
		"cable to itself": {
			head + "[1]\t\"S-0000000000000001\"[1]\t\t# \"leaf1\" lid 1 4xHDR\n", "a cable from a port to itself", 1,
		},
		"unnamed adapter": {
			head + "[1]\t\"H-0000000000000002\"[1](3) \t\t# \"MT4123 ConnectX6   Mellanox " +
				"Technologies\" lid 2 4xHDR\nCa 1 \"H-0000000000000002\" # \"MT4123 ConnectX6   Mellanox Technologies\"\n",
			"1 adapter carries no host name", 1,
		},
		"two called alike": {
			ca + strings.ReplaceAll(ca, "02", "03"), "1 host name stands for several machines, the first: n1 mlx5_0", 0,
		},
		"router": {head + "Rt\t2 \"R-0000000000000009\"\t\t# \"gw\"\n", "1 router is left out", 0},
		"directly connected": {ca + "[1](2) \t\"H-0000000000000003\"[1] (3) \t\t# lid 1 lmc 0 \"n2 mlx5_0\" lid 2 4xHDR\n" +
			"Ca 1 \"H-0000000000000003\" # \"n2 mlx5_0\"\n[1](3) \t\"H-0000000000000002\"[1] (2) \t\t# lid 2 lmc 0 \"n1 " +
			"mlx5_0\" lid 1 4xHDR\n", "", 1},
	} {
		f := readDiscover(t, c.text)
		if warned(f, c.warning) != (c.warning != "") || len(f.Network.Links) != c.links {
			t.Errorf("%s: %d links, %v", name, len(f.Network.Links), f.Warnings)
		}
	}
	if _, err := Discover.Read("log", strings.NewReader("nothing\nhere\n")); err == nil ||
		!strings.HasPrefix(err.Error(), "log: no line of ibnetdiscover; expected such as Switch 36") {
		t.Errorf("%v", err)
	}
}

func TestManyCardsUnderOneName(t *testing.T) {
	var b strings.Builder
	for i := range maxCAs + 1 {
		fmt.Fprintf(&b, "Ca\t1 \"H-%016x\"\t\t# \"localhost\"\n", i+1)
	}
	f := readDiscover(t, b.String())
	if len(f.Hosts) != maxCAs+1 || !warned(f, "129 host names stand") ||
		f.HostIndex("ca-0000000000000001") < 0 {
		t.Errorf("%d hosts, %v", len(f.Hosts), f.Warnings)
	}
}

func TestChassisAndOldDescriptions(t *testing.T) {
	f := readDiscover(t, `
Chassis 1 (guid 0x2c90200423e20)

# Spine Nodes
vendid=0x2c9
devid=0xbd36
sysimgguid=0x2c90200423e23		# Chassis 1
switchguid=0x2c90200423e20(2c90200423e20)	# IS5600 Spine 1 Chip 1
Switch	36 "S-0002c90200423e20"		# "MF0;core1:IS5600/S01/U1" enhanced port 0 lid 5 lmc 0
[1]	"S-0002c90200423e30"[19]		# "MF0;core1:IS5600/L01/U1" lid 6 4xQDR

# Line Nodes
switchguid=0x2c90200423e30(2c90200423e30)	# IS5600 Line 1 Chip 1
Switch	36 "S-0002c90200423e30"		# "MF0;core1:IS5600/L01/U1" enhanced port 0 lid 6 lmc 0
[19]	"S-0002c90200423e20"[1]		# "MF0;core1:IS5600/S01/U1" lid 5 4xQDR s=4 w=2 v=4
[1][ext 1]	"H-0008f10403970aa8"[2](8f10403970aaa) 		# "old1 HCA-1" lid 9 4xDDR

caguid=0x8f10403970aa8
Ca	2 "H-0008f10403970aa8"		# Voltaire HCA400Ex
[2](8f10403970aaa) 	"S-0002c90200423e30"[1][ext 1]		# lid 9 lmc 0 "MF0;core1:IS5600/L01/U1" lid 6 4xDDR
`)
	sw := f.Network.Switches
	if len(sw) != 2 || sw[0].Name != "core1/L01/U1" || sw[1].Name != "core1/S01/U1" || sw[0].Model != "IS5600" ||
		sw[1].Tier != cluster.Spine {
		t.Errorf("%+v", sw)
	}
	ports := f.Types[0].Devices[0].NIC.Ports
	if len(ports) != 2 || ports[0].State != cluster.Down || ports[1].Rate.Value != 16*unit.Gbps {
		t.Errorf("%+v", ports)
	}
}

func TestNetFileWidths(t *testing.T) {
	f := readDiscover(t, "Switch 8 \"s1\"\n[1] \"h1\" w=1\n[2] \"h2\"[1] w=12\n\nHca 2 \"h1\"\n[1] \"s1\"[1] w=1\nHca 2 "+
		"\"h2\"\n[1] \"s1\"[2]\n")
	for _, l := range f.Network.Links {
		if want := map[int]int{1: 1, 2: 12}[l.A.Port]; l.Lanes != want || l.Rate.Known() || l.Speed != "" {
			t.Errorf("%+v", l)
		}
	}
	if f.HostIndex("h1") < 0 {
		t.Errorf("%s, %+v", f.Format, f.Hosts)
	}
}
