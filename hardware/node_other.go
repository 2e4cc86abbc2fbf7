package hardware

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

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
		{3, [2]string{"03:00.0", "0a:00.0"}, [2]string{"07:00.0", "0f:00.0"}, [2]string{"0c:00.0", "12:00.0"}, [2]string{"mlx5_0", "mlx5_1"}},
		{1, [2]string{"43:00.0", "49:00.0"}, [2]string{"47:00.0", "4e:00.0"}, [2]string{"4b:00.0", "54:00.0"}, [2]string{"mlx5_2", "mlx5_3"}},
		{7, [2]string{"83:00.0", "8b:00.0"}, [2]string{"87:00.0", "90:00.0"}, [2]string{"8d:00.0", "94:00.0"}, [2]string{"mlx5_6", "mlx5_7"}},
		{5, [2]string{"b3:00.0", "b8:00.0"}, [2]string{"b7:00.0", "bd:00.0"}, [2]string{"ba:00.0", "cc:00.0"}, [2]string{"mlx5_8", "mlx5_9"}},
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
				Rate: cluster.FromSpec(rate, "NVIDIA Hot Chips 34, The NVLink-Network Switch, 2022: 72 links of a node to 18 switches"),
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
