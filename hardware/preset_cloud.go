package hardware

import (
	"fmt"

	"busbar.dev/cluster"
)

// cloudMachines lists machines of Oracle and Lambda.
func cloudMachines() []machine {
	const oci = "Oracle Cloud Infrastructure documentation, compute shapes, 2025; "
	roce := Description{
		Name: "cluster network", Kind: cluster.RoCE, Rails: 8, NodesPerLeaf: 16, Oversubscription: 1,
		Source: "OCI documentation: RoCE v2 cluster network, non-blocking; 16 nodes a leaf assumed", Origin: cluster.Assumed,
	}
	spr := [2]string{"0-55,112-167", "56-111,168-223"}
	h100 := hgx{tree: cluster.Assumed, gpu: "h100", cpu: intel("Platinum 8480+", 143), cores: spr, nics: 2, nic: cx7RoCE("200GbE"), up: slot{5, 16}, slot: slot{5, 16}}
	h200 := h100
	h200.gpu, h200.nics, h200.nic = "h200", 1, cx7RoCE("400GbE")
	return []machine{
		{
			name: "oci-bm-gpu-b4.8", aliases: []string{"bm.gpu.b4.8", "oci-b4", "oci-b4.8", "oci-a100", "bm.gpu4.8"}, summary: "BM.GPU.B4.8: 8 A100-40GB, NVSwitch, 16 RDMA ports of 100 Gb/s on 8 cards",
			source: oci + "oracle-quickstart/oci-hpc, samples/gpu/topo-flattened-b4.xml", node: func() *cluster.NodeType { return ociB4("a100-40") }, net: roce,
		},
		{
			name: "oci-bm-gpu-a100-v2.8", aliases: []string{"bm.gpu.a100-v2.8", "oci-a100-v2"}, summary: "BM.GPU.A100-v2.8: as B4.8 with A100-80GB",
			source: oci + "tree assumed as in B4.8", node: func() *cluster.NodeType { return ociB4("a100-80") }, net: roce,
		},
		{
			name: "oci-bm-gpu-h100.8", aliases: []string{"bm.gpu.h100.8", "oci-h100", "oci-h100.8"}, summary: "BM.GPU.H100.8: 8 H100-80GB, NVSwitch, 16 RDMA ports of 200 Gb/s, 2 a GPU",
			source: oci + "PCIe tree assumed", node: h100.node, net: roce,
		},
		{
			name: "oci-bm-gpu-h200.8", aliases: []string{"bm.gpu.h200.8", "oci-h200"}, summary: "BM.GPU.H200.8: 8 H200-141GB, NVSwitch, 8 RDMA ports of 400 Gb/s",
			source: oci + "PCIe tree assumed", node: h200.node, net: roce,
		},
		{
			name: "oci-bm-gpu-mi300x.8", aliases: []string{"bm.gpu.mi300x.8", "oci-mi300x"}, summary: "BM.GPU.MI300X.8: 8 MI300X, Infinity Fabric mesh, 8 RDMA ports of 400 Gb/s",
			source: oci + "PCIe tree assumed as in mi300x-8", node: func() *cluster.NodeType { return mi300("mi300x", cx7RoCE("400GbE"), false) }, net: roce,
		},
		{
			name: "lambda-4xh100", aliases: []string{"lambda-h100x4", "4xh100", "gpu-4x-h100-sxm5"}, summary: "Lambda 4×H100 SXM virtual machine: NVSwitch, one NIC behind the host bridge, one NUMA domain",
			source: "Distributed communication for GPUs (part 1), 2025-09-09: nvidia-smi and nvidia-smi topo -m; the NIC's rate is not published, 100 Gb/s assumed", node: lambda4,
			net: Description{Name: "Ethernet", Kind: cluster.Ethernet, NodesPerLeaf: 16, Oversubscription: 1, Source: "not published; assumed", Origin: cluster.Assumed},
		},
	}
}

// ociB4 has, in every other NUMA domain, one PCIe switch with two GPUs and two
// cards of two ports; the operating system shows every port as a device.
func ociB4(gpu string) *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU(gpu)
	numa := rome64(t, epyc("7J13", 175, 1))
	nic := card{model: "ConnectX-5 Ex", kind: cluster.RoCE, speed: "100GbE", slot: slot{4, 16}, gdr: cluster.Yes}
	s := slot{4, 16}
	for _, g := range []struct {
		numa       int
		gpus, nics [2]string
	}{
		{3, [2]string{"0f", "15"}, [2]string{"0c", "16"}},
		{1, [2]string{"50", "53"}, [2]string{"47", "4b"}},
		{7, [2]string{"8c", "91"}, [2]string{"89", "93"}},
		{5, [2]string{"d6", "da"}, [2]string{"c3", "d1"}},
	} {
		sw := addSwitch(t, addRoot(t, numa[g.numa]), s)
		for k := range 2 {
			addGPU(t, sw, m, s, g.gpus[k]+":00.0")
		}
		for k := range 2 {
			for port := range 2 {
				addNIC(t, sw, nic, fmt.Sprintf("%s:00.%d", g.nics[k], port), "")
			}
		}
	}
	addNVSwitch(t, m.Links)
	return t
}

// lambda4 is a virtual machine that shows one bridge with everything on it.
func lambda4() *cluster.NodeType {
	t := newNode(cluster.Spec)
	m := mustGPU("h100")
	root := addRoot(t, addSocket(t, cpuSpec{name: "virtual CPU", arch: "x86_64"}, 0, "0-103")[0])
	for _, pci := range []string{"06:00.0", "07:00.0", "08:00.0", "09:00.0"} {
		addGPU(t, root, m, slot{5, 16}, pci)
	}
	nic := addNIC(t, root, card{kind: cluster.Ethernet, gdr: cluster.Maybe, slot: slot{5, 16}}, "", "mlx5_0")
	rate, _ := ParsePortSpeed("100GbE")
	t.Devices[nic].NIC.Ports[0].Rate = cluster.FromAssumed(rate.Rate, "not published")
	addNVSwitch(t, m.Links)
	return t
}
