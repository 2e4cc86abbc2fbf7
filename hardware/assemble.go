package hardware

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// cpuSpec is a processor as far as its links and NCCL's files go. Family is in
// NCCL's spelling: base + (extended<<4).
type cpuSpec struct {
	name, arch, vendor string
	family, model      int
}

// UnmarshalText reads all but the name: x86_64 GenuineIntel 6 143, or arm64 alone.
func (c *cpuSpec) UnmarshalText(text []byte) error {
	if n, _ := fmt.Sscan(string(text), &c.arch, &c.vendor, &c.family, &c.model); n != 1 && n != 4 {
		return fmt.Errorf("%q; expected an architecture, vendor, family and model", text)
	}
	return nil
}

func intel(name string, model int) cpuSpec {
	return cpuSpec{"Intel Xeon " + name, "x86_64", "GenuineIntel", 6, model}
}

func epyc(name string, family, model int) cpuSpec {
	return cpuSpec{"AMD EPYC " + name, "x86_64", "AuthenticAMD", family, model}
}

func grace() cpuSpec { return cpuSpec{name: "NVIDIA Grace", arch: "arm64"} }

// newNode starts a node type.
func newNode(tree cluster.Origin) *cluster.NodeType { return &cluster.NodeType{Tree: tree} }

// addSocket adds a socket and its NUMA domains, one for every cpulist, and
// returns the domains. Memory is per domain; 0 unknown.
func addSocket(t *cluster.NodeType, cpu cpuSpec, memory unit.Bytes, cores ...string) []int {
	socket := t.Add(cluster.Device{
		Kind: cluster.Socket, Index: t.Count(cluster.Socket), Parent: -1,
		Model: cluster.FromSpec(cpu.name, "preset"),
		CPU:   &cluster.CPUInfo{Arch: cpu.arch, Vendor: cpu.vendor, Family: cpu.family, Model: cpu.model},
	})
	var numa []int
	for _, list := range cores {
		info := &cluster.CPUInfo{Arch: cpu.arch, Vendor: cpu.vendor, Family: cpu.family, Model: cpu.model, Cores: list}
		if memory > 0 {
			info.Memory = cluster.FromSpec(memory, "preset")
		}
		numa = append(numa, t.Add(cluster.Device{
			Kind: cluster.NUMA, Index: t.Count(cluster.NUMA), Parent: socket, CPU: info,
		}))
	}
	return numa
}

// joinNUMA links every pair of NUMA domains of one tray.
func joinNUMA(t *cluster.NodeType) {
	ids := t.Of(cluster.NUMA)
	for i, a := range ids {
		for _, b := range ids[i+1:] {
			if t.Devices[a].Tray == t.Devices[b].Tray {
				t.Connect(cluster.Link{A: a, B: b, Kind: cluster.SMP})
			}
		}
	}
}

func addRoot(t *cluster.NodeType, numa int) int {
	root := t.Add(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: numa, Tray: t.Devices[numa].Tray})
	t.Connect(cluster.Link{A: numa, B: root, Kind: cluster.OnDie})
	return root
}

// slot is a PCIe link: generation and lanes.
type slot struct{ gen, lanes int }

// UnmarshalText reads a slot such as 5x16.
func (s *slot) UnmarshalText(text []byte) error {
	gen, lanes, _ := strings.Cut(string(text), "x")
	var err, err2 error
	s.gen, err = strconv.Atoi(gen)
	s.lanes, err2 = strconv.Atoi(lanes)
	if err != nil || err2 != nil {
		return fmt.Errorf("%q; expected a slot such as 5x16", text)
	}
	return nil
}

func (s slot) link(parent, child int) cluster.Link {
	return cluster.Link{A: parent, B: child, Kind: cluster.PCIe, Lanes: s.lanes, GTs: PCIeSpeed(s.gen)}
}

func addSwitch(t *cluster.NodeType, parent int, s slot) int {
	sw := t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: parent, Tray: t.Devices[parent].Tray})
	t.Connect(s.link(parent, sw))
	return sw
}

// addGPU adds a GPU on a PCIe slot. pci may be empty: unknown.
func addGPU(t *cluster.NodeType, parent int, m GPUModel, s slot, pci string) int {
	g := addChip(t, parent, m, pci)
	t.Connect(s.link(parent, g))
	return g
}

// addChip adds a GPU without a link to its parent.
func addChip(t *cluster.NodeType, parent int, m GPUModel, pci string) int {
	d := cluster.Device{
		Kind: cluster.GPU, Index: t.Count(cluster.GPU), Parent: parent, PCI: address(pci), PCIID: pciID(m.PCI, "030200"),
		Model: cluster.FromSpec(m.Title, "preset"), GPU: &cluster.GPUInfo{Vendor: m.Vendor},
	}
	if parent >= 0 {
		d.Tray = t.Devices[parent].Tray
	}
	return t.Add(d)
}

