package nccl_test

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// dualNode is two GPUs, each under a switch with a card of two ports of 200 Gb/s:
// two functions, or one function with two ports.
func dualNode(functions bool, kind cluster.NetKind) *cluster.NodeType {
	t := &cluster.NodeType{Name: "dual"}
	cpu := &cluster.CPUInfo{Arch: "x86_64", Vendor: "GenuineIntel", Family: 6, Model: 143}
	numa := t.Add(cluster.Device{Kind: cluster.NUMA, Index: 0, Parent: -1, CPU: cpu})
	var gpus []int
	index := 0
	for i := range 2 {
		sw := t.Add(cluster.Device{
			Kind: cluster.PCISwitch, Index: -1, Parent: numa, PCI: cluster.PCI(fmt.Sprintf("0000:%d0:00.0", i+1)),
		})
		add := func(d cluster.Device) int {
			id := t.Add(d)
			t.Connect(cluster.Link{A: sw, B: id, Kind: cluster.PCIe, Lanes: 16, GTs: 32})
			return id
		}
		t.Connect(cluster.Link{A: numa, B: sw, Kind: cluster.PCIe, Lanes: 16, GTs: 32})
		gpus = append(gpus, add(cluster.Device{
			Kind: cluster.GPU, Index: i, Parent: sw, PCI: cluster.PCI(fmt.Sprintf("0000:%d1:00.0", i+1)),
			GPU: &cluster.GPUInfo{Vendor: "nvidia", SM: 90},
		}))
		port := cluster.Port{Num: 1, Rate: cluster.FromSpec(200*unit.Gbps, "test"), State: cluster.Up}
		if !functions {
			add(cluster.Device{
				Kind: cluster.NIC, Index: index, Parent: sw, PCI: cluster.PCI(fmt.Sprintf("0000:%d2:00.0", i+1)),
				NIC: &cluster.NICInfo{Kind: kind, Ports: []cluster.Port{port, port}},
			})
			index++
			continue
		}
		for f := range 2 {
			add(cluster.Device{
				Kind: cluster.NIC, Index: index, Parent: sw, PCI: cluster.PCI(fmt.Sprintf("0000:%d2:00.%d", i+1, f)),
				NIC: &cluster.NICInfo{Kind: kind, Ports: []cluster.Port{port}},
			})
			index++
		}
	}
	t.Connect(cluster.Link{A: gpus[0], B: gpus[1], Kind: cluster.NVLink, Lanes: 18})
	return t
}

// TestFusedNICs holds the NICs NCCL sees on cards with two ports to the rules of
// its releases (NCCL 2.28 src/graph/topo.cc, ncclTopoMakeVNics).
func TestFusedNICs(t *testing.T) {
	for _, c := range []struct {
		version, env string
		kind         cluster.NetKind
		functions    bool
		want         string // functions by NIC; GB/s of the first; its name in the first ring
	}{
		{"2.18", "", cluster.InfiniBand, true, "[[3] [4] [7] [8]] 25.0 NET/0"},
		{"2.18", "", cluster.InfiniBand, false, "[[3] [3] [6] [6]] 25.0 NET/0"},
		{"2.22", "", cluster.InfiniBand, true, "[[3 4] [7 8]] 50.0 NET/0-0"},
		{"2.22", "NCCL_IB_MERGE_NICS=0", cluster.InfiniBand, true, "[[3] [4] [7] [8]] 25.0 NET/0-0"},
		{"2.28", "", cluster.RoCE, true, "[[3 4] [7 8]] 50.0 NET/0-4"},
		{"2.28", "", cluster.RoCE, false, "[[3] [6]] 50.0 NET/0-4"},
		{"2.28", "NCCL_NET_MERGE_LEVEL=LOC", cluster.RoCE, true, "[[3] [4] [7] [8]] 25.0 NET/0-0"},
		{"2.28", "NCCL_NET_MERGE_LEVEL=PIX", cluster.RoCE, true, "NCCL_NET_MERGE_LEVEL=PIX: NICs of different cards"},
		{"2.28", "NCCL_NET_FORCE_MERGE=a,b", cluster.RoCE, true, "NCCL_NET_FORCE_MERGE=a,b: NICs of different cards"},
		{"2.28", "", cluster.Ethernet, true, "[[3] [4] [7] [8]]"},
	} {
		env := map[string]string{}
		if k, v, ok := strings.Cut(c.env, "="); ok {
			env[k] = v
		}
		cl := hosts(dualNode(c.functions, c.kind), 2)
		l, err := nccl.Block(cl, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := nccl.ParseVersion(c.version)
		p, err := new(nccl.Planner).Plan(cl, l, v, env)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		sound(t, p, 4)
		view := p.Nodes[0].View
		_, text, _ := strings.Cut(p.String(), " 0 : ")
		_, link, _ := strings.Cut(view.String(), "+ NET[")
		bw, _, _ := strings.Cut(link, "]")
		got := fmt.Sprintf("%v %s %s", view.Fused, bw, strings.Fields(text)[0])
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestPrintedPaths checks that a view names no path that leads nowhere: NCCL has
// none from NICs to NVLink switches.
func TestPrintedPaths(t *testing.T) {
	p := planFor(t, "dgx-a100", 2, 8, "2.28", nil)
	if s := p.Nodes[0].View.String(); strings.Contains(s, "DIS") || !strings.Contains(s, "NVS/0-0 (1/240.0/NVL)") {
		t.Error(s)
	}
}
