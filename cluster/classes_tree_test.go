package cluster

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tableOf reads a matrix written as rows of words.
func tableOf(t testing.TB, rows ...string) [][]Class {
	t.Helper()
	out := make([][]Class, len(rows))
	for i, r := range rows {
		for _, w := range strings.Fields(r) {
			if w == "." {
				w = "?"
			}
			c, ok := ParseClass(w)
			if !ok {
				t.Fatalf("class %q", w)
			}
			out[i] = append(out[i], c)
		}
	}
	return out
}

// leaves makes GPUs and NICs from a word such as "ggn"; numa gives the affinity
// of each, '-' for none.
func leaves(kinds, numa string) []Device {
	var devs []Device
	count := map[Kind]int{}
	for i, k := range kinds {
		d := Device{Kind: GPU, GPU: &GPUInfo{}}
		if k == 'n' {
			d = Device{Kind: NIC, NIC: &NICInfo{}}
		}
		d.Index = count[d.Kind]
		count[d.Kind]++
		if i < len(numa) && numa[i] != '-' {
			f := FromRead(int(numa[i]-'0'), "test")
			if d.GPU != nil {
				d.GPU.NUMA = f
			} else {
				d.NIC.NUMA = f
			}
		}
		devs = append(devs, d)
	}
	return devs
}

// sketch prints the tree on one line: numa0(root0(pci0(gpu0 nic0)) gpu1).
func sketch(t *NodeType) string {
	var walk func(p int) string
	walk = func(p int) string {
		var parts []string
		for i := range t.Devices {
			if t.Devices[i].Parent == p {
				s := t.Devices[i].Name
				if in := walk(i); in != "" {
					s += "(" + in + ")"
				}
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, " ")
	}
	return walk(-1)
}

func TestTreeFromMatrix(t *testing.T) {
	for _, c := range []struct {
		name, kinds, numa string
		rows              []string
		want              string
		links             string // NVLink and xGMI: gpu0-gpu1x4
		warn              string // part of the only warning; "" none
	}{
		{
			name: "two islands below one host bridge", kinds: "gggg",
			rows: []string{"X PIX PHB PHB", "PIX X PHB PHB", "PHB PHB X PIX", "PHB PHB PIX X"},
			want: "numa0(root0(pci0(gpu0 gpu1) pci1(gpu2 gpu3)))",
		},
		{
			name: "PXB needs a switch for every member", kinds: "ggn",
			rows: []string{"X PXB PXB", "PXB X PXB", "PXB PXB X"},
			want: "numa0(root0(pci0(pci1(gpu0) pci2(gpu1) pci3(nic0))))",
		},
		{
			name: "NODE means bridges of their own", kinds: "gg",
			rows: []string{"X NODE", "NODE X"},
			want: "numa0(root0(gpu0) root1(gpu1))",
		},
		{
			name: "NVLink hides the relation, NICs and affinity show it", kinds: "ggggnn", numa: "0011--",
			rows: []string{
				"X NV12 NV12 NV12 PIX SYS", "NV12 X NV12 NV12 NODE SYS", "NV12 NV12 X NV12 SYS PIX",
				"NV12 NV12 NV12 X SYS PIX", "PIX NODE SYS SYS X SYS", "SYS SYS PIX PIX SYS X",
			},
			want:  "numa0(root0(pci0(gpu0 nic0)) root1(gpu1)) numa1(root2(pci1(gpu2 gpu3 nic1))) nvswitch0",
			links: "gpu0-nvswitch0x12 gpu1-nvswitch0x12 gpu2-nvswitch0x12 gpu3-nvswitch0x12",
		},
		{
			name: "hidden and no NIC: the affinity alone, no bridge invented", kinds: "gg", numa: "11",
			rows:  []string{"X NV4", "NV4 X"},
			want:  "numa1(gpu0 gpu1)",
			links: "gpu0-gpu1x4",
		},
		{
			name: "hidden and no affinity: nothing is known", kinds: "gg",
			rows:  []string{"X NV4", "NV4 X"},
			want:  "gpu0 gpu1",
			links: "gpu0-gpu1x4",
		},
		{
			name: "two GPUs are joined directly however many links", kinds: "gg", numa: "00",
			rows:  []string{"X NV18", "NV18 X"},
			want:  "numa0(gpu0 gpu1)",
			links: "gpu0-gpu1x18",
		},
		{
			name: "NIC of the other socket", kinds: "gn", numa: "1-",
			rows: []string{"X SYS", "SYS X"},
			want: "numa1(gpu0) numa2(nic0)",
		},
		{
			name: "a virtual machine: one affinity, all SYS", kinds: "ggg", numa: "000",
			rows: []string{"X SYS SYS", "SYS X SYS", "SYS SYS X"},
			want: "numa0(gpu0) numa1(gpu1) numa2(gpu2)",
			warn: "gpu0: to gpu1 the matrix says SYS, though the affinity on both sides is NUMA 0",
		},
		{
			name: "not an ultrametric", kinds: "ggg",
			rows: []string{"X PIX SYS", "PIX X PIX", "SYS PIX X"},
			want: "numa0(root0(pci0(gpu0 gpu1 gpu2)))",
			warn: "gpu0: to gpu2 the matrix says SYS",
		},
		{
			name: "halves differ", kinds: "gg",
			rows: []string{"X PHB", "PIX X"},
			want: "numa0(root0(pci0(gpu0 gpu1)))",
			warn: "to gpu1 it says PHB, and PIX the other way",
		},
		{
			name: "affinity against the matrix", kinds: "gg", numa: "01",
			rows: []string{"X PHB", "PHB X"},
			want: "numa0(root0(gpu0 gpu1))",
			warn: "its affinity is NUMA 1",
		},
		{
			name: "NVLink counts by direction", kinds: "gg", numa: "00",
			rows:  []string{"X NV4", "NV2 X"},
			want:  "numa0(gpu0 gpu1)",
			links: "gpu0>gpu1x4 gpu1>gpu0x2",
			warn:  "says NV4, and NV2 the other way",
		},
		{
			name: "a GPU with links down on a switch", kinds: "ggg", numa: "000",
			rows:  []string{"X NV18 NV16", "NV18 X NV16", "NV16 NV16 X"},
			want:  "numa0(gpu0 gpu1 gpu2) nvswitch0",
			links: "gpu0-nvswitch0x18 gpu1-nvswitch0x18 gpu2-nvswitch0x16",
		},
		{
			name: "truncated after one row", kinds: "ggn", numa: "0--",
			rows:  []string{"X NV4 PIX"},
			want:  "gpu1 numa0(root0(pci0(gpu0 nic0)))",
			links: "gpu0-gpu1x4",
		},
		{
			name: "xGMI", kinds: "ggg", numa: "001",
			rows:  []string{"X XGMI SYS", "XGMI X SYS", "SYS SYS X"},
			want:  "numa0(gpu0 gpu1) numa1(gpu2)",
			links: "gpu0-gpu1x0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			nt, warns := TreeFromMatrix(leaves(c.kinds, c.numa), tableOf(t, c.rows...))
			if err := nt.Check(); err != nil {
				t.Fatal(err)
			}
			if got := sketch(nt); got != c.want {
				t.Errorf("tree\n got %s\nwant %s", got, c.want)
			}
			var links []string
			for _, l := range nt.Links {
				if l.Kind == NVLink || l.Kind == XGMI {
					arrow := "-"
					if l.OneWay {
						arrow = ">"
					}
					links = append(links, fmt.Sprintf("%s%s%sx%d", nt.Devices[l.A].Name, arrow, nt.Devices[l.B].Name, l.Lanes))
				}
			}
			if got := strings.Join(links, " "); got != c.links {
				t.Errorf("links\n got %s\nwant %s", got, c.links)
			}
			switch {
			case c.warn == "" && len(warns) > 0:
				t.Errorf("warned: %v", warns)
			case c.warn != "" && (len(warns) != 1 || !strings.Contains(warns[0].String(), c.warn)):
				t.Errorf("warnings %v; want one with %q", warns, c.warn)
			}
		})
	}
}

