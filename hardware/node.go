package hardware

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// nodeRow is a row of nodes.csv: the inside of a machine, without the models of
// its GPUs and NICs.
type nodeRow struct {
	Name      string         `csv:"name"`
	Origin    cluster.Origin `csv:"tree_origin"`
	Tree      tree           `csv:"tree"`
	Join      string         `csv:"join,optional"`
	GPUSlot   slot           `csv:"gpu_slot,optional"`    // default: the GPU's own
	Up        slot           `csv:"switch_slot,optional"` // from a root or switch to a switch; default: as GPUSlot
	Rate      unit.Rate      `csv:"link_GBps,optional"`   // of both, where no generation of PCIe has it
	Trays     int            `csv:"trays,optional"`       // default 1
	CPU       string         `csv:"cpu"`
	CPUID     cpuSpec        `csv:"cpu_id"`
	CPULists  []string       `csv:"cpulists"` // of a socket; + between its NUMA domains
	Memory    unit.Bytes     `csv:"numa_memory,optional"`
	GPUPCI    []string       `csv:"gpu_pci,optional"`
	SwitchPCI []string       `csv:"switch_pci,optional"`
	NICPCI    []string       `csv:"nic_pci,optional"`
	NICNames  []string       `csv:"nic_names,optional"`
	Source    string         `csv:"source"`
}

var nodeTable = sync.OnceValue(func() map[string]*nodeRow {
	return byName("nodes", func(r *nodeRow) string { return r.Name })
})

// fromPreset is the source of what a preset or a short description of a machine has from the catalogue.
const fromPreset = "preset"

// node makes the devices and links of a preset's node, rates still to be filled in.
func (p *preset) node() *cluster.NodeType {
	row := p.cards
	if row == nil {
		row = nodeTable()[p.Node]
	}
	if row == nil { // a GPU by name: one host and nothing else
		row = &nodeRow{Tree: treeOf("gpu")}
	}
	return row.node(mustGPU(p.GPU), cardTable()[p.NIC], fromPreset)
}

// node makes the devices and links of a row with GPUs and NICs; source is where their models are from.
func (r *nodeRow) node(gpu GPUModel, nic *card, source string) *cluster.NodeType {
	b := &treeBuilder{
		nodeRow: r, t: &cluster.NodeType{Tree: r.Origin}, gpu: gpu, nic: nic, source: source, made: map[string][]int{},
	}
	b.growTree(-1, r.Tree)
	b.joinGPUs()
	return b.t
}

// tree is what hangs on what: 2*socket(root(switch(gpu nic))).
type tree []branch

// branch is a device, or with an empty name a group, so many times.
type branch struct {
	count int
	name  string
	below tree
}

// treeOf is a tree that code wrote.
func treeOf(format string, args ...any) (t tree) {
	if err := t.UnmarshalText(fmt.Appendf(nil, format, args...)); err != nil {
		panic(err)
	}
	return t
}

// UnmarshalText reads a tree.
func (t *tree) UnmarshalText(text []byte) error {
	rest, err := t.parse(string(text))
	if err == nil && rest != "" {
		err = fmt.Errorf("%q: a ) without (", text)
	}
	return err
}

