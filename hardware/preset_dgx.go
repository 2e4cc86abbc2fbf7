package hardware

import (
	"fmt"

	"busbar.dev/cluster"
)

func dgxMachines() []machine {
	h100 := hgx{
		tree: cluster.Spec, gpu: "h100", cpu: intel("Platinum 8480C", 143), cores: [2]string{"0-55,112-167", "56-111,168-223"},
		nics: 1, nic: cx7NDR(), up: slot{5, 16}, slot: slot{5, 16},
		gpuPCI:   []string{"1b:00.0", "43:00.0", "52:00.0", "61:00.0", "9d:00.0", "c3:00.0", "d1:00.0", "df:00.0"},
		nicPCI:   []string{"18:00.0", "40:00.0", "4f:00.0", "5e:00.0", "9a:00.0", "c0:00.0", "ce:00.0", "dc:00.0"},
		nicLabel: []string{"mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"},
	}
	h200 := h100
	h200.gpu = "h200"
	b200 := hgx{
		tree: cluster.Assumed, gpu: "b200", cpu: intel("Platinum 8570", 207), cores: [2]string{"0-55,112-167", "56-111,168-223"},
		nics: 1, nic: cx7NDR(), up: slot{5, 16}, slot: slot{5, 16}, nicLabel: numbered("mlx5_", 8),
	}
	b300 := b200
	b300.gpu, b300.nic, b300.cpu, b300.cores = "b300", cx8XDR(), intel("6776P", 173), [2]string{"0-63,128-191", "64-127,192-255"}
	b300.up, b300.slot = slot{5, 16}, slot{6, 16}
	generic := func(gpu string, c card, gen int) func() *cluster.NodeType {
		return hgx{
			tree: cluster.Assumed, gpu: gpu, cpu: intel("Platinum 8480+", 143), cores: [2]string{"0-55,112-167", "56-111,168-223"},
			nics: 1, nic: c, up: slot{gen, 16}, slot: slot{gen, 16}, nicLabel: numbered("mlx5_", 8),
		}.node
	}
	const guide = "NVIDIA DGX H100/H200 user guide, 2024, system topology and network ports; "
	const hgxDoc = "NVIDIA HGX platform data sheets, 2023–2025; processors, tree and network assumed as in the DGX of the generation"
	eightRail := superPOD(32, podH100)
	return []machine{
		{
			name: "dgx-1v", aliases: []string{"dgx1v", "dgx-1", "dgx1", "dgx-1v-32"}, summary: "DGX-1V: 8 V100-32GB in a hybrid cube mesh, 4 EDR, 2 GPUs a NIC",
			source: "NVIDIA DGX-1 system architecture white paper, 2017; nvidia-smi topo -m of a DGX-1V", node: func() *cluster.NodeType { return dgx1("v100-32") },
			net: Description{Name: "EDR", Rails: 4, NodesPerLeaf: 18, Source: "wiring by rail assumed; SB7800 has 36 ports", Origin: cluster.Assumed},
		},
		{
			name: "dgx-1v-16", summary: "DGX-1V with V100-16GB", source: "NVIDIA DGX-1 system architecture white paper, 2017", node: func() *cluster.NodeType { return dgx1("v100-16") },
			net: Description{Name: "EDR", Rails: 4, NodesPerLeaf: 18, Source: "wiring by rail assumed; SB7800 has 36 ports", Origin: cluster.Assumed},
		},
		{
			name: "dgx-2", aliases: []string{"dgx2"}, summary: "DGX-2: 16 V100-32GB behind NVSwitch, 8 EDR", source: "NVIDIA DGX-2 user guide, 2019; nvidia-smi topo -m in NVIDIA/nccl-tests issue 78", node: dgx2,
			net: Description{Name: "EDR", Rails: 8, NodesPerLeaf: 18, Source: "wiring by rail assumed; SB7800 has 36 ports", Origin: cluster.Assumed},
		},
		{
			name: "dgx-a100", aliases: []string{"dgxa100", "dgx-a100-80", "selene"}, summary: "DGX A100 640GB: 8 A100-80GB, NVSwitch, 8 HDR, 8 NUMA domains",
			source: "NVIDIA DGX A100 user guide, 2021; NVIDIA/nccl issue 1505 (nvidia-smi topo -m and topology XML); mlcommons/training_results_v1.1, dgxa100_nic_affinity.xml; " + podA100,
			node:   func() *cluster.NodeType { return dgxA100("a100-80") }, net: superPOD(20, podA100),
		},
		{
			name: "dgx-a100-40", summary: "DGX A100 320GB: 8 A100-40GB", source: "NVIDIA DGX A100 user guide, 2020; " + podA100,
			node: func() *cluster.NodeType { return dgxA100("a100-40") }, net: superPOD(20, podA100),
		},
		{
			name: "dgx-h100", aliases: []string{"dgxh100"}, summary: "DGX H100: 8 H100-80GB, NVSwitch, 8 NDR; nvidia-smi prints PXB where the two-level switch of each GPU and NIC is shown as one here",
			source: guide + podH100, node: h100.node, net: superPOD(32, podH100),
		},
		{name: "dgx-h200", aliases: []string{"dgxh200"}, summary: "DGX H200: 8 H200-141GB, NVSwitch, 8 NDR", source: guide + podH100, node: h200.node, net: superPOD(32, podH100)},
		{name: "dgx-b200", aliases: []string{"dgxb200"}, summary: "DGX B200: 8 B200-180GB, NVSwitch, 8 NDR", source: "NVIDIA DGX B200 user guide, 2025; " + podB200, node: b200.node, net: superPOD(32, podB200)},
		{
			name: "dgx-b300", aliases: []string{"dgxb300"}, summary: "DGX B300: 8 B300-288GB, NVSwitch, 8 XDR", source: "NVIDIA DGX B300 data sheet, 2025", node: b300.node,
			net: Description{Name: "compute fabric", Kind: cluster.InfiniBand, Rails: 8, NodesPerLeaf: 72, Oversubscription: 1, Source: "NVIDIA Quantum-X800 Q3400 has 144 ports, half down", Origin: cluster.Assumed},
		},
		{name: "hgx-a100", summary: "HGX A100 8-GPU server, 8 HDR", source: hgxDoc, node: generic("a100-80", cx6HDR(), 4), net: superPOD(20, podA100)},
		{name: "hgx-a800", summary: "HGX A800 8-GPU server, 8 HDR", source: hgxDoc, node: generic("a800", cx6HDR(), 4), net: superPOD(20, podA100)},
		{name: "hgx-h100", aliases: []string{"h100-8", "8xh100"}, summary: "HGX H100 8-GPU server, 8 NDR", source: hgxDoc, node: generic("h100", cx7NDR(), 5), net: eightRail},
		{name: "hgx-h800", summary: "HGX H800 8-GPU server, 8 NDR, 8 NVLinks a GPU", source: hgxDoc, node: generic("h800", cx7NDR(), 5), net: eightRail},
		{name: "hgx-h20", summary: "HGX H20 8-GPU server, 8 NDR", source: hgxDoc, node: generic("h20", cx7NDR(), 5), net: eightRail},
		{name: "hgx-h200", aliases: []string{"h200-8", "8xh200"}, summary: "HGX H200 8-GPU server, 8 NDR", source: hgxDoc, node: generic("h200", cx7NDR(), 5), net: eightRail},
		{name: "hgx-b200", aliases: []string{"b200-8", "8xb200"}, summary: "HGX B200 8-GPU server, 8 NDR", source: hgxDoc, node: generic("b200", cx7NDR(), 5), net: eightRail},
	}
}

