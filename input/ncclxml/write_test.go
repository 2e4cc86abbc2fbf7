package ncclxml

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// ncclTag is a tag as NCCL's own parser takes it: attributes behind one space
// each, in double quotes, under 255 characters, and nothing before '>' or '/>'.
var ncclTag = regexp.MustCompile(`^ *<(?:/([a-z0-9]+)|([a-z0-9]+)((?: [a-z_]+="[^"<>&]{0,254}")*)(/?))>$`)

// accepted holds a text to NCCL's parser: no tabs, no text, no entities, at most
// 16 attributes, elements closed where they were opened and only where NCCL
// knows them. This is what src/graph/xml.cc does, said as a check.
func accepted(text string) error {
	var open []string
	for line := range strings.Lines(text) {
		m := ncclTag.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return fmt.Errorf("NCCL would not take %q", line)
		}
		if m[1] != "" {
			if len(open) == 0 || open[len(open)-1] != m[1] {
				return fmt.Errorf("</%s> closes %v", m[1], open)
			}
			open = open[:len(open)-1]
			continue
		}
		if strings.Count(m[3], "=\"") > 16 {
			return fmt.Errorf("too many attributes in %q", line)
		}
		if len(open) == 0 && m[2] != "system" ||
			len(open) > 0 && !slices.Contains(strings.Fields(inside[m[2]]), open[len(open)-1]) {
			return fmt.Errorf("<%s> inside %v", m[2], open)
		}
		if m[4] == "" {
			open = append(open, m[2])
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%v left open", open)
	}
	return nil
}

// writeOne writes a node of one host.
func writeOne(w io.Writer, t *cluster.NodeType) error {
	_, err := Write(w, t)
	return err
}

// server is a described node as a preset has it: two sockets, one host bridge
// for two switches, no addresses, no NIC names.
func server() *cluster.NodeType {
	t := &cluster.NodeType{Name: "two-socket", Tree: cluster.Read}
	gpu, nic := 0, 0
	var numas []int
	sw := cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1}
	for s := range 2 {
		socket := t.Add(cluster.Device{Kind: cluster.Socket, Index: s, Parent: -1})
		numa := t.Add(cluster.Device{
			Kind: cluster.NUMA, Index: s, Parent: socket, CPU: &cluster.CPUInfo{
				Arch: "x86_64", Vendor: "GenuineIntel", Family: 6, Model: 143, Cores: fmt.Sprintf("%d-%d", s*56, s*56+55),
			},
		})
		numas = append(numas, numa)
		root := t.Add(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: numa})
		t.Connect(cluster.Link{A: numa, B: root, Kind: cluster.OnDie})
		for range 2 {
			pci := t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: root})
			t.Connect(cluster.Link{A: root, B: pci, Kind: cluster.PCIe, Lanes: 16, GTs: 32})
			g := t.Add(cluster.Device{
				Kind: cluster.GPU, Index: gpu, Parent: pci, Model: cluster.FromRead("NVIDIA H100 80GB HBM3", formatNCCL),
				GPU: &cluster.GPUInfo{Vendor: "nvidia", SM: 90, GDR: cluster.Yes},
			})
			t.Connect(cluster.Link{A: pci, B: g, Kind: cluster.PCIe, Lanes: 16, GTs: 32})
			n := t.Add(cluster.Device{Kind: cluster.NIC, Index: nic, Parent: pci, NIC: &cluster.NICInfo{
				Kind: cluster.RoCE, GDR: cluster.Yes,
				Ports: []cluster.Port{{Num: 1, Rate: cluster.FromRead(400*unit.Gbps, formatNCCL)}},
			}})
			t.Connect(cluster.Link{A: pci, B: n, Kind: cluster.PCIe, Lanes: 16, GTs: 32})
			gpu, nic = gpu+1, nic+1
		}
	}
	t.Connect(cluster.Link{A: numas[0], B: numas[1], Kind: cluster.SMP})
	v := t.Add(sw)
	for _, g := range t.Of(cluster.GPU) {
		t.Connect(cluster.Link{A: g, B: v, Kind: cluster.NVLink, Lanes: 18})
	}
	return t
}

func write(t *testing.T, nt *cluster.NodeType) string {
	t.Helper()
	var out strings.Builder
	if err := writeOne(&out, nt); err != nil {
		t.Fatal(err)
	}
	if err := accepted(out.String()); err != nil {
		t.Errorf("%v in\n%s", err, out.String())
	}
	return out.String()
}

