package board

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

func TestCPUs(t *testing.T) {
	for in, want := range map[string]string{
		"0x00000303,0x03030000,,0x03030303": "0-1,8-9,16-17,24-25,80-81,88-89,96-97,104-105",
		"0x0":                               "",
		"":                                  "",
		"0000,00000011,11111111":            "0,4,8,12,16,20,24,28,32,36",
		"ffffffff,ffffffff,ffffffff":        "0-95",
		"0xff000000,,0x0":                   "88-95",
	} {
		set, err := ParseMask(in)
		if err != nil || set.String() != want {
			t.Errorf("ParseMask(%q) = %q, %v; want %q", in, set, err, want)
		}
		back, err := ParseList(want)
		if err != nil || back.String() != want || !back.Within(set) || !set.Within(back) || back.Empty() != (want == "") {
			t.Errorf("ParseList(%q) = %q, %v", want, back, err)
		}
	}
	for _, bad := range []string{"0xf...f", "0x1ffffffff", "g", strings.Repeat(",", 5000)} {
		if set, err := ParseMask(bad); err == nil {
			t.Errorf("ParseMask(%.20q) = %v", bad, set)
		}
	}
	for _, bad := range []string{"3-1", "1-", "-1", "a", "0-4000000000", "1,,2"} {
		if set, err := ParseList(bad); err == nil {
			t.Errorf("ParseList(%q) = %v", bad, set)
		}
	}
}

func TestGPUVendor(t *testing.T) {
	for _, tc := range []struct {
		class, vendor, device string
		onRoot                bool
		want                  string
	}{
		{"030200", "10de", "2330", false, "nvidia"},
		{"030000", "10de", "1b81", false, "nvidia"}, // a GeForce drives a screen too
		{"068000", "10de", "22a3", false, ""},       // NVSwitch
		{"040300", "10de", "10f0", false, ""},       // its sound
		{"030000", "1a03", "2000", false, ""},       // ASPEED
		{"030000", "102b", "0532", false, ""},       // Matrox
		{"030000", "1002", "515e", false, ""},       // ES1000
		{"030000", "1002", "6863", false, "amd"},
		{"038000", "1002", "740c", false, "amd"}, // MI250X
		{"120000", "1002", "74a1", false, "amd"}, // MI300X
		{"030000", "8086", "a780", true, ""},     // graphics in the processor
		{"120000", "8086", "7d1d", true, ""},     // neural unit in the processor
		{"038000", "8086", "0bd5", false, "intel"},
		{"120000", "1da3", "1020", false, "intel"}, // Gaudi2
		{"0b4000", "8086", "225c", false, ""},      // Xeon Phi
		{"", "10de", "2330", false, ""},
	} {
		id := cluster.PCIID{Class: tc.class, Vendor: tc.vendor, Device: tc.device}
		if got := GPUVendor(id, tc.onRoot); got != tc.want {
			t.Errorf("%+v is a GPU of %q; want %q", tc, got, tc.want)
		}
	}
}

func TestNetKind(t *testing.T) {
	for _, tc := range []struct {
		class, vendor, device, driver string
		rdma                          bool
		layer                         string
		want                          cluster.NetKind
	}{
		{"020700", "15b3", "1021", "mlx5_core", true, "InfiniBand", cluster.InfiniBand},
		{"020000", "15b3", "1021", "mlx5_core", true, "Ethernet", cluster.RoCE},
		{"020700", "15b3", "1019", "", true, "", cluster.InfiniBand},
		{"0c0600", "1077", "7322", "", true, "", cluster.InfiniBand},
		{"020000", "15b3", "1019", "", true, "", cluster.RoCE},
		{"020000", "1d0f", "efa2", "efa", true, "Unspecified", cluster.EFA},
		{"020000", "1d0f", "ec20", "ena", false, "", cluster.Ethernet},
		{"020000", "17db", "0501", "", false, "", cluster.Slingshot},
		{"020800", "8086", "24f0", "hfi1", true, "InfiniBand", cluster.OmniPath},
		{"020000", "8086", "37d1", "i40iw0", true, "", cluster.Ethernet},
		{"020000", "1af4", "1041", "virtio_net", false, "", cluster.Ethernet},
	} {
		id := cluster.PCIID{Class: tc.class, Vendor: tc.vendor, Device: tc.device}
		if got := NetKind(id, tc.driver, tc.rdma, tc.layer); got != tc.want {
			t.Errorf("%+v is %q", tc, got)
		}
	}
}

