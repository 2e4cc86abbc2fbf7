package hardware

import (
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
	Name     string         `csv:"name"`
	Origin   cluster.Origin `csv:"tree_origin"`
	Tree     tree           `csv:"tree"`
	Join     string         `csv:"join,optional"`
	GPUSlot  slot           `csv:"gpu_slot,optional"`
	Up       slot           `csv:"switch_slot,optional"` // from a root or switch to a switch
	CPU      string         `csv:"cpu"`
	CPUID    cpuSpec        `csv:"cpu_id"`
	CPULists []string       `csv:"cpulists"` // of a socket; + between its NUMA domains
	Memory   unit.Bytes     `csv:"numa_memory,optional"`
	GPUPCI   []string       `csv:"gpu_pci,optional"`
	NICPCI   []string       `csv:"nic_pci,optional"`
	NICNames []string       `csv:"nic_names,optional"`
	Source   string         `csv:"source"`
}

var nodeTable = sync.OnceValue(func() map[string]*nodeRow {
	return byName("nodes", func(r *nodeRow) string { return r.Name })
})

// node makes the devices and links of a preset's node, rates still to be filled in.
func (p *preset) node() *cluster.NodeType {
	gpu, nic := mustGPU(p.GPU), cardTable()[p.NIC]
	if special := specialNodes[p.Node]; special != nil {
		return special(gpu, nic)
	}
	row := nodeTable()[p.Node]
	switch {
	case row != nil:
	case p.cards > 0:
		return cardNode(gpu, p.cards)
	default: // a GPU by name: one host and nothing else
		t := newNode(cluster.Unknown)
		addChip(t, -1, gpu, "")
		return t
	}
	return row.node(gpu, nic)
}