// TestWriteDescribed holds a node without addresses and names to what NCCL reads of it: the devices in their places
// with their links, under addresses and names that no machine has.
func TestWriteDescribed(t *testing.T) {
	was := server()
	text := write(t, was)
	now := read(t, text).Types[0]
	same(t, was, now)
	for _, want := range []string{
		`<pci busid="fffe:01:00.0" class="0x060400"`,
		`<nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/>`, `link_speed="32.0 GT/s PCIe" link_width="16"`,
		`<net name="unnamed-nic0-0" dev="0" latency="0" speed="400000" port="1" gdr="1"/>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// TestWriteMadeUpDomain keeps made-up addresses apart from real ones.
func TestWriteMadeUpDomain(t *testing.T) {
	nt := server()
	nt.Devices[nt.ByName("gpu0")].PCI = "fffe:01:00.0"
	nt.Devices[nt.ByName("gpu1")].PCI = "fffe:01:00.0" // twice: only one can be true
	now := read(t, write(t, nt)).Types[0]
	if a, b := now.Devices[now.ByName("gpu0")].PCI,
		now.Devices[now.ByName("gpu1")].PCI; a != "fffe:01:00.0" || b != "fffd:01:03.0" {
		t.Errorf("addresses %q and %q", a, b)
	}
}

func TestWriteDirect(t *testing.T) {
	nt := &cluster.NodeType{Name: "vm", Tree: cluster.Read}
	numa := nt.Add(cluster.Device{Kind: cluster.NUMA, Index: 0, Parent: -1})
	g := nt.Add(cluster.Device{
		Kind: cluster.GPU, Index: 0, Parent: numa, PCI: "0001:00:00.0", PCIID: &cluster.PCIID{Class: "030200"},
		GPU: &cluster.GPUInfo{Vendor: "nvidia"},
	})
	nt.Connect(cluster.Link{A: numa, B: g, Kind: cluster.PCIe})
	n := nt.Add(cluster.Device{
		Kind: cluster.NIC, Index: 0, Parent: numa, Label: "eth0",
		NIC: &cluster.NICInfo{Ports: []cluster.Port{{Label: "eth0"}}},
	})
	nt.Connect(cluster.Link{A: numa, B: n, Kind: cluster.PCIe})
	text := write(t, nt)
	if !strings.Contains(text, "    <nic>\n      <net name=\"eth0\"") ||
		!strings.Contains(text, "    <pci busid=\"0001:00:00.0\"") {
		t.Error(text)
	}
}

// TestWriteLoose writes GPUs of which nobody knows the NUMA domain under an
// unknown one, as NCCL does without /sys.
func TestWriteLoose(t *testing.T) {
	nt := &cluster.NodeType{Name: "gpus"}
	a := nt.Add(cluster.Device{Kind: cluster.GPU, Index: -1, Parent: -1})
	b := nt.Add(cluster.Device{Kind: cluster.GPU, Index: -1, Parent: -1})
	nt.Connect(cluster.Link{A: a, B: b, Kind: cluster.NVLink, Lanes: 4})
	text := write(t, nt)
	now := read(t, text).Types[0]
	if !strings.Contains(text, `<cpu numaid="-1">`) || now.Matrix().Class[0][1] != "NV4" {
		t.Errorf("%v\n%s", now.Matrix(), text)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(t *cluster.NodeType)
	}{
		{"gaudi", "gaudi-roce link gpu0–gpu1: NCCL has no word for it", func(t *cluster.NodeType) {
			t.Connect(cluster.Link{A: t.ByName("gpu0"), B: t.ByName("gpu1"), Kind: cluster.Gaudi, Lanes: 3})
		}},
		{"xgmi", "nvlink link gpu0–nvswitch0: RCCL has no word for it", func(t *cluster.NodeType) {
			t.Connect(cluster.Link{A: t.ByName("gpu0"), B: t.ByName("gpu1"), Kind: cluster.XGMI, Lanes: 3})
		}},
		{"no count", "nvlink link gpu0–gpu1: 0 links", func(t *cluster.NodeType) {
			t.Connect(cluster.Link{A: t.ByName("gpu0"), B: t.ByName("gpu1"), Kind: cluster.NVLink})
		}},
		{"far cpu", "nvlink link numa1–gpu0", func(t *cluster.NodeType) {
			t.Connect(cluster.Link{A: t.ByName("numa1"), B: t.ByName("gpu0"), Kind: cluster.NVLink, Lanes: 2})
		}},
		{"c2c rate", "c2c link numa0–gpu0: its rate is not known", func(t *cluster.NodeType) {
			t.Connect(cluster.Link{A: t.ByName("numa0"), B: t.ByName("gpu0"), Kind: cluster.C2C, Lanes: 10})
		}},
		{"c2c far", "c2c link numa1–gpu0: its rate is not known", func(t *cluster.NodeType) {
			t.Connect(cluster.Link{A: t.ByName("numa1"), B: t.ByName("gpu0"), Kind: cluster.C2C, Lanes: 10})
		}},
		{"sideways", "pcie link gpu0–gpu1", func(t *cluster.NodeType) {
			t.Connect(cluster.Link{A: t.ByName("gpu0"), B: t.ByName("gpu1"), Kind: cluster.PCIe})
		}},
		{"loose", "pcie link pci0–gpu0: NCCL has no word for it", func(t *cluster.NodeType) {
			t.Devices[t.ByName("gpu0")].Parent = -1
		}},
		{"loose without a link", "1 of its GPUs and NICs hang below no NUMA domain", func(t *cluster.NodeType) {
			t.Add(cluster.Device{Kind: cluster.GPU, Index: -1, Parent: -1, GPU: &cluster.GPUInfo{}})
		}},
		{
			"nested", "1 of its GPUs and NICs hang below no NUMA domain",
			func(t *cluster.NodeType) {
				t.Add(cluster.Device{Kind: cluster.NIC, Index: -1, Parent: t.ByName("gpu0")})
			},
		},
		{
			"makers", "gpu1 is amd's and others are nvidia's",
			func(t *cluster.NodeType) { t.Devices[t.ByName("gpu1")].GPU.Vendor = "amd" },
		},
		{"intel", "accelerators are Intel's", func(t *cluster.NodeType) {
			for _, g := range t.Of(cluster.GPU) {
				t.Devices[g].GPU.Vendor = "intel"
			}
		}},
		{"trays", "spans 3 hosts", func(t *cluster.NodeType) { t.Trays = 3 }},
		{"too many", "elements; NCCL's parser holds 255", func(t *cluster.NodeType) {
			for range 100 {
				t.Add(cluster.Device{Kind: cluster.GPU, Index: -1, Parent: t.ByName("numa0"), GPU: &cluster.GPUInfo{}})
			}
			for range 100 {
				t.Add(cluster.Device{Kind: cluster.NUMA, Index: -1, Parent: -1})
			}
		}},
		{"broken", "parent", func(t *cluster.NodeType) { t.Devices[1].Parent = 999 }},
	} {
		nt := server()
		c.change(nt)
		var out strings.Builder
		err := writeOne(&out, nt)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
		}
		if out.Len() > 0 {
			t.Errorf("%s: wrote %d bytes before refusing", c.name, out.Len())
		}
	}
}

func TestWriteOddText(t *testing.T) {
	nt := server()
	nt.Name = "a \"b\" <c> & -- \x00 ü" + strings.Repeat("x", 300)
	nt.Devices[nt.ByName("gpu0")].Model.Value = "--> <system version=\"1\"> end"
	now := read(t, write(t, nt))
	if len(now.Types) != 1 || now.Types[0].Count(cluster.GPU) != 4 {
		t.Errorf("%d types", len(now.Types))
	}
}

func TestMadeUp(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(t *cluster.NodeType)
	}{
		{"all known", "", func(*cluster.NodeType) {}},
		{"a NIC's", "", func(t *cluster.NodeType) { t.Devices[t.ByName("nic0")].PCI = "" }},
		{"a GPU's", "fffe", func(t *cluster.NodeType) { t.Devices[t.ByName("gpu3")].PCI = "" }},
		{"the domain is taken", "fffd", func(t *cluster.NodeType) {
			t.Devices[t.ByName("gpu2")].PCI = ""
			t.Devices[t.ByName("gpu3")].PCI = "fffe:01:00.0"
		}},
		{"refused", "", func(t *cluster.NodeType) { t.Trays, t.Devices[t.ByName("gpu3")].PCI = 3, "" }},
	} {
		nt := server()
		for k, g := range nt.Of(cluster.GPU) {
			nt.Devices[g].PCI = cluster.PCI(fmt.Sprintf("0000:%02x:00.0", 16+k))
		}
		c.change(nt)
		if got, _ := Write(io.Discard, nt); got != c.want {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
}