func TestNames(t *testing.T) {
	if g := GUID("506b:4b03:003c:eee8"); g != "0x506b4b03003ceee8" {
		t.Error(g)
	}
	for _, bad := range []string{"", "0000:0000:0000:0000", "506b:4b03", "zzzz:4b03:003c:eee8"} {
		if g := GUID(bad); g != "" {
			t.Errorf("GUID(%q) = %q", bad, g)
		}
	}
	if g := PortGUID("fe80:0000:0000:0000:0011:7500:0077:cfc8"); g != "0x001175000077cfc8" {
		t.Error(g)
	}
	if Family(6) != 6 || Family(23) != 143 || Family(25) != 175 || Family(26) != 191 {
		t.Error("CPU families are not NCCL's")
	}
	for in, want := range map[string]float64{
		"16.0 GT/s PCIe": 16, "2.5 GT/s": 2.5, "Unknown speed": 0, "": 0, "-1 GT/s": 0, "NaN GT/s": 0,
	} {
		if got := ParseGTs(in); got != want {
			t.Errorf("ParseGTs(%q) = %v", in, got)
		}
	}
	if ParseLanes("16\n") != 16 || ParseLanes("255") != 0 || ParseLanes("0") != 0 {
		t.Error("lanes")
	}
}

// plant makes a tree from a text: one function a line, indented by two spaces a
// level; b is a bridge, g a GPU, n a NIC, x anything else; then an address and
// the trained and possible lanes.
func plant(text string) []Root {
	var roots []Root
	var path []*Func
	for line := range strings.Lines(text) {
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		if w[0] == "root" {
			roots = append(roots, Root{Label: w[1], Above: -1})
			continue
		}
		f := &Func{Addr: cluster.PCI(w[1]), Bridge: w[0] == "b"}
		if len(w) > 2 {
			fmt.Sscanf(w[2], "x%d/%d", &f.Wire.Lanes, &f.Wire.MaxLanes)
		}
		switch w[0] {
		case "g":
			f.Device = &cluster.Device{Kind: cluster.GPU, Index: -1, PCI: f.Addr, GPU: &cluster.GPUInfo{}}
		case "n":
			f.Device = &cluster.Device{Kind: cluster.NIC, Index: -1, PCI: f.Addr, Label: "net" + w[1], NIC: &cluster.NICInfo{}}
		}
		if depth == 1 {
			r := &roots[len(roots)-1]
			r.Kids = append(r.Kids, f)
		} else {
			path[depth-2].Kids = append(path[depth-2].Kids, f)
		}
		path = append(path[:depth-1], f)
	}
	return roots
}

