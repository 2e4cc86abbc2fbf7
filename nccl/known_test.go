package nccl_test

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/ncclxml"
	"busbar.dev/nccl"
)

// bareNIC is a node whose NIC stands directly under the processor, as in containers that hide the PCI address of a
// virtual function.
const bareNIC = `<system version="1">
<cpu numaid="0" affinity="ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:18:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
<gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
<nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="1"/></nic>
</cpu></system>`

// TestNICUnderCPU joins a <nic> under <cpu> as NCCL does (src/graph/topo.cc, ncclTopoAddCpu: LOC_BW, so that the port
// alone limits), also after the description was completed by a PCIe link that nobody stated.
func TestNICUnderCPU(t *testing.T) {
	plan := func(complete bool) *nccl.Plan {
		frag, err := ncclxml.Read("bare.xml", strings.NewReader(bareNIC))
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster.Cluster{Types: frag.Types, Hosts: []cluster.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
		if complete {
			hardware.Complete(c)
		}
		return rcclOn(t, c, 4, "2.28", nil)
	}
	bare, full := plan(false), plan(true)
	if view := bare.Nodes[0].View.String(); !strings.Contains(view, "5000.0") || !strings.Contains(view, "25.0") {
		t.Errorf("no link of LOC_BW to the NIC, or no port of 25 GB/s:\n%s", view)
	}
	for _, x := range [][2]string{
		{bare.Nodes[0].View.String(), full.Nodes[0].View.String()},
		{bare.String(), full.String()},
		{bare.Table.String(), full.Table.String()},
	} {
		if x[0] != x[1] {
			t.Errorf("completed, it is\n%s\nas read\n%s", x[1], x[0])
		}
	}
	if bw := bare.Graphs.Ring.BwInter; bw != 24 && bw != 25 {
		t.Errorf("the ring has %g GB/s between nodes, want those of the port", bw)
	}
}

// TestSuperchipNICs reaches the NICs of GH200 nodes through the processor's C2C link and not through host memory: since
// 2.27 such a path is a kind of its own that GPUDirect takes (src/graph/paths.cc, NCCL_NET_GDR_C2C), since 2.28 by a
// peer too (NCCL_PXN_C2C). Measured with GPUDirect are 94 GB/s of four ports of 200 Gb/s (NVIDIA/nccl issue 1579) and
// 91 (todi).
func TestSuperchipNICs(t *testing.T) {
	n := preset(t, "alps-gh200")
	for version, want := range map[string]nccl.PathType{
		"2.27": nccl.PathP2C, "2.28": nccl.PathPXN, "2.29": nccl.PathPXN, "2.30": nccl.PathPXN,
	} {
		c := &cluster.Cluster{Types: []*cluster.NodeType{n}, Hosts: []cluster.Host{{Name: "a"}, {Name: "b"}}}
		p := rcclOn(t, c, 2, version, nil)
		g := p.Graphs.Ring
		if g.TypeInter != want || float32(g.NChannels)*g.BwInter < 80 {
			t.Errorf("%s: ring of %d channels, %g GB/s between nodes by %s; want %s and four ports", version, g.NChannels,
				g.BwInter, g.TypeInter, want)
		}
	}
}
