package measure

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// described is a cluster of two nodes with 8 GPUs and 2 ports of 400 Gb/s.
func described() *cluster.Cluster {
	t := &cluster.NodeType{}
	for i := range 8 {
		t.Add(cluster.Device{Kind: cluster.GPU, Index: i, Parent: -1, GPU: &cluster.GPUInfo{}})
	}
	for range 2 {
		t.Add(cluster.Device{
			Kind: cluster.NIC, Index: -1, Parent: -1, NIC: &cluster.NICInfo{
				Kind: cluster.InfiniBand, Ports: []cluster.Port{{Num: 1, Rate: cluster.FromRead(400*unit.Gbps, "test")}},
			},
		})
	}
	return &cluster.Cluster{
		Types: []*cluster.NodeType{t},
		Hosts: []cluster.Host{{Name: "a", Type: 0}, {Name: "b", Type: 0}, {Name: "c", Type: 0}, {Name: "d", Type: 0}},
	}
}

// TestCheckCounts: nodes with less than the description or than most nodes have are unhealthy, and ports that are.
func TestCheckCounts(t *testing.T) {
	port := func(name string, up bool, gbit int, lanes string) Port {
		p := Port{
			Name: name, Layer: "InfiniBand", Up: up, State: "ACTIVE", Physical: "LinkUp", Rate: unit.Rate(gbit) * unit.Gbps,
			Lanes: lanes, Counters: map[string]uint64{"symbol_error": 7, "link_downed": 1},
		}
		if !up {
			p.State, p.Physical = "DOWN", "Polling"
		}
		return p
	}
	whole := func() Node {
		return Node{
			GPUs: 8, Model: "H", Asked: true, PortsRead: true,
			Ports: []Port{port("mlx5_0/1", true, 400, "4X NDR"), port("mlx5_1/1", true, 400, "4X NDR")},
		}
	}
	for name, tt := range map[string]struct {
		edit   func(*Node)
		given  bool // the cluster
		nodes  int
		reason string // of node 1, the only one that is not healthy; empty: all are
	}{
		"whole": {func(*Node) {}, true, 4, ""},
		"7 GPUs, described": {
			func(l *Node) { l.GPUs = 7 }, true, 2, "7 of 8 GPUs were found; the cluster's description has 8 GPUs",
		},
		"7 GPUs, most": {
			func(l *Node) { l.GPUs = 7 }, false, 4, "7 of 8 GPUs were found; most nodes have 8 GPUs",
		},
		"7 GPUs, of two":     {func(l *Node) { l.GPUs = 7 }, false, 2, ""},
		"1 GPU is another's": {func(l *Node) { l.GPUs, l.Hidden = 7, 1 }, true, 4, ""},
		"none":               {func(l *Node) { l.GPUs, l.Model = 0, "" }, true, 2, "0 of 8 GPUs were found"},
		"port down": {
			func(l *Node) { l.Ports[1] = port("mlx5_1/1", false, 10, "4X SDR") }, false, 4,
			"port mlx5_1/1 is down (Polling, DOWN); on most nodes it is up",
		},
		"port down, of two": {func(l *Node) { l.Ports[1] = port("mlx5_1/1", false, 10, "4X SDR") }, false, 2, ""},
		"port down, as was": {
			func(l *Node) { l.Ports[1] = port("mlx5_1/1", false, 10, "4X SDR") }, true, 2,
			"1 of 2 RDMA devices are active, as the cluster's description has them; down: mlx5_1/1",
		},
		"port missing": {func(l *Node) { l.Ports = l.Ports[:1] }, false, 4, "port mlx5_1/1 is missing"},
		"port slow": {
			func(l *Node) { l.Ports[0] = port("mlx5_0/1", true, 200, "2X NDR") }, false, 4,
			"port mlx5_0/1 runs at 200 Gb/s (2X NDR); on most nodes it has 400 Gb/s",
		},
		"port slow, as was": {
			func(l *Node) { l.Ports[0] = port("mlx5_0/1", true, 200, "2X NDR") }, true, 2,
			"port mlx5_0/1 runs at 200 Gb/s (2X NDR); the cluster's description has 400 Gb/s",
		},
		"one lane": {
			func(l *Node) { l.Ports[0] = port("mlx5_0/1", true, 100, "1X NDR") }, false, 2,
			"port mlx5_0/1 runs on one lane",
		},
		"one symbol": {func(l *Node) { l.later[0].Counters["symbol_error"] = 8 }, false, 2, ""},
		"symbols": {
			func(l *Node) { l.later[0].Counters["symbol_error"] = 17 }, false, 2,
			"port mlx5_0/1 counted 10 errors during the check (symbol_error",
		},
		"fell": {
			func(l *Node) { l.later[1].Counters["link_downed"] = 2 }, false, 2,
			"port mlx5_1/1 counted 1 error during the check (link_downed",
		},
	} {
		table := &pairs.Table{}
		var locals []Node
		for i := range tt.nodes {
			l := whole()
			l.Host, l.later = string(rune('a'+i)), whole().Ports
			if i == 1 {
				tt.edit(&l)
			}
			table.Names, table.Hosts = append(table.Names, l.Host), append(table.Hosts, l.Host)
			locals = append(locals, l)
		}
		x := Expectation{}
		if tt.given {
			x.Cluster = described()
		}
		for i, n := range judged(locals, table, x).Nodes {
			bad := i == 1 && tt.reason != ""
			if (n.Verdict == "unhealthy") != bad || bad && !strings.HasPrefix(n.Reasons[0], tt.reason) {
				t.Errorf("%s: %s is %s: %q", name, n.Host, n.Verdict, n.Reasons)
			}
		}
	}
}