// draw prints a grown tree: every device, its parent and its link.
func draw(t *cluster.NodeType) string {
	var out []string
	for i, d := range t.Devices {
		s := d.Name
		if d.Parent >= 0 {
			s = t.Devices[d.Parent].Name + "/" + s
		}
		for _, l := range t.Links {
			if l.B == i && l.Kind == cluster.PCIe && l.MaxLanes > 0 {
				s += fmt.Sprintf("(x%d/%d)", l.Lanes, l.MaxLanes)
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestGrow(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"a root port is no switch", `
root a
  b 00:01.0 x8/16
    g 01:00.0 x8/16
  b 00:02.0 x16/16
    n 02:00.0 x16/8
`, "root0 root0/gpu0(x8/16) root0/nic0(x16/8)"},
		{"nothing of interest, no root", "root a\n  b 00:01.0\n    x 01:00.0\n  x 00:02.0\n", ""},
		{"functions of a card share a root port", `
root a
  b 00:01.0 x16/16
    n 01:00.0 x16/16
    n 01:00.1 x16/16
`, "root0 root0/pci0(x16/16) pci0/nic0(x16/16) pci0/nic1(x16/16)"},
		{"a switch is its ports together", `
root a
  b 00:01.0 x16/16
    b 01:00.0 x8/16
      b 02:00.0 x16/16
        g 03:00.0 x16/16
      b 02:01.0 x8/16
        n 04:00.0 x8/16
        n 04:00.1 x8/16
      b 02:02.0
        x 05:00.0
`, "root0 root0/pci0(x8/16) pci0/gpu0(x16/16) pci0/nic0(x8/16) pci0/nic1(x8/16)"},
		{"the switch inside a GPU's board is none", `
root a
  b 00:01.0 x4/16
    b 01:00.0 x4/16
      b 02:00.0 x16/16
        g 03:00.0 x16/16
`, "root0 root0/gpu0(x4/16)"},
		{"but counts behind another switch", `
root a
  b 00:01.0
    b 01:00.0
      b 02:00.0
        n 03:00.0
      b 02:01.0
        b 04:00.0
          b 05:00.0
            g 06:00.0
`, "root0 root0/pci0 pci0/pci1 pci1/gpu0 pci0/nic0"},
		{"a chain of switches to several is one", `
root a
  b 00:01.0
    b 01:00.0
      b 02:00.0
        b 03:00.0
          b 04:00.0
            g 05:00.0
          b 04:01.0
            g 06:00.0
`, "root0 root0/pci0 pci0/gpu0 pci0/gpu1"},
		{"an end on the root bus", "root a\n  n 00:03.0\n  n 00:04.0\n", "root0 root0/nic0 root0/nic1"},
	} {
		ty := &cluster.NodeType{}
		h := NewHost(ty, "test", nil, nil)
		if h.Grow(plant(tc.in)); h.Left != 0 {
			t.Errorf("%s: %d left", tc.name, h.Left)
		}
		if err := ty.Check(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := draw(ty); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestGrowBounds(t *testing.T) {
	deep := &Func{Bridge: true}
	for at, i := deep, 0; i < 1000; i++ {
		k := &Func{Bridge: true}
		at.Kids = []*Func{k}
		at = k
		if i == 999 {
			k.Kids = []*Func{{Device: &cluster.Device{Kind: cluster.GPU}}}
		}
	}
	wide := &Func{Bridge: true}
	for range 5000 {
		wide.Kids = append(wide.Kids, &Func{Device: &cluster.Device{Kind: cluster.NIC, Index: -1}})
	}
	ty := &cluster.NodeType{}
	h := NewHost(ty, "test", nil, nil)
	h.Grow([]Root{{Above: -1, Kids: []*Func{deep, wide}}})
	if err := ty.Check(); err != nil {
		t.Error(err)
	}
	if len(ty.Devices) != maxTree || h.Left != 5000-(maxTree-2) {
		t.Errorf("%d devices, %d left", len(ty.Devices), h.Left)
	}
}

func TestResting(t *testing.T) {
	for rate, want := range map[unit.Rate]bool{
		2e9: true, 4e9: true, 8e9: true, 0.25e9: true, 15.753846e9: false, 1.969231e9: false, 7.876923e9: false,
		63.015385e9: false, 0: false,
	} {
		if got := (Wire{Rate: rate}).resting(); got != want {
			t.Errorf("resting at %v is %v", rate, got)
		}
	}
}

func TestHost(t *testing.T) {
	list := func(s string) CPUs { c, _ := ParseList(s); return c }
	ty := &cluster.NodeType{}
	h := NewHost(ty, "test",
		[]Socket{{Index: 1, CPUs: list("8-15")}, {Index: 0, CPUs: list("0-7")}},
		[]Domain{
			{Index: 0, CPUs: list("0-3")},
			{Index: 1, CPUs: list("4-7")},
			{Index: 2, CPUs: list("8-15")},
			{Index: 9, Memory: unit.GiB},
		})
	if h.Left != 0 || h.Only() != -1 || len(ty.Links) != 3 {
		t.Errorf("left %d, only %d, links %v", h.Left, h.Only(), ty.Links)
	}
	name := func(at int) string {
		if at < 0 {
			return "-"
		}
		return ty.Devices[at].Name
	}
	for cpus, want := range map[string]string{
		"0-3": "numa0", "4": "numa1", "0-7": "socket0", "8-15": "numa2", "0-15": "-", "": "-", "40": "-",
	} {
		if got := name(h.Near(list(cpus))); got != want {
			t.Errorf("near %s is %s; want %s", cpus, got, want)
		}
	}
	if name(ty.Devices[h.Domain(1)].Parent) != "socket0" || h.Domain(5) != -1 || h.NUMA(h.Domain(2)).Value != 2 ||
		h.NUMA(-1).Known() {
		t.Error("domains are not where they belong")
	}
}

func FuzzGrow(f *testing.F) {
	f.Add([]byte("bgbnnbb"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root := Root{Above: -1}
		at := []*[]*Func{&root.Kids}
		for i, c := range data {
			fn := &Func{Wire: Wire{Lanes: int(c) % 3}}
			kids := at[len(at)-1]
			switch c % 8 {
			case 0, 1, 2:
				fn.Bridge = true
				at = append(at, &fn.Kids)
			case 3:
				fn.Device = &cluster.Device{Kind: cluster.GPU, Index: i % 5}
			case 4:
				fn.Device = &cluster.Device{Kind: cluster.NIC, Index: -1, Label: fmt.Sprint(i)}
			default:
				at = at[:max(1, len(at)-1)]
				continue
			}
			*kids = append(*kids, fn)
		}
		ty := &cluster.NodeType{}
		ends := countEnds(root.Kids)
		h := NewHost(ty, "fuzz", nil, nil)
		h.Grow([]Root{root})
		if err := ty.Check(); err != nil {
			t.Error(err)
		}
		if n := ty.Count(cluster.GPU) + ty.Count(cluster.NIC); n+h.Left != ends && len(data) < maxDepth {
			t.Errorf("%d GPUs and NICs of %d, %d left out", n, ends, h.Left)
		}
	})
}
