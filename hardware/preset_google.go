package hardware

import "busbar.dev/cluster"

// googleNet stands for a fabric that Google does not describe in detail.
func googleNet(kind cluster.NetKind, rails int) Description {
	return Description{
		Name: "Google fabric", Kind: kind, Rails: rails, NodesPerLeaf: 16, Oversubscription: 1,
		Source: "Google Cloud documentation, 2025; non-blocking and 16 nodes a leaf assumed, the wiring is not published", Origin: cluster.Assumed,
	}
}

func googleMachines() []machine {
	const docs = "Google Cloud documentation, GPU machine types, 2025; "
	const tree = docs + "PCIe tree assumed: two GPUs a switch"
	spr := [2]string{"0-51,104-155", "52-103,156-207"}
	gnic := func(gbit string, kind cluster.NetKind) card {
		c := card{model: "gVNIC", kind: kind, speed: gbit, slot: slot{5, 16}, gdr: cluster.Yes}
		if kind == cluster.TCPX || kind == cluster.TCPXO {
			c.mtu = 8244
		}
		return c
	}
	a3 := func(gpu string, nics int, c card) func() *cluster.NodeType {
		return hgx{tree: cluster.Assumed, gpu: gpu, cpu: intel("Platinum 8481C", 143), cores: spr, perSw: 2, nics: nics, nic: c, up: slot{5, 16}, slot: slot{5, 16}}.node
	}
	a2 := func(gpu string, gpus int) func() *cluster.NodeType {
		return func() *cluster.NodeType {
			t := newNode(cluster.Assumed)
			m := mustGPU(gpu)
			for s, cores := range []string{"0-23,48-71", "24-47,72-95"} {
				root := addRoot(t, addSocket(t, intel("Cascade Lake", 85), 0, cores)[0])
				for range gpus / 2 {
					addGPU(t, root, m, slot{3, 16}, "")
				}
				if s == 0 {
					nic := card{model: "gVNIC", kind: cluster.Ethernet, speed: "100GbE", slot: slot{3, 16}, gdr: cluster.No}
					addNIC(t, root, nic, "", "eth0")
				}
			}
			addNVSwitch(t, m.Links)
			return t
		}
	}
	return []machine{
		{
			name: "gcp-a2-highgpu", aliases: []string{"a2-highgpu-8g", "a2-highgpu", "a2", "gcp-a2"}, summary: "a2-highgpu-8g: 8 A100-40GB, NVSwitch, one 100 Gb/s gVNIC",
			source: docs + "PCIe tree assumed", node: a2("a100-40", 8), net: googleNet(cluster.Ethernet, 0),
		},
		{
			name: "gcp-a2-mega", aliases: []string{"a2-megagpu-16g", "a2-megagpu", "a2-mega", "gcp-a2-megagpu"}, summary: "a2-megagpu-16g: 16 A100-40GB, NVSwitch, one 100 Gb/s gVNIC",
			source: docs + "PCIe tree assumed", node: a2("a100-40", 16), net: googleNet(cluster.Ethernet, 0),
		},
		{
			name: "gcp-a2-ultra", aliases: []string{"a2-ultragpu-8g", "a2-ultragpu", "a2-ultra"}, summary: "a2-ultragpu-8g: 8 A100-80GB, NVSwitch, one 100 Gb/s gVNIC",
			source: docs + "PCIe tree assumed", node: a2("a100-80", 8), net: googleNet(cluster.Ethernet, 0),
		},
		{
			name: "gcp-a3-high", aliases: []string{"a3-highgpu-8g", "a3-highgpu", "a3-high", "a3", "gcp-a3", "gcp-a3-highgpu"}, summary: "a3-highgpu-8g: 8 H100-80GB, NVSwitch, 4 GPU NICs of 200 Gb/s with GPUDirect-TCPX, 2 GPUs a NIC",
			source: tree, node: a3("h100", 1, gnic("200Gb/s", cluster.TCPX)), net: googleNet(cluster.TCPX, 4),
		},
		{
			name: "gcp-a3-mega", aliases: []string{"a3-megagpu-8g", "a3-megagpu", "a3-mega", "gcp-a3-megagpu"}, summary: "a3-megagpu-8g: 8 H100-80GB, NVSwitch, 8 GPU NICs of 200 Gb/s with GPUDirect-TCPXO",
			source: tree, node: a3("h100", 2, gnic("200Gb/s", cluster.TCPXO)), net: googleNet(cluster.TCPXO, 8),
		},
		{
			name: "gcp-a3-ultra", aliases: []string{"a3-ultragpu-8g", "a3-ultragpu", "a3-ultra"}, summary: "a3-ultragpu-8g: 8 H200-141GB, NVSwitch, 8 ConnectX-7 of 400 Gb/s, RoCE",
			source: tree, node: a3("h200", 2, cx7RoCE("400GbE")), net: googleNet(cluster.RoCE, 8),
		},
		{
			name: "gcp-a4", aliases: []string{"a4-highgpu-8g", "a4-highgpu", "a4"}, summary: "a4-highgpu-8g: 8 B200-180GB, NVSwitch, 8 ConnectX-7 of 400 Gb/s, RoCE",
			source: tree, node: a3("b200", 2, cx7RoCE("400GbE")), net: googleNet(cluster.RoCE, 8),
		},
	}
}
