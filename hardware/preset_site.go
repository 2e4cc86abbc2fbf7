package hardware

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// siteMachines lists the nodes of named sites.
func siteMachines() []machine {
	const bask = "The Impact of GPU Networking (Part 2), 2025-03-14, appendix A; PCIe tree of the Lenovo SD650-N V2 assumed: two GPUs a socket, the NIC on the first"
	baskNet := Description{
		Name: "HDR", Kind: cluster.InfiniBand, NodesPerLeaf: 20, Oversubscription: 1, Model: "QM8790",
		Source: "Baskerville: HDR fat tree of QM8790; 20 nodes a leaf assumed from 40 ports", Origin: cluster.Assumed,
	}
	slingshot := Description{
		Name: "Slingshot", Kind: cluster.Slingshot, NodesPerLeaf: 4, Oversubscription: 1,
		Source: "dragonfly drawn as leaf and spine; 16 of 64 ports at the nodes", Origin: cluster.Assumed,
	}
	opa := Description{
		Name: "Omni-Path", Kind: cluster.OmniPath, NodesPerLeaf: 6, Oversubscription: 1,
		Source: "IDRIS, Jean Zay: four Omni-Path links a node; 6 nodes a leaf assumed from 48 ports", Origin: cluster.Assumed,
	}
	const olcf = "OLCF, Frontier user guide, 2024: node diagram, 36+36 GB/s CPU to GCD, 200 GB/s within a module, 50 to 100 GB/s between; ROCm/rccl topo_expl model of the node"
	return []machine{
		{
			name: "baskerville", aliases: []string{"baskerville-40"}, nodes: 46, summary: "Baskerville node: 4 A100-40GB fully joined by 4 NVLinks a pair, one HDR port that all share (25GbE not listed)",
			source: bask, node: func() *cluster.NodeType { return baskerville("a100-40") }, net: baskNet,
		},
		{name: "baskerville-80", nodes: 11, summary: "Baskerville node with A100-80GB", source: bask, node: func() *cluster.NodeType { return baskerville("a100-80") }, net: baskNet},
		{
			name: "jean-zay-v100", aliases: []string{"jeanzay-v100", "jean-zay"}, summary: "Jean Zay V100 node: 4 V100-32GB, 2 NVLinks a pair, 4 Omni-Path 100",
			source: "IDRIS, Jean Zay hardware description, 2022; NCCL logs of 16 nodes; PCIe tree assumed", node: jeanZayV100, net: opa,
		},
		{
			name: "jean-zay-a100", aliases: []string{"jeanzay-a100"}, summary: "Jean Zay A100 node: 8 A100-80GB, NVSwitch, 4 Omni-Path 100, 2 GPUs a NIC",
			source: "IDRIS, Jean Zay hardware description, 2022; BigScience, BLOOM training hardware, 2022; PCIe tree assumed",
			node: hgx{
				tree: cluster.Assumed, gpu: "a100-80", cpu: epyc("7543", 175, 1), cores: [2]string{"0-31", "32-63"}, perSw: 2, nics: 1,
				nic: opaCard(), up: slot{4, 16}, slot: slot{4, 16}, nicLabel: numbered("hfi1_", 4),
			}.node, net: opa,
		},
		{
			name: "frontier", aliases: []string{"mi250x-node", "mi250x-4", "crusher"}, summary: "Frontier node: 4 MI250X modules shown as 8 GPUs, Infinity Fabric, 4 Slingshot-11 NICs on the odd GPUs",
			source: olcf, node: frontier, net: slingshot,
		},
		{name: "lumi-g", aliases: []string{"lumi"}, summary: "LUMI-G node: as Frontier's", source: "LUMI documentation, GPU nodes, 2024; " + olcf, node: frontier, net: slingshot},
		{
			name: "perlmutter", aliases: []string{"perlmutter-gpu"}, summary: "Perlmutter GPU node: 4 A100-40GB, 4 NVLinks a pair, 4 Slingshot-11 NICs",
			source: "NERSC documentation, Perlmutter architecture, 2024", node: perlmutter, net: slingshot,
		},
	}
}

func opaCard() card {
	return card{model: "Omni-Path HFI 100", kind: cluster.OmniPath, speed: "Omni-Path 100", slot: slot{3, 16}, gdr: cluster.Yes}
}