func (r *nodeRow) node(gpu GPUModel, nic *card) *cluster.NodeType {
	b := &treeBuilder{row: r, t: newNode(r.Origin), gpu: gpu, nic: nic}
	b.add(-1, r.Tree)
	b.join()
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
			if err != nil || n < 1 {
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
	row  *nodeRow
	t    *cluster.NodeType
	gpu  GPUModel
	nic  *card
	numa []int // of all sockets so far
}

func (b *treeBuilder) add(parent int, branches tree) {
	for _, x := range branches {
		for range x.count {
			b.add(b.device(parent, x.name), x.below)
		}
	}
}

// device adds a device and returns what its branches hang on. The lint of the
// tables builds every tree, so that a wrong name does not reach a user.
func (b *treeBuilder) device(parent int, name string) int {
	switch name {
	case "":
		return parent
	case "socket":
		cpu := b.row.CPUID
		cpu.name = b.row.CPU
		lists := b.row.CPULists[b.t.Count(cluster.Socket)]
		domains := addSocket(b.t, cpu, b.row.Memory, strings.Split(lists, "+")...)
		b.numa = append(b.numa, domains...)
		return domains[0]
	case "root":
		return addRoot(b.t, parent)
	case "switch":
		return addSwitch(b.t, parent, b.row.Up)
	case "gpu":
		return addGPU(b.t, parent, b.gpu, b.row.GPUSlot, at(b.row.GPUPCI, b.t.Count(cluster.GPU)))
	case "c2c":
		return addC2C(b.t, parent, b.gpu, superchipLinks)
	case "nic":
		k := b.t.Count(cluster.NIC)
		return addNIC(b.t, parent, b.nic, at(b.row.NICPCI, k), at(b.row.NICNames, k))
	}
	domain, err := strconv.Atoi(strings.TrimPrefix(name, "numa"))
	if err != nil {
		panic(fmt.Sprintf("hardware/data/nodes.csv: %s: no device is called %q", b.row.Name, name))
	}
	return b.numa[domain]
}

// join links the GPUs to each other.
func (b *treeBuilder) join() {
	how, links, _ := strings.Cut(b.row.Join, " ")
	switch how {
	case "":
	case "nvswitch":
		addNVSwitch(b.t, b.gpu.Links)
	case "cube":
		mesh(b.t, cluster.NVLink, cubeMesh()...)
	case "mesh":
		n, _ := strconv.Atoi(links)
		fullMesh(b.t, b.gpu.LinkKind, n)
	case "no": // peer access, which the driver refuses
		refusePeers(b.t)
	default:
		panic(fmt.Sprintf("hardware/data/nodes.csv: %s: GPUs are not joined by %q", b.row.Name, b.row.Join))
	}
}

// refusePeers says of all pairs of GPUs that the driver refuses peer access.
func refusePeers(t *cluster.NodeType) {
	gpus := t.Of(cluster.GPU)
	for _, x := range gpus {
		for _, y := range gpus {
			if x != y {
				t.Pairs = append(t.Pairs, cluster.Pair{
					A: x, B: y, P2P: cluster.No, Why: "not supported on GeForce cards of this generation",
				})
			}
		}
	}
}

// cubeMesh is the hybrid cube mesh of eight V100: GPU, GPU, links (NVIDIA DGX-1
// system architecture white paper, 2017).
func cubeMesh() [][3]int {
	return [][3]int{
		{0, 1, 1},
		{0, 2, 1},
		{0, 3, 2},
		{0, 4, 2},
		{1, 2, 2},
		{1, 3, 1},
		{1, 5, 2},
		{2, 3, 2},
		{2, 6, 1},
		{3, 7, 1},
		{4, 5, 1},
		{4, 6, 1},
		{4, 7, 2},
		{5, 6, 2},
		{5, 7, 1},
		{6, 7, 2},
	}
}

// Module says that a GPU comes on a board with its links, as SXM does: a card has them only over a bridge, or not at
// all.
func (m GPUModel) Module() bool {
	if m.Links == 0 {
		return false
	}
	title := strings.ToUpper(m.Title)
	if m.LinkKind != cluster.NVLink || strings.Contains(title, "SXM") || strings.Contains(title, "HBM3") {
		return true
	}
	for _, name := range []string{"H200", "H20", "B200", "B300", "GB200"} {
		if strings.Contains(title, name) && !strings.Contains(title, "NVL") {
			return true
		}
	}
	return false
}

// socketCards are the cards that one processor takes: seven slots of x16 at most, of which some are for NICs and disks.
const socketCards = 4

// cardNode is a server or workstation with so many PCIe cards: each on a root port of its own, no NVLink bridge and no
// NIC.
func cardNode(m GPUModel, n int) *cluster.NodeType {
	t := newNode(cluster.Assumed)
	sockets := 1
	if n > socketCards {
		sockets = 2
	}
	for s := range sockets {
		numa := addSocket(t, cpuSpec{arch: "x86_64"}, 0, "")[0]
		for range (n*(s+1))/sockets - (n*s)/sockets {
			addGPU(t, addRoot(t, numa), m, slot{m.PCIeGen, 16}, "")
		}
	}
	if m.GDR == cluster.No { // GeForce
		refusePeers(t)
	}
	return t
}

// cardsNode says in words what cardNode assumes.
func cardsNode(m GPUModel, n int) string {
	where := "one socket"
	if n > socketCards {
		where = "two sockets"
	}
	peers := "no NVLink bridge"
	switch {
	case m.GDR == cluster.No:
		peers = "no peer access"
	case m.Links == 0:
		peers = "no NVLink"
	}
	return fmt.Sprintf("PCIe %d.0 x16 cards on root ports of %s, %s, no NIC (--nic 10GbE gives one); a cluster file or "+
		"nvidia-smi topo -m says otherwise", m.PCIeGen, where, peers)
}

// specialNodes are machines that a row of nodes.csv cannot say: links with rates
// of their own, devices out of the order of their tree, racks of trays.
var specialNodes = map[string]func(gpu GPUModel, nic *card) *cluster.NodeType{
	"dgx-a100":   dgxA100,
	"frontier":   frontier,
	"gaudi":      gaudi,
	"nvl256":     nvl256,
	"nvl72":      func(gpu GPUModel, nic *card) *cluster.NodeType { return nvl72(gpu, 18, nic) },
	"nvl72-tray": func(gpu GPUModel, nic *card) *cluster.NodeType { return nvl72(gpu, 1, nic) },
}

// dgxA100 has four NUMA domains a socket; two GPUs and two NICs hang on one
// two-level PCIe switch in every other domain. Each pair is PXB, as nvidia-smi
// prints it.
func dgxA100(m GPUModel, nic *card) *cluster.NodeType {
	t := newNode(cluster.Spec)
	var numa []int
	for s := range 2 {
		var lists []string
		for q := range 4 {
			first := 64*s + 16*q
			lists = append(lists, fmt.Sprintf("%d-%d,%d-%d", first, first+15, first+128, first+143))
		}
		numa = append(numa, addSocket(t, epyc("7742", 143, 49), 0, lists...)...)
	}
	s := slot{4, 16}
	for _, g := range []struct {
		numa                 int
		switches, gpus, nics [2]string // PCI addresses
		names                [2]string // of the NICs
	}{
		{
			3,
			[2]string{"03:00.0", "0a:00.0"},
			[2]string{"07:00.0", "0f:00.0"},
			[2]string{"0c:00.0", "12:00.0"},
			[2]string{"mlx5_0", "mlx5_1"},
		},
		{
			1,
			[2]string{"43:00.0", "49:00.0"},
			[2]string{"47:00.0", "4e:00.0"},
			[2]string{"4b:00.0", "54:00.0"},
			[2]string{"mlx5_2", "mlx5_3"},
		},
		{
			7,
			[2]string{"83:00.0", "8b:00.0"},
			[2]string{"87:00.0", "90:00.0"},
			[2]string{"8d:00.0", "94:00.0"},
			[2]string{"mlx5_6", "mlx5_7"},
		},
		{
			5,
			[2]string{"b3:00.0", "b8:00.0"},
			[2]string{"b7:00.0", "bd:00.0"},
			[2]string{"ba:00.0", "cc:00.0"},
			[2]string{"mlx5_8", "mlx5_9"},
		},
	} {
		top := addSwitch(t, addRoot(t, numa[g.numa]), s)
		first, second := addSwitch(t, top, s), addSwitch(t, top, s)
		t.Devices[first].PCI, t.Devices[second].PCI = address(g.switches[0]), address(g.switches[1])
		addGPU(t, addSwitch(t, first, s), m, s, g.gpus[0])
		addGPU(t, addSwitch(t, second, s), m, s, g.gpus[1])
		addNIC(t, second, nic, g.nics[0], g.names[0])
		addNIC(t, first, nic, g.nics[1], g.names[1])
	}
	addNVSwitch(t, m.Links)
	return t
}

// frontier is one socket with four NUMA domains; each holds one MI250X module,
// two dies that software sees as two GPUs. The NIC hangs on the second die. An
// Infinity Fabric link of 36 GB/s joins a die to the CPU.
func frontier(m GPUModel, nic *card) *cluster.NodeType {
	t := newNode(cluster.Spec)
	numa := addSocket(t, epyc("7A53", 175, 48), 128*unit.GiB, "0-15,64-79", "16-31,80-95", "32-47,96-111", "48-63,112-127")
	gpuPCI := []string{"c1:00.0", "c5:00.0", "c9:00.0", "cd:00.0", "d1:00.0", "d5:00.0", "d9:00.0", "dd:00.0"}
	rate := cluster.FromSpec(36*unit.GBps, "OLCF, Frontier user guide, 2024: 36+36 GB/s CPU to GCD")
	connect := func(a, b int) {
		t.Connect(cluster.Link{A: a, B: b, Kind: cluster.PCIe, Lanes: 16, Rate: rate, Duplex: 2 * rate.Value})
	}
	for module, domain := range []int{3, 1, 0, 2} {
		root := addRoot(t, numa[domain])
		connect(root, addChip(t, root, m, gpuPCI[2*module]))
		sw := t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: root})
		connect(root, sw)
		connect(sw, addChip(t, sw, m, gpuPCI[2*module+1]))
		addNIC(t, sw, nic, "", fmt.Sprintf("cxi%d", module))
	}
	mesh(t, cluster.XGMI,
		[3]int{0, 1, 4}, [3]int{2, 3, 4}, [3]int{4, 5, 4}, [3]int{6, 7, 4},
		[3]int{0, 6, 2}, [3]int{2, 4, 2}, [3]int{0, 2, 1}, [3]int{4, 6, 1},
		[3]int{1, 3, 1}, [3]int{1, 5, 1}, [3]int{3, 7, 1}, [3]int{5, 7, 1})
	return t
}