// cubeMesh is the hybrid cube mesh of eight V100: GPU, GPU, links.
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

// dgx1 has one host bridge a socket, with two PCIe switches of two GPUs and a
// NIC each.
func dgx1(gpu string) *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU(gpu)
	gpuPCI := []string{"06:00.0", "07:00.0", "0a:00.0", "0b:00.0", "85:00.0", "86:00.0", "89:00.0", "8a:00.0"}
	nicPCI := []string{"05:00.0", "0c:00.0", "84:00.0", "8b:00.0"}
	for s, cores := range []string{"0-19,40-59", "20-39,60-79"} {
		root := addRoot(t, addSocket(t, intel("E5-2698 v4", 79), 0, cores)[0])
		for k := range 2 {
			sw := addSwitch(t, root, slot{3, 16})
			addGPU(t, sw, m, slot{3, 16}, gpuPCI[4*s+2*k])
			addGPU(t, sw, m, slot{3, 16}, gpuPCI[4*s+2*k+1])
			n := 2*s + k
			addNIC(t, sw, cx4EDR(), nicPCI[n], fmt.Sprintf("mlx5_%d", n))
		}
	}
	mesh(t, cluster.NVLink, cubeMesh()...)
	return t
}

// dgx2 has, for every four GPUs, one root with a switch over two switches of two
// GPUs and a NIC each.
func dgx2() *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU("v100-32")
	nic := cx4EDR()
	nic.model = "ConnectX-5"
	for _, cores := range []string{"0-23,48-71", "24-47,72-95"} {
		numa := addSocket(t, intel("Platinum 8168", 85), 0, cores)[0]
		for range 2 {
			top := addSwitch(t, addRoot(t, numa), slot{3, 16})
			for range 2 {
				sw := addSwitch(t, top, slot{3, 16})
				addGPU(t, sw, m, slot{3, 16}, "")
				addGPU(t, sw, m, slot{3, 16}, "")
				addNIC(t, sw, nic, "", "")
			}
		}
	}
	addNVSwitch(t, m.Links)
	return t
}