// TestCheckOneNodeJob: RDMA devices that are missing matter to a job over several nodes alone.
func TestCheckOneNodeJob(t *testing.T) {
	for _, tt := range []struct {
		nodes, list string
		one         bool
	}{
		{"", "", false}, {"1", "", true}, {"2", "a", false}, {"", "gpu7", true}, {"", "gpu[7-8]", false}, {"", "gpu[", false},
	} {
		one := oneNodeJob(func(k string) string {
			return map[string]string{"SLURM_JOB_NUM_NODES": tt.nodes, "SLURM_JOB_NODELIST": tt.list}[k]
		})
		if one != tt.one {
			t.Errorf("%+v: %v", tt, one)
		}
		l := Node{Host: "a", GPUs: 8, Model: "H", Asked: true, PortsRead: true}
		d := judged([]Node{l}, &pairs.Table{Names: []string{"a"}, Hosts: []string{"a"}},
			Expectation{Cluster: described(), OneNode: one})
		want, says := "unhealthy", "a job over several nodes needs them"
		if one {
			want, says = "incomplete", "this job has one node and does not need them"
		}
		if d.Nodes[0].Verdict != want || len(d.Findings) != 1 || !strings.HasSuffix(d.Findings[0].Text, says) {
			t.Errorf("%+v: %+v %+v", tt, d.Nodes, d.Findings)
		}
	}
}

// TestCheckOnce: what two ranks of a host find is one finding.
func TestCheckOnce(t *testing.T) {
	f := finding.Finding{
		ID: "gpu-pcie-width", Severity: finding.Error, Where: "vm/gpu6", Nodes: []string{"vm"},
		Text: "GPU 6 of vm has 8 PCIe lanes of 16",
	}
	l := Node{Host: "vm", GPUs: 8, Findings: []finding.Finding{f}}
	d := judged([]Node{l, l}, &pairs.Table{Names: []string{"0", "1"}, Hosts: []string{"vm", "vm"}},
		Expectation{})
	if len(d.Findings) != 1 || len(d.Nodes) != 1 || len(d.Nodes[0].Reasons) != 1 ||
		d.Nodes[0].Reasons[0] != "GPU 6 has 8 PCIe lanes of 16" {
		t.Errorf("%+v", d)
	}
}
