package query

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/engine/bench/rdma"
	"busbar.dev/unit"
)

// TestSlowRail: a rail is held against the prediction for its slowest port and slot, beyond its error bar, and the
// reason names both.
func TestSlowRail(t *testing.T) {
	site := func(share float64) *cluster.Cluster { // whose NICs have 400 Gb/s, in slots of 63 GB/s
		n := &cluster.NodeType{Name: "n"}
		slot := n.Add(cluster.Device{Kind: cluster.PCISwitch, Parent: -1})
		nic := n.Add(cluster.Device{
			Kind: cluster.NIC, Parent: slot, NIC: &cluster.NICInfo{
				Kind: cluster.InfiniBand, Ports: []cluster.Port{{Num: 1, Rate: cluster.FromAssumed(400*unit.Gbps, "")}},
			},
		})
		n.Connect(cluster.Link{
			A: slot, B: nic, Kind: cluster.PCIe, Lanes: 16, GTs: 32, Rate: cluster.FromAssumed(63*unit.GBps, ""),
		})
		c := &cluster.Cluster{Types: []*cluster.NodeType{n}, Hosts: []cluster.Host{{Name: "a"}}}
		if share > 0 {
			c.Calibration = &cluster.Calibration{Figures: []cluster.Calibrated{{Name: "infiniband_share", Value: share}}}
		}
		return c
	}
	for name, tt := range map[string]struct {
		port    rdmaPort
		cluster *cluster.Cluster
		size    unit.Bytes
		rate    float64 // GB/s
		want    string  // empty: not slow
	}{
		"as predicted":   {port: rdmaPort{GBps: 25}, rate: 23},
		"within the bar": {port: rdmaPort{GBps: 25}, rate: 17},
		"beyond the bar": {
			port: rdmaPort{GBps: 25}, rate: 12,
			want: "the prediction for links of 25.0 GB/s and a PCIe slot that is not known says 23",
		},
		"RoCE": {
			port: rdmaPort{GBps: 25, Layer: "Ethernet"}, rate: 12, want: "is beyond its error bar (a factor of 1.66)",
		},
		"a narrow slot": {port: rdmaPort{GBps: 25, Slot: 7.9}, rate: 6},
		"slower than a slot": {
			port: rdmaPort{GBps: 25, Slot: 7.9}, rate: 2,
			want: "and a PCIe slot of 7.9 GB/s says 7.0, and less than 4.5 is beyond its error bar",
		},
		"not known":      {rate: 1},
		"small messages": {port: rdmaPort{GBps: 25}, size: 8, rate: 0.1},
		"a link too slow": {
			port: rdmaPort{GBps: 25, Slot: 31}, cluster: site(0), rate: 23,
			want: "the prediction for links of 50.0 GB/s and a PCIe slot of 63.0 GB/s says 47",
		},
		"calibrated": {
			port: rdmaPort{GBps: 25}, cluster: site(0.6), rate: 12,
			want: "the calibrated prediction for links of 50.0 GB/s and a PCIe slot of 63.0 GB/s says 30.0",
		},
		"calibrated, well": {port: rdmaPort{GBps: 25}, cluster: site(0.6), rate: 23},
	} {
		size := tt.size
		if size == 0 {
			size = unit.MiB
		}
		m := &rdmaHub{
			checkHub: &checkHub{checkWorker: checkWorker{rdma: &rdmaWorker{bw: rdma.Test{Size: size}}}},
			q:        &BenchRDMA{Iters: 1000},
			ends:     []rdmaEnd{{rdmaPort{GBps: 1000}, 0, 0}, {tt.port, 1, 0}}, rails: [][]int{{0, 1}},
			expects: expectation{cluster: tt.cluster},
		}
		f, slow := m.slowRail(&BenchRDMARail{Rate: tt.rate})
		if slow != (tt.want != "") || !strings.Contains(f.Text, tt.want) || len(m.notes) > 0 {
			t.Errorf("%s: %v, %q, %q", name, slow, f.Text, m.notes)
		}
	}
}