// gaudi joins eight cards by three Ethernet links a pair. The three scale-out
// ports of a card are a NIC that the card reaches without PCIe.
func gaudi(m GPUModel, nic *card) *cluster.NodeType {
	t := newNode(cluster.Assumed)
	p, _ := ParsePortSpeed(nic.Speed)
	rate := cluster.FromSpec(unit.Rate(nic.Ports)*p.Rate, m.Source)
	s := slot{m.PCIeGen, m.Lanes}
	for h, cores := range []string{"0-39,80-119", "40-79,120-159"} {
		numa := addSocket(t, intel("Platinum 8380", 106), 0, cores)[0]
		for k := range 4 {
			sw := addSwitch(t, addRoot(t, numa), s)
			g := addGPU(t, sw, m, s, "")
			n := addPort(t, sw, nic, "", fmt.Sprintf("hbl_%d", 4*h+k))
			t.Connect(cluster.Link{A: sw, B: n, Kind: cluster.Direct, Rate: rate})
			t.Connect(cluster.Link{A: g, B: n, Kind: cluster.Direct, Lanes: nic.Ports, Rate: rate})
		}
	}
	fullMesh(t, cluster.Gaudi, 3)
	return t
}

// superchipLinks are the NVLink-C2C links between a Grace and the one GPU of a
// GH200 (NVLink-C2C GH200 in links.csv).
const superchipLinks = 10