// dgxA100 has four NUMA domains a socket; two GPUs and two NICs hang on one
// two-level PCIe switch in every other domain. Each pair is PXB, as nvidia-smi
// prints it.
func dgxA100(gpu string) *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU(gpu)
	numa := rome64(t, epyc("7742", 143, 49))
	groups := []struct {
		numa                      int
		gpu0, gpu1, nic0, nic1    string
		label0, label1            string
		firstSwitch, secondSwitch string
	}{
		{3, "07:00.0", "0f:00.0", "0c:00.0", "12:00.0", "mlx5_0", "mlx5_1", "03:00.0", "0a:00.0"},
		{1, "47:00.0", "4e:00.0", "4b:00.0", "54:00.0", "mlx5_2", "mlx5_3", "43:00.0", "49:00.0"},
		{7, "87:00.0", "90:00.0", "8d:00.0", "94:00.0", "mlx5_6", "mlx5_7", "83:00.0", "8b:00.0"},
		{5, "b7:00.0", "bd:00.0", "ba:00.0", "cc:00.0", "mlx5_8", "mlx5_9", "b3:00.0", "b8:00.0"},
	}
	s := slot{4, 16}
	for _, g := range groups {
		top := addSwitch(t, addRoot(t, numa[g.numa]), s)
		first, second := addSwitch(t, top, s), addSwitch(t, top, s)
		t.Devices[first].PCI, t.Devices[second].PCI = address(g.firstSwitch), address(g.secondSwitch)
		addGPU(t, addSwitch(t, first, s), m, s, g.gpu0)
		addGPU(t, addSwitch(t, second, s), m, s, g.gpu1)
		addNIC(t, second, cx6HDR(), g.nic0, g.label0)
		addNIC(t, first, cx6HDR(), g.nic1, g.label1)
	}
	addNVSwitch(t, m.Links)
	return t
}

// rome64 adds two EPYC sockets of 64 cores, four NUMA domains of 16 cores each.
func rome64(t *cluster.NodeType, cpu cpuSpec) []int {
	var numa []int
	for s := range 2 {
		var lists []string
		for q := range 4 {
			first := 64*s + 16*q
			lists = append(lists, fmt.Sprintf("%d-%d,%d-%d", first, first+15, first+128, first+143))
		}
		numa = append(numa, addSocket(t, cpu, 0, lists...)...)
	}
	return numa
}
