package hardware

import "busbar.dev/cluster"

// hgx is the common shape of a GPU server: two sockets, half of the GPUs under
// each, PCIe switches that hold a few GPUs and network cards each, and an
// NVSwitch between all GPUs.
type hgx struct {
	tree    cluster.Origin
	gpu     string // short name in the catalogue
	gpus    int    // default 8
	cpu     cpuSpec
	cores   [2]string // cpulist of each socket
	perSw   int       // GPUs under one PCIe switch; default 1
	nics    int       // network cards under one PCIe switch
	nic     card
	up      slot // from the root to the switch
	slot    slot // of a GPU
	nvlinks int  // of a GPU into the NVSwitch; default all it has
	// Published addresses and labels, by position; short lists leave the rest unknown.
	gpuPCI, nicPCI, nicLabel []string
}

func (h hgx) node() *cluster.NodeType {
	t := newNode(h.tree)
	m := mustGPU(h.gpu)
	n, per := h.gpus, max(h.perSw, 1)
	if n == 0 {
		n = 8
	}
	var numa []int
	for _, cores := range h.cores {
		numa = append(numa, addSocket(t, h.cpu, 0, cores)...)
	}
	for g := 0; g < n; g += per {
		sw := addSwitch(t, addRoot(t, numa[g*len(numa)/n]), h.up)
		for i := g; i < g+per; i++ {
			addGPU(t, sw, m, h.slot, at(h.gpuPCI, i))
		}
		for range h.nics {
			k := t.Count(cluster.NIC)
			addNIC(t, sw, h.nic, at(h.nicPCI, k), at(h.nicLabel, k))
		}
	}
	links := h.nvlinks
	if links == 0 {
		links = m.Links
	}
	if links > 0 && m.LinkKind == cluster.NVLink {
		addNVSwitch(t, links)
	}
	return t
}

// Cards that many presets carry. An InfiniBand port's MTU is 4096 bytes.
func cx4EDR() card {
	return card{model: "ConnectX-4", kind: cluster.InfiniBand, speed: "4xEDR", slot: slot{3, 16}, mtu: 4096, gdr: cluster.Yes}
}

func cx6HDR() card {
	return card{model: "ConnectX-6", kind: cluster.InfiniBand, speed: "4xHDR", slot: slot{4, 16}, mtu: 4096, gdr: cluster.Yes}
}

func cx7NDR() card {
	return card{model: "ConnectX-7", kind: cluster.InfiniBand, speed: "4xNDR", slot: slot{5, 16}, mtu: 4096, gdr: cluster.Yes}
}

func cx8XDR() card {
	return card{model: "ConnectX-8", kind: cluster.InfiniBand, speed: "4xXDR", slot: slot{6, 16}, mtu: 4096, gdr: cluster.Yes}
}

func cx7RoCE(speed string) card {
	return card{model: "ConnectX-7", kind: cluster.RoCE, speed: speed, slot: slot{5, 16}, gdr: cluster.Yes}
}

// Rail-optimised fabrics of the DGX SuperPOD reference designs: a scalable unit
// of nodes, one leaf a rail, no oversubscription.
func superPOD(nodes int, source string) Description {
	return Description{Name: "compute fabric", Kind: cluster.InfiniBand, Rails: 8, NodesPerLeaf: nodes, Oversubscription: 1, Source: source}
}

const (
	podA100 = "NVIDIA DGX SuperPOD A100 reference architecture, 2021: 20 nodes and 8 leaves a scalable unit"
	podH100 = "NVIDIA DGX SuperPOD H100 reference architecture, 2023: 32 nodes and 8 leaves a scalable unit"
	podB200 = "NVIDIA DGX SuperPOD B200 reference architecture, 2024: 32 nodes and 8 leaves a scalable unit"
)