// A known count of links tells a switch where the row alone does not.
func TestTreeFromMatrixKnownLinks(t *testing.T) {
	devs := leaves("ggg", "000")
	for i := range devs {
		devs[i].GPU.Links = 6
	}
	nt, _ := TreeFromMatrix(devs, tableOf(t, "X NV6 NV6", "NV6 X NV6", "NV6 NV6 X"))
	if nt.Count(NVSwitch) != 1 {
		t.Error("three GPUs of six links each with six to both others: expected an NVSwitch")
	}
}

// CPU lists stand for NUMA domains where no number is given, and a number of
// one device names the list of another.
func TestTreeFromMatrixCores(t *testing.T) {
	devs := leaves("gggg", "0---")
	for i, c := range []string{"0-7", "0-7", "8-15", "8-15"} {
		devs[i].GPU.Cores = c
	}
	nt, warns := TreeFromMatrix(devs, tableOf(t, "X NV4 NV4 NV4", "NV4 X NV4 NV4", "NV4 NV4 X NV4", "NV4 NV4 NV4 X"))
	if got, want := sketch(nt), "numa0(gpu0 gpu1) numa1(gpu2 gpu3)"; got != want || len(warns) > 0 {
		t.Errorf("got %s, warnings %v; want %s", got, warns, want)
	}
	for name, want := range map[string]string{"numa0": "0-7", "numa1": "8-15"} {
		if d := nt.Devices[nt.ByName(name)]; d.CPU == nil || d.CPU.Cores != want {
			t.Errorf("%s has cores %+v; want %s", name, d.CPU, want)
		}
	}
}

