package measure

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
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
			c.Calibration = &cluster.Calibration{Figures: []cluster.Calibrated{{Name: "rdma_share", Value: share}}}
		}
		return c
	}
	for name, tt := range map[string]struct {
		port    Port
		cluster *cluster.Cluster
		size    unit.Bytes
		rate    float64 // GB/s
		want    string  // empty: not slow
	}{
		"as predicted":   {port: Port{Rate: 25 * unit.GBps}, rate: 23},
		"within the bar": {port: Port{Rate: 25 * unit.GBps}, rate: 17},
		"beyond the bar": {
			port: Port{Rate: 25 * unit.GBps}, rate: 12,
			want: "the prediction for links of 25.0 GB/s and a PCIe slot that is not known says 22.2",
		},
		"RoCE": {
			port: Port{Rate: 25 * unit.GBps, Layer: "Ethernet"}, rate: 12, want: "is beyond its error bar (a factor of 1.43)",
		},
		"a narrow slot": {port: Port{Rate: 25 * unit.GBps, SlotGTs: 8, SlotLanes: 8}, rate: 6},
		"slower than a slot": {
			port: Port{Rate: 25 * unit.GBps, SlotGTs: 8, SlotLanes: 8}, rate: 2,
			want: "and a PCIe slot of 7.9 GB/s says 7.1, and less than 5.0 is beyond its error bar",
		},
		"not known":      {rate: 1},
		"small messages": {port: Port{Rate: 25 * unit.GBps}, size: 8, rate: 0.1},
		"a link too slow": {
			port: Port{Rate: 25 * unit.GBps, SlotGTs: 16, SlotLanes: 16}, cluster: site(0), rate: 23,
			want: "the prediction for links of 50.0 GB/s and a PCIe slot of 63.0 GB/s says 44.5",
		},
		"calibrated": {
			port: Port{Rate: 25 * unit.GBps}, cluster: site(0.6), rate: 12,
			want: "the calibrated prediction for links of 50.0 GB/s and a PCIe slot of 63.0 GB/s says 30.0",
		},
		"calibrated, well": {port: Port{Rate: 25 * unit.GBps}, cluster: site(0.6), rate: 23},
	} {
		size := tt.size
		if size == 0 {
			size = unit.MiB
		}
		m := &rails{
			hub:  &hub{member: member{rdma: &Perftest{Size: size, Iters: 1000}}},
			ends: []railEnd{{Port{Rate: 1000 * unit.GBps}, 0, 0}, {tt.port, 1, 0}}, rails: [][]int{{0, 1}},
			expect: Expectation{Cluster: tt.cluster},
		}
		f, slow := m.slowRail(&Rail{Rate: tt.rate})
		if slow != (tt.want != "") || !strings.Contains(f.Text, tt.want) || len(m.notes) > 0 {
			t.Errorf("%s: %v, %q, %q", name, slow, f.Text, m.notes)
		}
	}
}
