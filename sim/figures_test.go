package sim

import "testing"

// Rows of the table stand in the order of the constants: a figure that was added to the one and not to the other would
// move all behind it.
func TestFigureTable(t *testing.T) {
	want := map[figure]string{
		launch + figure(Volta): "volta.launch", launch + figure(Blackwell): "blackwell.launch",
		nvlinkShare + figure(Volta): "volta.nvlink_share", nvlinkShare + figure(Blackwell): "blackwell.nvlink_share",
		multiShare + figure(Hopper): "hopper.multimem_share", multiShare + figure(Blackwell): "blackwell.multimem_share",
		llHop + figure(Ampere): "ampere.ll_hop", llHop + figure(Blackwell): "blackwell.ll_hop",
		multiHop:    "multimem_hop",
		ll128Hop:    "ll128_hop",
		simpleHop:   "simple_hop",
		llLane:      "ll_lane",
		ll128Lane:   "ll128_lane",
		simpleLane:  "simple_lane",
		earlyLane:   "early_lane",
		sliceTime:   "slice",
		rampTime:    "ramp",
		rampOver:    "ramp_over",
		cardHop:     "card_hop",
		llNet:       "ll_net",
		ll128Net:    "ll128_net",
		simpleNet:   "simple_net",
		crowd:       "crowd",
		ownWork:     "own_work",
		lastStep:    "last_step",
		treeLane:    "tree_lane",
		treeSlice:   "tree_slice",
		pairLaunch:  "pair_launch",
		simpleStart: "simple_start",
		switchTree:  "switch_tree_share",
		rackShare:   "rack_share",
		cardLaunch:  "card_launch",
		hostIssue:   "host_issue",
		issueAMD:    "host_issue.amd",
		graphLaunch: "graph_launch",
		pcieShare:   "pcie_share",
		dmaShare:    "dma_share",
		shmShare:    "shm_share",
		hostRate:    "host_rate",
		bounceRate:  "bounce_rate",
		bounceEFA:   "bounce_efa",
		rdmaShare:   "rdma_share",
		efaOldShare: "efa_old_share",
		tcpxShare:   "tcpx_share",
		tcpRate:     "tcp_rate",
		sharedNIC:   "shared_nic",
		roceLate:    "roce_late",
		efaLate:     "efa_late",
		tcpLate:     "tcp_late",
		rcclLaunch:  "rccl.launch",
		rcclLL:      "rccl.ll_hop",
		rcclRamp:    "rccl.ramp",
	}
	list := FigureTable()
	if len(list) != nFigures {
		t.Fatalf("%d rows of figures.csv, %d constants", len(list), nFigures)
	}
	for k, name := range want {
		if list[k].Name != name {
			t.Errorf("row %d is %s; expected %s", k, list[k].Name, name)
		}
	}
	for i, x := range list {
		if !(x.Least < x.Most && x.Usual >= x.Least && x.Usual <= x.Most && x.Firm > 0) {
			t.Errorf("%s: usual %g, firm %g; expected %g to %g", x.Name, x.Usual, x.Firm, x.Least, x.Most)
		}
		if v := Fitted()[i]; v < x.Least || v > x.Most || v == 0 {
			t.Errorf("%s is %g; expected %g to %g", x.Name, v, x.Least, x.Most)
		}
		if j, err := FigureByName(x.Name); err != nil || j != i {
			t.Errorf("%s is found at %d, %v; it is at %d", x.Name, j, err, i)
		}
	}
}