// card is a network card as a preset carries it: a row of cards.csv.
type card struct {
	Name   string          `csv:"name"`
	Model  string          `csv:"nic,optional"` // name in nics.csv
	Kind   cluster.NetKind `csv:"network"`
	Speed  string          `csv:"port"` // of one port
	Origin cluster.Origin  `csv:"port_origin,optional"`
	Ports  int             `csv:"ports,optional"` // default 1
	Slot   slot            `csv:"slot,optional"`
	MTU    int             `csv:"mtu,optional"` // 0 unknown
	GDR    cluster.Tri     `csv:"gdr,optional"`
	Source string          `csv:"source"`
}

var cardTable = sync.OnceValue(func() map[string]*card {
	return byName("cards", func(c *card) string { return c.Name })
})

// addNIC adds a network card. pci and label may be empty.
func addNIC(t *cluster.NodeType, parent int, c *card, pci, label string) int {
	n := addPort(t, parent, c, pci, label)
	t.Connect(c.Slot.link(parent, n))
	return n
}

// addPort adds a network card without a link to its parent.
func addPort(t *cluster.NodeType, parent int, c *card, pci, label string) int {
	info := &cluster.NICInfo{Kind: c.Kind, GDR: c.GDR}
	class := "020000"
	if c.Kind == cluster.InfiniBand {
		class = "020700"
	}
	for i := range max(c.Ports, 1) {
		p := cluster.Port{Num: i + 1, Layer: "Ethernet"}
		if c.Origin == cluster.Assumed {
			rate, _ := ParsePortSpeed(c.Speed)
			p.Rate = cluster.FromAssumed(rate.Rate, "not published")
		} else {
			p.Speed = c.Speed
		}
		if c.Kind == cluster.InfiniBand {
			p.Layer = "InfiniBand"
		}
		if c.MTU > 0 {
			p.MTU = cluster.FromSpec(c.MTU, "preset")
		}
		info.Ports = append(info.Ports, p)
	}
	d := cluster.Device{
		Kind: cluster.NIC, Index: t.Count(cluster.NIC), Label: label, Parent: parent, Tray: t.Devices[parent].Tray,
		PCI: address(pci), NIC: info,
	}
	if m, ok := NICByName(c.Model); ok {
		d.Model = cluster.FromSpec(m.Name, "preset")
		d.PCIID = pciID(m.PCI, class)
	}
	return t.Add(d)
}

// address is a published PCI address; the empty text and a wrong one are unknown.
func address(s string) cluster.PCI {
	p, err := cluster.ParsePCI(s)
	if err != nil {
		return ""
	}
	return p
}

// pciID is what the device answers on the bus, where the catalogue knows.
func pciID(ids []string, class string) *cluster.PCIID {
	if len(ids) == 0 {
		return nil
	}
	vendor, device, _ := strings.Cut(ids[0], ":")
	return &cluster.PCIID{Class: class, Vendor: vendor, Device: device}
}

// addNVSwitch adds the device that stands for all NVSwitches of a node and joins
// every GPU to it.
func addNVSwitch(t *cluster.NodeType, links int) {
	sw := t.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
	for _, g := range t.Of(cluster.GPU) {
		t.Connect(cluster.Link{A: g, B: sw, Kind: cluster.NVLink, Lanes: links})
	}
}

// mesh joins GPU a to GPU b (positions) by links, for every {a, b, links}.
func mesh(t *cluster.NodeType, kind cluster.LinkKind, edges ...[3]int) {
	gpus := t.Of(cluster.GPU)
	for _, e := range edges {
		t.Connect(cluster.Link{A: gpus[e[0]], B: gpus[e[1]], Kind: kind, Lanes: e[2]})
	}
}

// fullMesh joins every pair of GPUs by the same number of links.
func fullMesh(t *cluster.NodeType, kind cluster.LinkKind, links int) {
	n := t.Count(cluster.GPU)
	for a := range n {
		for b := a + 1; b < n; b++ {
			mesh(t, kind, [3]int{a, b, links})
		}
	}
}

// at is the i-th text of a list, "" beyond its end. A list of one text with a * is
// numbered: mlx5_* is mlx5_0, mlx5_1, ….
func at(list []string, i int) string {
	if len(list) == 1 && strings.HasSuffix(list[0], "*") {
		return strings.TrimSuffix(list[0], "*") + strconv.Itoa(i)
	}
	if i < len(list) {
		return list[i]
	}
	return ""
}

// mustGPU is the catalogue's row of that short name. Presets name only rows that
// exist; a test builds every one of them.
func mustGPU(name string) GPUModel {
	x := gpuTable()
	i, ok := x.short[name]
	if !ok {
		return GPUModel{Name: name, Title: name}
	}
	return x.row(i)
}
