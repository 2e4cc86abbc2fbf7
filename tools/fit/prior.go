package main

import "busbar.dev/sim"

// usual are round values of the right size, set by hand, by the part of a figure's
// name behind its generation; who set them had seen earlier fits. They are where a
// fit begins, and where a figure stays that nothing constrains.
var usual = map[string]float64{
	"launch": 8, "ll_hop": 1, "ll128_hop": 2, "simple_hop": 4, "ll_lane": 12, "simple_lane": 60, "slice": 0.5,
	"nvlink_share": 0.8, "multimem_share": 0.65, "multimem_hop": 10,
	"pcie_hop": 0.5, "host_hop": 1, "ll_net": 5, "ll128_net": 6, "simple_net": 18, "crowd": 0.3, "own_work": 1,
	"tree_lane": 1, "tree_slice": 1,
	"pair_launch": 1, "pair_hop": 0.8, "ramp": 60, "ramp_over": 300, "last_step": 0.4, "pair_step": 0.4, "card_launch": 6,
	"pcie_share": 0.75, "dma_share": 0.9, "socket_share": 0.8, "host_rate": 60, "bounce_rate": 14, "bounce_far": 3.9,
	"infiniband_share": 0.95, "roce_share": 0.95, "efa_share": 0.9, "tcpx_share": 0.6, "tcpxo_share": 0.8,
	"tcp_share": 0.9, "tcp_rate": 3, "slingshot_share": 0.92, "omnipath_share": 0.5,
	"roce_late": 2, "efa_late": 15, "tcpx_late": 60, "tcpxo_late": 30, "tcp_late": 35, "slingshot_late": 5,
	"omnipath_late": 5,
	"host_issue":    4, "event_time": 20, "shm_share": 0.45, "net_lane": 20, "shared_nic": 0.9, "round_trip": 2,
	"efa_old_late": 45, "graph_launch": 0.7, "far_share": 0.8, "proxy_time": 15, "efa_old_share": 0.8, "simple_start": 8,
	"switch_tree_share": 0.95, "rack_hop": 15, "rack_share": 0.9,
}

// usualOf are those of generations, from Volta to Blackwell, where NCCL itself tells them apart: what its tables of
// estimates have for a channel of LL128 (src/graph/tuning.cc of 2.18 to 2.30).
var usualOf = map[string][4]float64{"ll128_lane": {20, 20, 36.7, 40}}

// prior is what the figures are before a fit.
func prior() *sim.Figures {
	f := &sim.Figures{}
	for i := range f {
		gen, name := split(i)
		_, lo, hi := sim.FigureRange(i)
		v := usual[name]
		if by, ok := usualOf[name]; ok && gen >= 0 {
			v = by[gen]
		}
		f[i] = min(max(v, lo), hi)
	}
	return f
}

// sure is how much harder a figure is held to its prior: where what is known from physics and from many users says more
// than the one or two machines that were measured.
func sure(name string) float64 {
	switch name {
	case "tcp_late", "host_issue", "dma_share": // packets of 256 bytes and their heads on PCIe: 0.9
		return 20
	case "simple_net": // 14 to 21 us by NCCL's own tables
		return 10
	case "round_trip", "shared_nic", "net_lane", "event_time", "graph_launch":
		return 3
	}
	return 1
}
