package hardware

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// boxMachines lists servers of other accelerators and PCIe workstations.
func boxMachines() []machine {
	rails := func(kind cluster.NetKind, rails int) Description {
		return Description{Name: "compute fabric", Kind: kind, Rails: rails, NodesPerLeaf: 32, Oversubscription: 1, Source: "a leaf a rail, 32 nodes, assumed", Origin: cluster.Assumed}
	}
	const mi = "ROCm/rccl, tools/topo_expl/models/topo_8p_940.xml; "
	flat := Description{Name: "Ethernet", Kind: cluster.RoCE, NodesPerLeaf: 16, Oversubscription: 1, Source: "assumed", Origin: cluster.Assumed}
	return []machine{
		{
			name: "mi300x-8", aliases: []string{"mi300x-node", "8xmi300x"}, summary: "8 MI300X, Infinity Fabric mesh, 8 NDR", source: mi + "AMD Instinct MI300X platform data sheet, 2023",
			node: func() *cluster.NodeType { return mi300("mi300x", cx7NDR(), true) }, net: rails(cluster.InfiniBand, 8),
		},
		{
			name: "mi325x-8", aliases: []string{"mi325x-node", "8xmi325x"}, summary: "8 MI325X, Infinity Fabric mesh, 8 NDR", source: "AMD Instinct MI325X platform data sheet, 2024; tree as in mi300x-8, assumed",
			node: func() *cluster.NodeType { return mi300("mi325x", cx7NDR(), false) }, net: rails(cluster.InfiniBand, 8),
		},
		{
			name: "mi300a-4", aliases: []string{"mi300a-node", "el-capitan"}, summary: "El Capitan node: 4 MI300A, two Infinity Fabric links a pair, 4 Slingshot-11 NICs", source: "AMD CDNA 3 white paper, 2023; LLNL, El Capitan user guide, 2025; PCIe tree assumed",
			node: mi300a, net: Description{Name: "Slingshot", Kind: cluster.Slingshot, NodesPerLeaf: 4, Oversubscription: 1, Source: "dragonfly drawn as leaf and spine; 16 of 64 ports at the nodes", Origin: cluster.Assumed},
		},
		{
			name: "hls-gaudi2", aliases: []string{"gaudi2-node", "gaudi2-8", "8xgaudi2"}, summary: "HLS-Gaudi2: 8 Gaudi2, three 100GbE links a pair, three scale-out ports a card", source: "Habana HLS-Gaudi2 data sheet, 2023-10; " + docNetworking + "; PCIe tree assumed",
			node: func() *cluster.NodeType { return gaudi("gaudi2", "100GbE", slot{4, 16}) }, net: rails(cluster.RoCE, 0),
		},
		{
			name: "gaudi3-8", aliases: []string{"gaudi3-node", "hls-gaudi3", "8xgaudi3"}, summary: "8 Gaudi3, three 200GbE links a pair, three scale-out ports a card", source: "Intel Gaudi 3 white paper, 2024; PCIe tree assumed",
			node: func() *cluster.NodeType { return gaudi("gaudi3", "200GbE", slot{5, 16}) }, net: rails(cluster.RoCE, 0),
		},
		{
			name: "l40s-8", aliases: []string{"l40s-node", "8xl40s", "ovx-l40s"}, summary: "8 L40S on PCIe 4, four a switch and socket, one 200 Gb/s NIC a switch", source: "NVIDIA OVX L40S data sheet, 2023; tree assumed",
			node: pcieBox("l40s", 4, card{model: "ConnectX-7", kind: cluster.RoCE, speed: "200GbE", slot: slot{4, 16}, gdr: cluster.Yes}), net: flat,
		},
		{
			name: "rtxpro6000-8", aliases: []string{"8xrtxpro6000"}, summary: "8 RTX PRO 6000 Blackwell on PCIe 5, four a switch and socket, one 400 Gb/s NIC a switch", source: "NVIDIA RTX PRO server data sheet, 2025; tree assumed",
			node: pcieBox("rtxpro6000", 5, cx7RoCE("400GbE")), net: flat,
		},
		{
			name: "rtx4090-8", aliases: []string{"4090-8", "8x4090", "8xrtx4090"}, summary: "8 RTX 4090 on root ports of two sockets, no peer access, one 25GbE NIC", source: "usual workstation; NVIDIA/go-gpuallocator issue 17 shows one",
			node: geforceBox, net: Description{Name: "Ethernet", Kind: cluster.Ethernet, NodesPerLeaf: 24, Oversubscription: 1, Source: "assumed", Origin: cluster.Assumed},
		},
	}
}

