package nccl_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/ncclplan"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// bridged is two A100 cards joined by NVLink bridges on one Intel socket, with so
// many links each way.
func bridged(there, back int) *cluster.NodeType {
	t := &cluster.NodeType{Name: "bridged"}
	cpu := &cluster.CPUInfo{Arch: "x86_64", Vendor: "GenuineIntel", Family: 6, Model: 106}
	numa := t.Add(cluster.Device{Kind: cluster.NUMA, Index: 0, Parent: -1, CPU: cpu})
	var ids []int
	for i, pci := range []cluster.PCI{"0000:17:00.0", "0000:65:00.0"} {
		g := t.Add(cluster.Device{
			Kind: cluster.GPU, Index: i, Parent: numa, PCI: pci, GPU: &cluster.GPUInfo{Vendor: "nvidia", SM: 80},
		})
		t.Connect(cluster.Link{A: numa, B: g, Kind: cluster.PCIe, Lanes: 16, GTs: 16})
		ids = append(ids, g)
	}
	t.Connect(cluster.Link{A: ids[0], B: ids[1], Kind: cluster.NVLink, OneWay: true, Lanes: there})
	t.Connect(cluster.Link{A: ids[1], B: ids[0], Kind: cluster.NVLink, OneWay: true, Lanes: back})
	return t
}

