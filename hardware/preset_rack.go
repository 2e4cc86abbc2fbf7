package hardware

import (
	"fmt"

	"busbar.dev/cluster"
)

// rackMachines lists machines whose node is an NVLink domain of many trays, and
// boards of Grace superchips.
func rackMachines() []machine {
	return []machine{
		{
			name: "gb200-nvl72", aliases: []string{"nvl72", "dgx-gb200", "gb200-72"}, summary: "GB200 NVL72 rack: one NVLink domain of 72 GPUs in 18 trays, each with 2 Grace, 4 GPUs and 4 NDR NICs",
			source: "NVIDIA GB200 NVL72 data sheet, 2024; NVIDIA DGX GB200 user guide, 2025: four ConnectX-7 a tray",
			node:   func() *cluster.NodeType { return nvl72("gb200", 18, cx7NDR()) },
			net: Description{
				Name: "compute fabric", Kind: cluster.InfiniBand, Rails: 4, NodesPerLeaf: 1, Oversubscription: 1,
				Source: "NVIDIA DGX SuperPOD GB200 reference architecture, 2025: rail-optimised; one rack a leaf assumed from 18 ports a rail", Origin: cluster.Assumed,
			},
		},
		{
			name: "gb300-nvl72", aliases: []string{"dgx-gb300", "gb300-72"}, summary: "GB300 NVL72 rack: 72 GPUs in 18 trays, each with 2 Grace, 4 GPUs and 4 XDR NICs",
			source: "NVIDIA GB300 NVL72 data sheet, 2025: ConnectX-8, 800 Gb/s a GPU",
			node:   func() *cluster.NodeType { return nvl72("gb300", 18, cx8XDR()) },
			net: Description{
				Name: "compute fabric", Kind: cluster.InfiniBand, Rails: 4, NodesPerLeaf: 4, Oversubscription: 1,
				Source: "Quantum-X800 Q3400 has 144 ports, half down; four racks a leaf assumed", Origin: cluster.Assumed,
			},
		},
		{
			name: "gb200-tray", aliases: []string{"gb200-4", "bm.gpu.gb200.4", "p6e-gb200"}, summary: "one tray of a GB200 NVL72: 2 Grace, 4 GPUs, 4 NDR NICs",
			source: "NVIDIA DGX GB200 user guide, 2025",
			node:   func() *cluster.NodeType { return nvl72("gb200", 1, cx7NDR()) },
			net:    Description{Name: "compute fabric", Kind: cluster.InfiniBand, Rails: 4, NodesPerLeaf: 18, Oversubscription: 1, Source: "one rack a leaf assumed", Origin: cluster.Assumed},
		},
		{
			name: "alps-gh200", aliases: []string{"alps", "gh200-4", "quad-gh200"}, summary: "Alps GH200 node: 4 GH200 fully joined by 6 NVLinks a pair, 4 Slingshot-11 NICs",
			source: "CSCS documentation, Alps hardware, 2025; L. Fusco et al., 2024", node: alps,
			net: Description{Name: "Slingshot", Kind: cluster.Slingshot, NodesPerLeaf: 8, Oversubscription: 1, Source: "dragonfly drawn as leaf and spine; 16 ports of 64 at the nodes assumed", Origin: cluster.Assumed},
		},
		{
			name: "gh200-node", aliases: []string{"gh200-1"}, summary: "one GH200 superchip with one NDR NIC", source: "NVIDIA GH200 data sheet, 2023; NIC assumed",
			node: func() *cluster.NodeType {
				t := newNode(cluster.Assumed)
				numa := addSocket(t, grace(), 0, "0-71")[0]
				addC2C(t, numa, mustGPU("gh200"), 10)
				addNIC(t, addRoot(t, numa), cx7NDR(), "", "mlx5_0")
				return t
			},
			net: Description{Name: "NDR", Kind: cluster.InfiniBand, NodesPerLeaf: 32, Oversubscription: 1, Source: "QM9700 has 64 ports, half down", Origin: cluster.Assumed},
		},
	}
}

// addC2C adds a GPU that hangs on its CPU by NVLink-C2C.
func addC2C(t *cluster.NodeType, numa int, m GPUModel, links int) int {
	g := addChip(t, numa, m, "")
	t.Connect(cluster.Link{A: numa, B: g, Kind: cluster.C2C, Lanes: links})
	return g
}

// nvl72 is the NVLink domain: trays of two Grace with two GPUs and two NICs each,
// every GPU with all its links on one NVSwitch device. Names count through the
// rack, labels are left out because every tray has the same ones; indexes are
// those that the tray's own operating system gives.
func nvl72(gpu string, trays int, nic card) *cluster.NodeType {
	t := newNode(cluster.Spec)
	if trays > 1 {
		t.Trays = trays
	}
	m := mustGPU(gpu)
	for tray := range trays {
		for s := range 2 {
			socket := t.Add(cluster.Device{
				Kind: cluster.Socket, Name: fmt.Sprintf("socket%d", 2*tray+s), Index: s, Parent: -1, Tray: tray,
				Model: cluster.FromSpec(grace().name, "preset"), CPU: &cluster.CPUInfo{Arch: "arm64"},
			})
			numa := t.Add(cluster.Device{
				Kind: cluster.NUMA, Name: fmt.Sprintf("numa%d", 2*tray+s), Index: s, Parent: socket, Tray: tray,
				CPU: &cluster.CPUInfo{Arch: "arm64", Cores: fmt.Sprintf("%d-%d", 72*s, 72*s+71)},
			})
			for k := range 2 {
				local := 2*s + k
				g := addC2C(t, numa, m, 5)
				t.Devices[g].Index = local
				n := addNIC(t, addRoot(t, numa), nic, "", "")
				t.Devices[n].Index = local
			}
		}
	}
	addNVSwitch(t, m.Links)
	return t
}

// alps is the quad GH200 board: every superchip with its own NIC.
func alps() *cluster.NodeType {
	t := newNode(cluster.Spec)
	nic := card{model: "Slingshot Cassini", kind: cluster.Slingshot, speed: "Slingshot 11", slot: slot{4, 16}, mtu: 9000, gdr: cluster.Yes}
	for s := range 4 {
		numa := addSocket(t, grace(), 0, fmt.Sprintf("%d-%d", 72*s, 72*s+71))[0]
		addC2C(t, numa, mustGPU("gh200"), 10)
		addNIC(t, addRoot(t, numa), nic, "", fmt.Sprintf("cxi%d", s))
	}
	fullMesh(t, cluster.NVLink, 6)
	return t
}