// parse reads branches up to the end or a ) and returns what follows.
func (t *tree) parse(s string) (string, error) {
	for s = strings.TrimLeft(s, " "); s != "" && s[0] != ')'; s = strings.TrimLeft(s, " ") {
		b := branch{count: 1}
		word := s[:len(s)-len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz0123456789*"))]
		s = s[len(word):]
		if count, name, ok := strings.Cut(word, "*"); ok {
			n, err := strconv.Atoi(count)
			if err != nil || n < 0 {
				return "", fmt.Errorf("%q: expected a count before *", word)
			}
			b.count, word = n, name
		}
		b.name = word
		if strings.HasPrefix(s, "(") {
			rest, err := b.below.parse(s[1:])
			if err != nil {
				return "", err
			}
			if rest == "" {
				return "", fmt.Errorf("%q: a ( without )", word)
			}
			s = rest[1:]
		} else if word == "" {
			return "", fmt.Errorf("%q: expected a device", s)
		}
		*t = append(*t, b)
	}
	return s, nil
}

// treeBuilder makes the devices of a tree, numbered in the order of its text.
type treeBuilder struct {
	*nodeRow
	t      *cluster.NodeType
	gpu    GPUModel
	nic    *card
	source string
	made   map[string][]int // by word, and NUMA domains of all sockets so far
}

func (b *treeBuilder) growTree(parent int, branches tree) {
	for _, x := range branches {
		for range x.count {
			b.growTree(b.addDevice(parent, x.name), x.below)
		}
	}
}

// addDevice adds a device and returns what its branches hang on. The lint of the
// tables builds every tree, so that a wrong name does not reach a user.
func (b *treeBuilder) addDevice(parent int, name string) int {
	word := strings.TrimRight(name, "0123456789")
	if word != name { // one that is there
		n, _ := strconv.Atoi(name[len(word):])
		return b.made[word][n]
	}
	d := cluster.Device{Index: -1, Parent: parent}
	if parent >= 0 {
		d.Tray = b.t.Devices[parent].Tray
	}
	var up cluster.Link
	switch word {
	case "":
		return parent
	case "smp": // before what follows; others have these links last
		joinNUMA(b.t)
		return parent
	case "socket":
		return b.addSocket()
	case "root":
		d.Kind, up.Kind = cluster.RootComplex, cluster.OnDie
	case "switch":
		d.Kind, d.PCI = cluster.PCISwitch, address(at(b.SwitchPCI, len(b.made[word])))
		up = b.slotLink(cmp.Or(b.Up, b.gpuSlot()))
	case "gpu":
		b.describeGPU(&d)
		up = b.slotLink(b.gpuSlot())
	case "c2c":
		row, _ := InterconnectByName(b.gpu.C2C)
		b.describeGPU(&d)
		up = cluster.Link{Kind: cluster.C2C, Lanes: row.Links}
	case "nic":
		b.describeNIC(&d)
		up = b.nic.Slot.link()
	case "port":
		speed, _ := ParsePortSpeed(b.nic.Speed)
		b.describeNIC(&d)
		up = cluster.Link{
			Kind: cluster.Direct, Rate: cluster.FromSpec(unit.Rate(b.nic.Ports)*speed.Rate, b.gpu.Source),
		}
	default:
		panic(fmt.Sprintf("hardware/data/nodes.csv: %s: no device is called %q", b.Name, name))
	}
	id := b.t.Add(d)
	b.made[word] = append(b.made[word], id)
	if up.A, up.B = parent, id; parent >= 0 {
		b.t.Connect(up)
	}
	if gpus := b.made["gpu"]; word == "port" {
		up.A, up.Lanes = gpus[len(gpus)-1], b.nic.Ports
		b.t.Connect(up)
	}
	return id
}

func (b *treeBuilder) gpuSlot() slot { return cmp.Or(b.GPUSlot, slot{b.gpu.PCIeGen, b.gpu.Lanes}) }

// slotLink is a link of the PCIe tree, with the rate of the row where it has one.
func (b *treeBuilder) slotLink(s slot) cluster.Link {
	l := s.link()
	if b.Rate > 0 {
		l.Rate, l.Duplex = cluster.FromSpec(b.Rate, b.Source), 2*b.Rate
	}
	return l
}

// addSocket adds a socket and its NUMA domains, and returns the first of them.
func (b *treeBuilder) addSocket() int {
	k := b.t.Count(cluster.Socket)
	d := cluster.Device{Kind: cluster.Socket, Index: k, Parent: -1}
	if b.CPUID != (cpuSpec{}) {
		d.Model, d.CPU = cluster.FromSpec(b.CPU, b.source), b.CPUID.info()
	}
	socket := b.t.Add(d)
	first := len(b.made["numa"])
	for _, cores := range strings.Split(at(b.CPULists, k), "+") {
		d := cluster.Device{Kind: cluster.NUMA, Index: b.t.Count(cluster.NUMA), Parent: socket}
		if b.CPUID != (cpuSpec{}) || cores != "" {
			d.CPU = b.CPUID.info()
			d.CPU.Cores = cores
		}
		if b.Memory > 0 {
			d.CPU.Memory = cluster.FromSpec(b.Memory, b.source)
		}
		b.made["numa"] = append(b.made["numa"], b.t.Add(d))
	}
	return b.made["numa"][first]
}

// describeGPU makes a device one of the row's GPUs. What it answers on the bus is known of the machines of the
// catalogue; a file that names a model says nothing about it.
func (b *treeBuilder) describeGPU(d *cluster.Device) {
	k := b.t.Count(cluster.GPU)
	d.Kind, d.Index, d.PCI = cluster.GPU, k, address(at(b.GPUPCI, k))
	d.Model, d.GPU = cluster.FromSpec(b.gpu.Title, b.source), &cluster.GPUInfo{Vendor: b.gpu.Vendor}
	if b.source == fromPreset {
		d.PCIID = pciID(b.gpu.PCI, "030200")
	}
}

// describeNIC makes a device one of the row's network cards.
func (b *treeBuilder) describeNIC(d *cluster.Device) {
	c, k := b.nic, b.t.Count(cluster.NIC)
	d.Kind, d.Index, d.PCI, d.Label = cluster.NIC, k, address(at(b.NICPCI, k)), at(b.NICNames, k)
	d.NIC = &cluster.NICInfo{Kind: c.Kind, GDR: c.GDR}
	class, layer := "020000", "Ethernet"
	if c.Kind == cluster.InfiniBand {
		class, layer = "020700", "InfiniBand"
	}
	for i := range max(c.Ports, 1) {
		p := cluster.Port{Num: i + 1, Layer: layer, Speed: c.Speed}
		switch speed, _ := ParsePortSpeed(c.Speed); {
		case c.rate.Known():
			p = cluster.Port{Num: i + 1, Rate: c.rate}
		case c.Origin == cluster.Assumed:
			p.Speed, p.Rate = "", cluster.FromAssumed(speed.Rate, "not published")
		}
		if c.MTU > 0 {
			p.MTU = cluster.FromSpec(c.MTU, b.source)
		}
		d.NIC.Ports = append(d.NIC.Ports, p)
	}
	if m, ok := NICByName(c.Model); ok {
		d.Model, d.PCIID = cluster.FromSpec(m.Name, b.source), pciID(m.PCI, class)
	}
}

// cube is the hybrid cube mesh of eight V100 (NVIDIA DGX-1 system architecture white paper, 2017).
const cube = "0-1x1 0-2x1 0-3x2 0-4x2 1-2x2 1-3x1 1-5x2 2-3x2 2-6x1 3-7x1 4-5x1 4-6x1 4-7x2 5-6x2 5-7x1 6-7x2"

// joinGPUs repeats the tray and links its GPUs to each other.
func (b *treeBuilder) joinGPUs() {
	how, number, _ := strings.Cut(b.Join, " ")
	links, _ := strconv.Atoi(number)
	if how == "nvswitches" {
		b.addNVSwitch()
	}
	b.repeatTray()
	gpus := b.t.Of(cluster.GPU)
	group := max(2, len(gpus)) // that are joined, each with each
	switch how {
	case "", "none":
		return
	case "nvswitch":
		b.addNVSwitch()
		return
	case "nvswitches":
		b.addUplinks(links)
		return
	case "no": // peer access, which the driver refuses
		setPeers(b.t, cluster.No, cluster.Assumed)
		return
	case "mesh":
		links = max(1, cmp.Or(links, b.gpu.Links/(group-1)))
	case "bridge":
		group = cmp.Or(links, b.gpu.Bridged, 2)
		links = max(1, b.gpu.Links/(group-1))
	case "cube":
		b.joinPairs(cube)
		return
	default:
		b.joinPairs(b.Join)
		return
	}
	for i, a := range gpus {
		for _, c := range gpus[i+1 : min(len(gpus), i/group*group+group)] {
			b.t.Connect(cluster.Link{A: a, B: c, Kind: b.gpu.LinkKind, Lanes: links})
		}
	}
}

// joinPairs links pairs of GPUs, by position: 0-1x4 are four links.
func (b *treeBuilder) joinPairs(pairs string) {
	gpus := b.t.Of(cluster.GPU)
	for _, p := range strings.Fields(pairs) {
		var x, y, links int
		if _, err := fmt.Sscanf(p, "%d-%dx%d", &x, &y, &links); err != nil {
			panic(fmt.Sprintf("hardware/data/nodes.csv: %s: GPUs are not joined by %q", b.Name, b.Join))
		}
		b.t.Connect(cluster.Link{A: gpus[x], B: gpus[y], Kind: b.gpu.LinkKind, Lanes: links})
	}
}

// addNVSwitch adds the device that stands for all NVSwitches of a node and joins
// every GPU to it.
func (b *treeBuilder) addNVSwitch() {
	sw := b.t.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
	for _, g := range b.t.Of(cluster.GPU) {
		b.t.Connect(cluster.Link{A: g, B: sw, Kind: b.gpu.LinkKind, Lanes: b.gpu.Links})
	}
}

// addUplinks joins the NVSwitches of trays by switches of a second level, with so many links each.
func (b *treeBuilder) addUplinks(links int) {
	rate := unit.Rate(links) * b.gpu.Link
	trays := b.t.Of(cluster.NVSwitch)
	second := b.t.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
	for _, sw := range trays {
		b.t.Connect(cluster.Link{
			A: sw, B: second, Kind: cluster.NVLink, Lanes: links, Duplex: 2 * rate, Rate: cluster.FromSpec(rate, b.Source),
		})
	}
}

// repeatTray makes a rack of equal trays. Names count through the rack; labels and
// addresses are left out because every tray has the same ones; indexes are those
// that the tray's own operating system gives.
func (b *treeBuilder) repeatTray() {
	if b.Trays <= 1 {
		return
	}
	tray := b.t
	b.t = &cluster.NodeType{Tree: tray.Tree, Trays: b.Trays}
	for n := range b.Trays {
		base := len(b.t.Devices)
		for _, d := range tray.Devices {
			d.Name, d.Label, d.PCI, d.Tray = "", "", "", n
			if d.Parent >= 0 {
				d.Parent += base
			}
			b.t.Add(d)
		}
		for _, l := range tray.Links {
			l.A, l.B = l.A+base, l.B+base
			b.t.Connect(l)
		}
	}
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

// cpuSpec is a processor as far as its links and NCCL's files go. Family is in
// NCCL's spelling: base + (extended<<4).
type cpuSpec struct {
	arch, vendor  string
	family, model int
}

// UnmarshalText reads x86_64 GenuineIntel 6 143, or arm64 alone.
func (c *cpuSpec) UnmarshalText(text []byte) error {
	if n, _ := fmt.Sscan(string(text), &c.arch, &c.vendor, &c.family, &c.model); n != 1 && n != 4 {
		return fmt.Errorf("%q; expected an architecture, vendor, family and model", text)
	}
	return nil
}

func (c cpuSpec) info() *cluster.CPUInfo {
	return &cluster.CPUInfo{Arch: c.arch, Vendor: c.vendor, Family: c.family, Model: c.model}
}

// slot is a PCIe link: generation and lanes.
type slot struct{ gen, lanes int }

// UnmarshalText reads a slot such as 5x16.
func (s *slot) UnmarshalText(text []byte) error {
	if n, err := fmt.Sscanf(string(text), "%dx%d", &s.gen, &s.lanes); n < 2 || err != nil {
		return fmt.Errorf("%q; expected a slot such as 5x16", text)
	}
	return nil
}

func (s slot) link() cluster.Link {
	return cluster.Link{Kind: cluster.PCIe, Lanes: s.lanes, GTs: PCIeSpeed(s.gen)}
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

	rate cluster.Fact[unit.Rate] // of a port, instead of Speed
}

var cardTable = sync.OnceValue(func() map[string]*card {
	return byName("cards", func(c *card) string { return c.Name })
})

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
