package hardware

import (
	"fmt"

	"busbar.dev/cluster"
)

// efaCard is an EFA interface. Amazon publishes no MTU for its transport.
func efaCard(gbit int, s slot) card {
	return card{model: "EFA", kind: cluster.EFA, speed: fmt.Sprintf("%dGb/s", gbit), slot: s, gdr: cluster.Yes}
}

// efaNet stands for a fabric that Amazon does not describe: non-blocking as far
// as its documentation promises, leaves assumed.
func efaNet() Description {
	return Description{
		Name: "EFA", Kind: cluster.EFA, NodesPerLeaf: 16, Oversubscription: 1,
		Source: "Amazon EC2 UltraClusters: non-blocking; 16 nodes a leaf assumed, the wiring is not published", Origin: cluster.Assumed,
	}
}

func awsMachines() []machine {
	const plugin = "aws/aws-ofi-nccl, topology/"
	const ec2 = "Amazon EC2 documentation, accelerated computing instances, 2026; "
	cascade := [2]string{"0-23,48-71", "24-47,72-95"}
	milan := [2]string{"0-47,96-143", "48-95,144-191"}
	p4 := func(gpu string) func() *cluster.NodeType {
		return hgx{
			tree: cluster.Spec, gpu: gpu, cpu: intel("Platinum 8275CL", 85), cores: cascade, perSw: 2, nics: 1,
			nic: efaCard(100, slot{3, 16}), up: slot{3, 16}, slot: slot{3, 16},
			gpuPCI: []string{"10:1c.0", "10:1d.0", "20:1c.0", "20:1d.0", "90:1c.0", "90:1d.0", "a0:1c.0", "a0:1d.0"},
			nicPCI: []string{"10:1b.0", "20:1b.0", "90:1b.0", "a0:1b.0"},
		}.node
	}
	p5 := func(gpu string) func() *cluster.NodeType {
		h := hgx{
			tree: cluster.Spec, gpu: gpu, cpu: epyc("7R13", 175, 1), cores: milan, nics: 4,
			nic: efaCard(100, slot{4, 8}), up: slot{4, 16}, slot: slot{5, 16},
		}
		// The four EFA interfaces of a switch have neighbouring bus numbers, the GPU the next.
		for _, bus := range []int{0x4f, 0x60, 0x71, 0x82, 0x93, 0xa4, 0xb5, 0xc6} {
			for k := range 4 {
				h.nicPCI = append(h.nicPCI, fmt.Sprintf("%02x:00.0", bus+k))
				h.nicLabel = append(h.nicLabel, fmt.Sprintf("rdmap%ds0", bus+k))
			}
			h.gpuPCI = append(h.gpuPCI, fmt.Sprintf("%02x:00.0", bus+4))
		}
		return h.node
	}
	later := func(gpu string, cpu cpuSpec, nics, gbit int) func() *cluster.NodeType {
		return hgx{
			tree: cluster.Assumed, gpu: gpu, cpu: cpu, cores: milan, perSw: 2, nics: nics,
			nic: efaCard(gbit, slot{5, 16}), up: slot{5, 16}, slot: slot{5, 16},
		}.node
	}
	const pairs = ec2 + "aws/aws-ofi-nccl, src/platform-aws.cpp: two GPUs a PCIe switch"
	return []machine{
		{
			name: "aws-p3dn", aliases: []string{"p3dn", "p3dn.24xlarge"}, summary: "p3dn.24xlarge: 8 V100-32GB in a hybrid cube mesh, one 100 Gb/s EFA without GPUDirect",
			source: ec2 + "aws/aws-ofi-nccl, src/platform-aws.cpp: no GPUDirect on p3dn; PCIe tree assumed", node: p3dn, net: efaNet(),
		},
		{
			name: "aws-p4d", aliases: []string{"p4d", "p4d.24xlarge"}, summary: "p4d.24xlarge: 8 A100-40GB, NVSwitch, 4 EFA of 100 Gb/s, 2 GPUs a NIC, PCIe 3",
			source: plugin + "p4d-24xl-topo.xml; " + ec2, node: p4("a100-40"), net: efaNet(),
		},
		{
			name: "aws-p4de", aliases: []string{"p4de", "p4de.24xlarge"}, summary: "p4de.24xlarge: as p4d with A100-80GB",
			source: plugin + "p4de-24xl-topo.xml; " + ec2, node: p4("a100-80"), net: efaNet(),
		},
		{
			name: "aws-p5", aliases: []string{"p5", "p5.48xlarge"}, summary: "p5.48xlarge: 8 H100-80GB, NVSwitch, 32 EFA of 100 Gb/s, 4 a GPU",
			source: plugin + "p5.48xl-topo.xml, link speeds and interface names; " + ec2, node: p5("h100"), net: efaNet(),
		},
		{
			name: "aws-p5e", aliases: []string{"p5e", "p5e.48xlarge"}, summary: "p5e.48xlarge: as p5 with H200-141GB",
			source: ec2 + plugin + "p5.48xl-topo.xml", node: p5("h200"), net: efaNet(),
		},
		{
			name: "aws-p5en", aliases: []string{"p5en", "p5en.48xlarge"}, summary: "p5en.48xlarge: 8 H200-141GB, NVSwitch, 16 EFA of 200 Gb/s",
			source: pairs, node: later("h200", intel("Platinum 8488C", 143), 4, 200), net: efaNet(),
		},
		{
			name: "aws-p6-b200", aliases: []string{"p6-b200", "p6-b200.48xlarge"}, summary: "p6-b200.48xlarge: 8 B200-180GB, NVSwitch, 8 EFA of 400 Gb/s",
			source: pairs, node: later("b200", intel("Platinum, 5th generation", 207), 2, 400), net: efaNet(),
		},
		{
			name: "aws-p6-b300", aliases: []string{"p6-b300", "p6-b300.48xlarge"}, summary: "p6-b300.48xlarge: 8 B300-288GB, NVSwitch, 16 EFA of 400 Gb/s",
			source: pairs, node: later("b300", intel("Platinum, 5th generation", 207), 4, 400), net: efaNet(),
		},
	}
}

// p3dn hides its PCIe tree; GPUs and the card hang on their socket's bridge.
func p3dn() *cluster.NodeType {
	t := newNode(cluster.Assumed)
	m := mustGPU("v100-32")
	for s, cores := range []string{"0-23,48-71", "24-47,72-95"} {
		root := addRoot(t, addSocket(t, intel("Platinum 8175M", 85), 0, cores)[0])
		for range 4 {
			addGPU(t, root, m, slot{3, 16}, "")
		}
		if s == 0 {
			nic := efaCard(100, slot{3, 16})
			nic.gdr = cluster.No
			addNIC(t, root, nic, "", "")
		}
	}
	mesh(t, cluster.NVLink, cubeMesh()...)
	return t
}