// mi300 hangs every GPU and its NIC on a switch that the NIC itself brings; the
// GPU has two more bridges in front. The published addresses are one machine's.
func mi300(gpu string, nic card, published bool) *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU(gpu)
	var gpuPCI, nicPCI []string
	if published {
		t.Tree = cluster.Spec
		gpuPCI = []string{"0c:00.0", "15:00.0", "1e:00.0", "69:00.0", "9f:00.0", "af:00.0", "bf:00.0", "df:00.0"}
		nicPCI = []string{"07:00.0", "10:00.0", "19:00.0", "64:00.0", "9a:00.0", "aa:00.0", "ba:00.0", "da:00.0"}
	}
	s := slot{5, 16}
	for h, cores := range []string{"0-55,112-167", "56-111,168-223"} {
		numa := addSocket(t, intel("Platinum 8480C", 143), 0, cores)[0]
		for k := range 4 {
			i := 4*h + k
			sw := addSwitch(t, addRoot(t, numa), s)
			addGPU(t, addSwitch(t, addSwitch(t, sw, s), s), m, s, at(gpuPCI, i))
			addNIC(t, sw, nic, at(nicPCI, i), fmt.Sprintf("mlx5_%d", i))
		}
	}
	fullMesh(t, cluster.XGMI, 1)
	return t
}

// mi300a is four sockets that are CPU and GPU at once.
func mi300a() *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU("mi300a")
	for s := range 4 {
		numa := addSocket(t, epyc("MI300A", 175, 0x90), 0, fmt.Sprintf("%d-%d,%d-%d", 24*s, 24*s+23, 24*s+96, 24*s+119))[0]
		root := addRoot(t, numa)
		addGPU(t, root, m, slot{5, 16}, "")
		addNIC(t, root, cassini(), "", fmt.Sprintf("cxi%d", s))
	}
	fullMesh(t, cluster.XGMI, 2)
	return t
}

// gaudi joins eight cards by three Ethernet links a pair. The three scale-out
// ports of a card are a NIC that the card reaches without PCIe.
func gaudi(gpu, speed string, s slot) *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU(gpu)
	p, _ := ParsePortSpeed(speed)
	rate := cluster.FromSpec(3*p.Rate, m.Source)
	nic := card{kind: cluster.RoCE, speed: speed, ports: 3, gdr: cluster.Yes}
	for h, cores := range []string{"0-39,80-119", "40-79,120-159"} {
		numa := addSocket(t, intel("Platinum 8380", 106), 0, cores)[0]
		for k := range 4 {
			sw := addSwitch(t, addRoot(t, numa), s)
			g := addGPU(t, sw, m, s, "")
			n := addPort(t, sw, nic, "", fmt.Sprintf("hbl_%d", 4*h+k))
			t.Connect(cluster.Link{A: sw, B: n, Kind: cluster.Direct, Rate: rate})
			t.Connect(cluster.Link{A: g, B: n, Kind: cluster.Direct, Lanes: 3, Rate: rate})
		}
	}
	fullMesh(t, cluster.Gaudi, 3)
	return t
}

// pcieBox holds eight cards under two PCIe switches, one a socket.
func pcieBox(gpu string, gen int, nic card) func() *cluster.NodeType {
	return func() *cluster.NodeType {
		t := newNode(cluster.Assumed)
		m := mustGPU(gpu)
		for h, cores := range []string{"0-31,64-95", "32-63,96-127"} {
			sw := addSwitch(t, addRoot(t, addSocket(t, intel("Gold 6448Y", 143), 0, cores)[0]), slot{gen, 16})
			for range 4 {
				addGPU(t, sw, m, slot{gen, 16}, "")
			}
			addNIC(t, sw, nic, "", fmt.Sprintf("mlx5_%d", h))
		}
		return t
	}
}

// geforceBox holds eight GeForce cards on root ports. The driver refuses peer
// access between them.
func geforceBox() *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU("rtx4090")
	for h, cores := range []string{"0-55,112-167", "56-111,168-223"} {
		numa := addSocket(t, intel("Platinum 8480+", 143), 256*unit.GiB, cores)[0]
		for range 4 {
			addGPU(t, addRoot(t, numa), m, slot{4, 16}, "")
		}
		if h == 0 {
			addNIC(t, addRoot(t, numa), card{model: "ConnectX-4 Lx", kind: cluster.Ethernet, speed: "25GbE", slot: slot{3, 8}, gdr: cluster.No}, "", "eth0")
		}
	}
	gpus := t.Of(cluster.GPU)
	for _, a := range gpus {
		for _, b := range gpus {
			if a != b {
				t.Pairs = append(t.Pairs, cluster.Pair{A: a, B: b, P2P: cluster.No, Why: "not supported on GeForce cards of this generation"})
			}
		}
	}
	return t
}