// Random trees give matrices whose trees give the same matrices.
func TestTreeFromMatrixRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		real := randomTree(t)
		m := real.Matrix()
		class := make([][]Class, len(m.Class))
		for i := range m.Class {
			for _, w := range m.Class[i] {
				c, _ := ParseClass(w)
				class[i] = append(class[i], c)
			}
		}
		var devs []Device
		for _, k := range []Kind{GPU, NIC} {
			for _, i := range real.Of(k) {
				d := Device{Kind: k, Index: real.Devices[i].Index}
				if k == GPU {
					d.GPU = &GPUInfo{}
					if n := real.Above(i, NUMA); rapid.Bool().Draw(t, "hint") {
						d.GPU.NUMA = FromRead(real.Devices[n].Index, "test")
					}
				} else {
					d.NIC = &NICInfo{}
				}
				devs = append(devs, d)
			}
		}
		built, warns := TreeFromMatrix(devs, class)
		if err := built.Check(); err != nil {
			t.Fatal(err)
		}
		if len(warns) > 0 {
			t.Fatalf("%s\nmatrix %v\nwarned: %v", sketch(real), m.Class, warns)
		}
		if got := built.Matrix(); fmt.Sprint(got) != fmt.Sprint(m) {
			t.Fatalf("%s\nbuilt %s\ngot  %v\nwant %v", sketch(real), sketch(built), got, m)
		}
	})
}

// randomTree draws a machine of up to 12 GPUs and NICs.
func randomTree(t *rapid.T) *NodeType {
	nt := &NodeType{}
	var inner []int
	hang := func(d Device, parent int, kind LinkKind) int {
		d.Parent = parent
		i := nt.Add(d)
		if parent >= 0 {
			nt.Connect(Link{A: parent, B: i, Kind: kind})
		}
		return i
	}
	for n := range rapid.IntRange(1, 3).Draw(t, "numas") {
		numa := hang(Device{Kind: NUMA, Index: n}, -1, 0)
		inner = append(inner, numa)
		for range rapid.IntRange(0, 2).Draw(t, "roots") {
			root := hang(Device{Kind: RootComplex, Index: -1}, numa, OnDie)
			inner = append(inner, root)
			for range rapid.IntRange(0, 2).Draw(t, "switches") {
				top := hang(Device{Kind: PCISwitch, Index: -1}, root, PCIe)
				inner = append(inner, top)
				for range rapid.IntRange(0, 2).Draw(t, "nested") {
					inner = append(inner, hang(Device{Kind: PCISwitch, Index: -1}, top, PCIe))
				}
			}
		}
	}
	gpus := rapid.IntRange(1, 8).Draw(t, "gpus")
	for i := range gpus {
		hang(Device{Kind: GPU, Index: i}, rapid.SampledFrom(inner).Draw(t, "at"), PCIe)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "nics") {
		hang(Device{Kind: NIC, Index: i}, rapid.SampledFrom(inner).Draw(t, "at"), PCIe)
	}
	ids := nt.Of(GPU)
	switch how := rapid.IntRange(0, 2).Draw(t, "nvlink"); {
	case how == 1:
		for i, a := range ids {
			for _, b := range ids[i+1:] {
				if n := rapid.IntRange(0, 2).Draw(t, "links"); n > 0 {
					nt.Connect(Link{A: a, B: b, Kind: NVLink, Lanes: n})
				}
			}
		}
	case how == 2 && len(ids) > 2:
		sw := nt.Add(Device{Kind: NVSwitch, Index: -1, Parent: -1})
		for _, a := range ids {
			nt.Connect(Link{A: a, B: sw, Kind: NVLink, Lanes: 12})
		}
	}
	return nt
}

// Any table gives a sound tree, and one that warns of nothing says what the
// table says.
func TestTreeFromAnyMatrix(t *testing.T) {
	words := []Class{{}, {Type: PIX}, {Type: PXB}, {Type: PHB}, {Type: NODE}, {Type: SYS}, {NV, 2}, {NV, 18}, {Type: XG}}
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.StringMatching(`g{1,5}n{0,3}`).Draw(t, "kinds")
		numa := rapid.StringMatching(`[-012]{8}`).Draw(t, "numa")
		n := len(kinds)
		class := make([][]Class, n)
		for i := range class {
			class[i] = make([]Class, n)
		}
		symmetric := rapid.Bool().Draw(t, "symmetric")
		for i := range n {
			for j := range n {
				if i == j {
					class[i][j] = Class{Type: Self}
				} else if j > i || !symmetric {
					class[i][j] = rapid.SampledFrom(words).Draw(t, "cell")
					if symmetric {
						class[j][i] = class[i][j]
					}
				}
			}
		}
		nt, warns := TreeFromMatrix(leaves(kinds, numa), class)
		if err := nt.Check(); err != nil {
			t.Fatal(err)
		}
		m := nt.Matrix()
		if len(warns) > 0 {
			return
		}
		for i := range n {
			for j := range n {
				want := class[i][j]
				if want.Type == Apart {
					want = class[j][i]
				}
				if want.Type != Apart && m.Class[i][j] != want.String() {
					t.Fatalf("%s–%s: the table says %v, the tree %s says %s", m.Names[i], m.Names[j], want, sketch(nt),
						m.Class[i][j])
				}
			}
		}
	})
}