func preset(t *testing.T, name string) *cluster.NodeType {
	t.Helper()
	n, err := hardware.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// xe8545 is four A100 joined in pairs by NVLinks, each in a NUMA domain of AMD's processors, with two NICs. Where those
// are the log does not say; of five places that were tried only the domains of the first two GPUs give its rings.
func xe8545() *cluster.NodeType {
	t := &cluster.NodeType{Name: "xe8545"}
	var ids, domains []int
	for i := range 4 {
		cpu := &cluster.CPUInfo{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 25, Model: 1}
		domains = append(domains, t.Add(cluster.Device{Kind: cluster.NUMA, Index: i, Parent: -1, CPU: cpu}))
		for _, d := range domains[:i] {
			t.Connect(cluster.Link{A: d, B: domains[i], Kind: cluster.SMP})
		}
	}
	for i, pci := range []cluster.PCI{"0000:01:00.0", "0000:41:00.0", "0000:81:00.0", "0000:c1:00.0"} {
		d := domains[i]
		g := t.Add(cluster.Device{
			Kind: cluster.GPU, Index: i, Parent: d, PCI: pci, GPU: &cluster.GPUInfo{Vendor: "nvidia", SM: 80},
		})
		t.Connect(cluster.Link{A: d, B: g, Kind: cluster.PCIe, Lanes: 16, GTs: 16})
		for _, other := range ids {
			t.Connect(cluster.Link{A: other, B: g, Kind: cluster.NVLink, Lanes: 4})
		}
		ids = append(ids, g)
	}
	for i := range 2 {
		nic := &cluster.NICInfo{
			Kind:  cluster.InfiniBand,
			Ports: []cluster.Port{{Num: 1, Rate: cluster.FromSpec(200*unit.Gbps, "test"), State: cluster.Up}},
		}
		n := t.Add(cluster.Device{Kind: cluster.NIC, Index: i, Parent: domains[i], NIC: nic})
		t.Connect(cluster.Link{A: domains[i], B: n, Kind: cluster.PCIe, Lanes: 16, GTs: 16})
	}
	return t
}

// TestUserLogs plans for machines of users and compares with what their logs
// print. The machine is known by its kind, not by its topology file.
func TestUserLogs(t *testing.T) {
	total := map[string]int{}
	for _, c := range []struct {
		file        string
		node        func() *cluster.NodeType
		nodes, gpus int
		noNVLS      bool // the driver offered none there, the log says
	}{
		{
			"2.18.5-h100x8-2node-xe8640.log", func() *cluster.NodeType { return meshNode(90, 4, 6, 32, 400*unit.Gbps) }, 2, 4,
			false,
		},
		{"2.19.3-h100x16-nebius-2node.log", func() *cluster.NodeType { return preset(t, "dgx-h100") }, 2, 8, false},
		{"2.22.3-h200x8-dell-xe9680.log", func() *cluster.NodeType { return preset(t, "dgx-h100") }, 1, 8, true},
		{"2.25.1-b200x8-dell.log", func() *cluster.NodeType { return preset(t, "dgx-b200") }, 1, 8, false},
		{"2.12.10-a100x8-dell-2node.log", func() *cluster.NodeType { return xe8545() }, 2, 4, false},
		{"2.9.9-p4d-efa-eks.log", func() *cluster.NodeType { return preset(t, "p4d.24xlarge") }, 2, 8, false},
		{"2.27.7-2rank-healthy.log", func() *cluster.NodeType { return bridged(12, 12) }, 1, 2, false},
		{"2.27.7-2rank-nvlink-fault.log", func() *cluster.NodeType { return bridged(1, 12) }, 1, 2, false},
	} {
		log := ncclplan.Read(t, ncclplan.Source{Name: c.file, Data: corpus.Open(t, "nccl-log/"+c.file)})
		env := maps.Clone(log.Env)
		if c.noNVLS {
			env["NCCL_NVLS_ENABLE"] = "0"
		}
		version := strings.SplitN(c.file, "-", 2)[0]
		p := planOn(t, hosts(c.node(), c.nodes), c.nodes, c.gpus, version, env)
		n := map[string]int{}
		for i := range log.Comms {
			if comm := &log.Comms[i]; comm.NRanks == p.NRanks {
				compare(t, c.file, p, log, comm, n)
			}
		}
		n["choices"] += checkChoices(t, realRun{name: c.file, log: log}, p.Choose)
		t.Log(c.file, n)
		for k, v := range n {
			total[k] += v
		}
	}
	t.Log("in all:", total)
}

func compare(t *testing.T, file string, p *nccl.Plan, log *ncclplan.Log, comm *nccllog.Comm, n map[string]int) {
	t.Helper()
	for _, ring := range comm.Rings {
		n["rings"]++
		if ring.Channel >= p.Count() || fmt.Sprint(p.Ring(ring.Channel)) != fmt.Sprint(ring.Ranks) {
			t.Errorf("%s: ring %d of %d: want %v", file, ring.Channel, p.Count(), ring.Ranks)
		}
	}
	if cells := log.Common(comm).Cells; len(cells) > 0 {
		n["tables"]++
		for _, c := range cells {
			n["cells"]++
			op, _ := nccl.ParseOp(c.Op)
			algo, _ := nccl.ParseAlgo(c.Algo)
			proto, _ := nccl.ParseProto(c.Proto)
			e := p.Est[op][algo][proto]
			if got, want := fmt.Sprintf("%.1f/%.1f", e.Latency, e.BW),
				fmt.Sprintf("%.1f/%.1f", c.LatencyUS, c.GBps); got != want {
				t.Errorf("%s: %s %s %s %s, want %s", file, c.Op, c.Algo, c.Proto, got, want)
			}
		}
	}
	for _, k := range comm.Ranks {
		for _, node := range k.Trees {
			n["places in trees"]++
			if node.Channel >= p.Count() || !sameLinks(p.Tree(node.Channel)[node.Rank], node) {
				t.Errorf("%s: tree %d of rank %d: want %v", file, node.Channel, node.Rank, node)
			}
		}
		if ch := log.Of(k); ch.Coll > 0 {
			n["channel counts"]++
			if ch.Coll != p.Count() || ch.P2P != p.P2PChannels || ch.P2PPerPeer != p.P2PPerPeer ||
				ch.NVLS >= 0 && ch.NVLS != p.NVLSChannels {
				t.Errorf("%s: %d coll, %d p2p, %d per peer, %d nvls channels; want %+v", file, p.Count(), p.P2PChannels,
					p.P2PPerPeer, p.NVLSChannels, ch)
			}
		}
		for _, g := range log.Of(k).Graphs {
			n["graphs"]++
			mine := p.Nodes[0].View.Graphs.Ring
			if g.Pattern != 4 {
				mine = p.Nodes[0].View.Graphs.Tree
			}
			want := logged(g)
			if mine.NChannels != want.NChannels || mine.BwIntra != want.BwIntra || mine.BwInter != want.BwInter ||
				mine.Pattern != want.Pattern ||
				mine.SameChannels != want.SameChannels || mine.TypeIntra != want.TypeIntra || mine.TypeInter != want.TypeInter ||
				mine.CrossNIC != want.CrossNIC {
				t.Errorf("%s: graph %+v, want %+v", file, mine, want)
			}
		}
	}
}