// addC2C adds a GPU that hangs on its CPU by NVLink-C2C.
func addC2C(t *cluster.NodeType, numa int, m GPUModel, links int) int {
	g := addChip(t, numa, m, "")
	t.Connect(cluster.Link{A: numa, B: g, Kind: cluster.C2C, Lanes: links})
	return g
}

// nvl72 is the NVLink domain: trays of two Grace with two GPUs and two NICs each,
// every GPU with all its links on one NVSwitch device.
func nvl72(m GPUModel, trays int, nic *card) *cluster.NodeType {
	tray := newNode(cluster.Spec)
	for s := range 2 {
		numa := addSocket(tray, grace(), 0, fmt.Sprintf("%d-%d", 72*s, 72*s+71))[0]
		for range 2 {
			addC2C(tray, numa, m, superchipLinks/2)
			addNIC(tray, addRoot(tray, numa), nic, "", "")
		}
	}
	t := repeatTray(tray, trays)
	addNVSwitch(t, m.Links)
	return t
}

// nvl256 is the NVLink network of 32 DGX H100: the NVSwitches of a node have 72
// links to switches of a second level, four to each of 18, so that half of what
// its GPUs have leaves the node.
func nvl256(m GPUModel, nic *card) *cluster.NodeType {
	const nodes, uplinks = 32, 72
	t := repeatTray(nodeTable()["dgx-h100"].node(m, nic), nodes)
	rate := unit.Rate(uplinks) * m.Link
	second := t.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
	for i := range second {
		if t.Devices[i].Kind == cluster.NVSwitch {
			t.Connect(cluster.Link{
				A: i, B: second, Kind: cluster.NVLink, Lanes: uplinks, Duplex: 2 * rate,
				Rate: cluster.FromSpec(rate,
					"NVIDIA Hot Chips 34, The NVLink-Network Switch, 2022: 72 links of a node to 18 switches"),
			})
		}
	}
	return t
}

// repeatTray makes a rack of equal trays. Names count through the rack; labels and
// addresses are left out because every tray has the same ones; indexes are those
// that the tray's own operating system gives.
func repeatTray(tray *cluster.NodeType, trays int) *cluster.NodeType {
	if trays == 1 {
		return tray
	}
	t := newNode(tray.Tree)
	t.Trays = trays
	for n := range trays {
		base := len(t.Devices)
		for _, d := range tray.Devices {
			d.Name, d.Label, d.PCI, d.Tray = "", "", "", n
			if d.Parent >= 0 {
				d.Parent += base
			}
			t.Add(d)
		}
		for _, l := range tray.Links {
			l.A, l.B = l.A+base, l.B+base
			t.Connect(l)
		}
	}
	return t
}