func cassini() card {
	return card{model: "Slingshot Cassini", kind: cluster.Slingshot, speed: "Slingshot 11", slot: slot{4, 16}, mtu: 9000, gdr: cluster.Yes}
}

// baskerville hangs every GPU on a root port of its own; Ice Lake has one host
// bridge a port.
func baskerville(gpu string) *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU(gpu)
	for s, cores := range []string{"0-35", "36-71"} {
		numa := addSocket(t, intel("Platinum 8360Y", 106), 256*unit.GiB, cores)[0]
		for range 2 {
			addGPU(t, addRoot(t, numa), m, slot{4, 16}, "")
		}
		if s == 0 {
			addNIC(t, addRoot(t, numa), cx6HDR(), "", "mlx5_0")
		}
	}
	fullMesh(t, cluster.NVLink, 4)
	return t
}

func jeanZayV100() *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU("v100-32")
	for s, cores := range []string{"0-19", "20-39"} {
		numa := addSocket(t, intel("Gold 6248", 85), 96*unit.GiB, cores)[0]
		sw := addSwitch(t, addRoot(t, numa), slot{3, 16})
		for k := range 2 {
			addGPU(t, sw, m, slot{3, 16}, "")
			addNIC(t, sw, opaCard(), "", fmt.Sprintf("hfi1_%d", 2*s+k))
		}
	}
	fullMesh(t, cluster.NVLink, 2)
	return t
}

// frontier is one socket with four NUMA domains; each holds one MI250X module,
// two dies that software sees as two GPUs. The NIC hangs on the second die. An
// Infinity Fabric link of 36 GB/s joins a die to the CPU.
func frontier() *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU("mi250x-gcd")
	numa := addSocket(t, epyc("7A53", 175, 48), 128*unit.GiB, "0-15,64-79", "16-31,80-95", "32-47,96-111", "48-63,112-127")
	gpuPCI := []string{"c1:00.0", "c5:00.0", "c9:00.0", "cd:00.0", "d1:00.0", "d5:00.0", "d9:00.0", "dd:00.0"}
	cpuLink := cluster.FromSpec(36*unit.GBps, "OLCF, Frontier user guide, 2024: 36+36 GB/s CPU to GCD")
	for module, domain := range []int{3, 1, 0, 2} {
		root := addRoot(t, numa[domain])
		even := addChip(t, root, m, gpuPCI[2*module])
		t.Connect(cluster.Link{A: root, B: even, Kind: cluster.PCIe, Lanes: 16, Rate: cpuLink, Duplex: 2 * cpuLink.Value})
		sw := t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: root})
		t.Connect(cluster.Link{A: root, B: sw, Kind: cluster.PCIe, Lanes: 16, Rate: cpuLink, Duplex: 2 * cpuLink.Value})
		odd := addChip(t, sw, m, gpuPCI[2*module+1])
		t.Connect(cluster.Link{A: sw, B: odd, Kind: cluster.PCIe, Lanes: 16, Rate: cpuLink, Duplex: 2 * cpuLink.Value})
		addNIC(t, sw, cassini(), "", fmt.Sprintf("cxi%d", module))
	}
	mesh(t, cluster.XGMI,
		[3]int{0, 1, 4}, [3]int{2, 3, 4}, [3]int{4, 5, 4}, [3]int{6, 7, 4},
		[3]int{0, 6, 2}, [3]int{2, 4, 2}, [3]int{0, 2, 1}, [3]int{4, 6, 1},
		[3]int{1, 3, 1}, [3]int{1, 5, 1}, [3]int{3, 7, 1}, [3]int{5, 7, 1})
	return t
}

// perlmutter is one socket with four NUMA domains, a GPU and a NIC in each.
func perlmutter() *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU("a100-40")
	numa := addSocket(t, epyc("7763", 175, 1), 64*unit.GiB, "0-15,64-79", "16-31,80-95", "32-47,96-111", "48-63,112-127")
	// GPU 0 is on the last domain, as nvidia-smi shows it.
	for k := range 4 {
		root := addRoot(t, numa[3-k])
		addGPU(t, root, m, slot{4, 16}, "")
		addNIC(t, root, cassini(), "", fmt.Sprintf("cxi%d", k))
	}
	fullMesh(t, cluster.NVLink, 4)
	return t
}
