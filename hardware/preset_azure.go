package hardware

import (
	"fmt"

	"busbar.dev/cluster"
)

func azureMachines() []machine {
	const topo = "Azure/azhpc-images, topology/"
	rails := func(name string, rails, nodes int) Description {
		return Description{
			Name: name, Kind: cluster.InfiniBand, Rails: rails, NodesPerLeaf: nodes, Oversubscription: 1,
			Source: "Microsoft Azure documentation, ND series: rail-optimised, non-blocking; nodes a leaf assumed from the switch's ports", Origin: cluster.Assumed,
		}
	}
	v5 := hgx{
		tree: cluster.Spec, gpu: "h100", cpu: intel("Platinum 8480C", 143), cores: [2]string{"0-47", "48-95"}, nics: 1, nic: cx7NDR(),
		up: slot{5, 16}, slot: slot{5, 16},
		gpuPCI:   []string{"0001:00:00.0", "0002:00:00.0", "0003:00:00.0", "0008:00:00.0", "0009:00:00.0", "000a:00:00.0", "000b:00:00.0", "000c:00:00.0"},
		nicPCI:   []string{"0101:00:00.0", "0102:00:00.0", "0103:00:00.0", "0104:00:00.0", "0105:00:00.0", "0106:00:00.0", "0107:00:00.0", "0108:00:00.0"},
		nicLabel: numbered("mlx5_ib", 8),
	}
	h200 := v5
	h200.gpu, h200.tree = "h200", cluster.Assumed
	return []machine{
		{
			name: "azure-ndv2", aliases: []string{"ndv2", "nd40rs_v2", "nd40rs-v2"}, summary: "ND40rs_v2: 8 V100-32GB in a hybrid cube mesh, one EDR on the first socket",
			source: topo + "ndv2-topo.xml; order of the NVLink mesh assumed as in DGX-1", node: ndv2,
			net: Description{Name: "EDR", Kind: cluster.InfiniBand, NodesPerLeaf: 18, Oversubscription: 1, Source: "SB7800 has 36 ports, half down", Origin: cluster.Assumed},
		},
		{
			name: "azure-ndv4", aliases: []string{"ndv4", "nd96asr_v4", "nd96asr-v4", "nd-a100-v4"}, summary: "ND96asr_v4: 8 A100-40GB, NVSwitch, 8 HDR, two GPUs and NICs a NUMA domain",
			source: topo + "ndv4-topo.xml", node: func() *cluster.NodeType { return ndv4("a100-40") }, net: rails("HDR", 8, 20),
		},
		{
			name: "azure-ndmv4", aliases: []string{"ndmv4", "nd96amsr_a100_v4", "nd96amsr-a100-v4", "ndm-a100-v4"}, summary: "ND96amsr_A100_v4: as NDv4 with A100-80GB",
			source: topo + "ndv4-topo.xml", node: func() *cluster.NodeType { return ndv4("a100-80") }, net: rails("HDR", 8, 20),
		},
		{
			name: "azure-ndv5", aliases: []string{"ndv5", "nd96isr_h100_v5", "nd96isr-h100-v5", "nd-h100-v5"}, summary: "ND96isr_H100_v5: 8 H100-80GB, NVSwitch, 8 NDR",
			source: topo + "ndv5-topo.xml", node: v5.node, net: rails("NDR", 8, 32),
		},
		{
			name: "azure-ndv5-h200", aliases: []string{"nd96isr_h200_v5", "nd96isr-h200-v5", "nd-h200-v5"}, summary: "ND96isr_H200_v5: 8 H200-141GB, NVSwitch, 8 NDR",
			source: "Microsoft Azure documentation, ND-H200-v5 series, 2025; tree assumed as in NDv5", node: h200.node, net: rails("NDR", 8, 32),
		},
	}
}

// ndv2 shows GPUs and the card right under their NUMA domain.
func ndv2() *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU("v100-32")
	for s, cores := range []string{"0-19", "20-39"} {
		numa := addSocket(t, intel("Platinum 8168", 85), 0, cores)[0]
		for k := range 4 {
			addGPU(t, numa, m, slot{3, 16}, fmt.Sprintf("%04x:00:00.0", 4*s+k+1))
		}
		if s == 0 {
			nic := cx4EDR()
			nic.model = "ConnectX-5"
			addNIC(t, numa, nic, "0101:00:00.0", "mlx5_ib0")
		}
	}
	mesh(t, cluster.NVLink, cubeMesh()...)
	return t
}

// ndv4 has four NUMA domains with one PCIe switch each. GPUs are numbered by bus,
// which starts in the second domain.
func ndv4(gpu string) *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU(gpu)
	numa := addSocket(t, epyc("7V12", 143, 49), 0, "0-23", "24-47")
	numa = append(numa, addSocket(t, epyc("7V12", 143, 49), 0, "48-71", "72-95")...)
	s := slot{4, 16}
	for _, g := range []struct{ numa, gpu, nic int }{{1, 0x01, 0x101}, {0, 0x03, 0x103}, {3, 0x0b, 0x105}, {2, 0x0d, 0x107}} {
		sw := addSwitch(t, addRoot(t, numa[g.numa]), s)
		for k := range 2 {
			addGPU(t, sw, m, s, fmt.Sprintf("%04x:00:00.0", g.gpu+k))
			addNIC(t, sw, cx6HDR(), fmt.Sprintf("%04x:00:00.0", g.nic+k), fmt.Sprintf("mlx5_ib%d", t.Count(cluster.NIC)))
		}
	}
	addNVSwitch(t, m.Links)
	return t
}
