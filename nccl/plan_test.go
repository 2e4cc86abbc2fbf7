package nccl_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// TestPlanJSON holds the written form to the contract.
func TestPlanJSON(t *testing.T) {
	p := planFor(t, "baskerville", 4, 1, "2.28.9", nil)
	data, err := json.Marshal(p.Setup())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version string
		Rings   [][]int
		Trees   []struct {
			Up   []int
			Down [][]int
		}
		NICs  [][2]int
		Table []struct {
			Op, Algo, Proto string
			Latency         float64 `json:"latency_us"`
			BW              float64 `json:"bw_GBps"`
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "2.28.9" || len(got.Rings) != 2 || len(got.Trees) != 2 || len(got.NICs) != 2 {
		t.Fatalf("%s", data)
	}
	if s := fmt.Sprint(got.Rings[0], got.Trees[0]); s != "[0 1 2 3] {[-1 2 0 2] [[2] [] [1 3] []]}" {
		t.Error(s)
	}
	found := false
	for _, e := range got.Table {
		if e.Op == "all_reduce" && e.Algo == "ring" && e.Proto == "simple" {
			found = e.Latency > 0 && e.BW > 0
		}
	}
	if !found {
		t.Errorf("no estimate of all_reduce, ring, simple in %s", data)
	}
}

// TestSettingsReachThePlan checks that the environment does what NCCL does with it.
func TestSettingsReachThePlan(t *testing.T) {
	for _, c := range []struct {
		env  string
		want func(p *nccl.Plan) bool
	}{
		{"NCCL_MAX_NCHANNELS=4", func(p *nccl.Plan) bool { return p.Count() == 4 && p.P2PChannels == 4 }},
		{"NCCL_MIN_NCHANNELS=32", func(p *nccl.Plan) bool { return p.Count() == 32 }},
		{"NCCL_NVLS_ENABLE=0", func(p *nccl.Plan) bool { return p.NVLSChannels == 0 && p.Heads() == nil }},
		{"NCCL_CROSS_NIC=0", func(p *nccl.Plan) bool { return p.Graphs.Ring.CrossNIC == 0 && p.Graphs.Ring.BwInter == 45 }},
		{"NCCL_CROSS_NIC=2", func(p *nccl.Plan) bool { return p.Graphs.Ring.CrossNIC == 2 && p.Graphs.Ring.BwInter == 48 }},
		{"NCCL_IB_HCA=mlx5_0", func(p *nccl.Plan) bool { return len(p.Nodes[0].View.NICs) == 1 && p.Count() < 16 }},
		{"NCCL_NET_GDR_LEVEL=LOC", func(p *nccl.Plan) bool { return p.Graphs.Ring.TypeInter >= nccl.PathPHB }},
		{"NCCL_P2P_DISABLE=1", func(p *nccl.Plan) bool { return p.Graphs.Ring.TypeIntra >= nccl.PathPHB }},
	} {
		key, value, _ := strings.Cut(c.env, "=")
		if key == "NCCL_P2P_DISABLE" && testing.Short() {
			continue // a long search
		}
		p := planFor(t, "dgx-h100", 2, 8, "2.28", map[string]string{key: value})
		if !c.want(p) {
			t.Errorf("%s: %d channels, ring %+v", c.env, p.Count(), p.Graphs.Ring)
		}
	}
}

// TestCollNet turns in-network reduction on.
func TestCollNet(t *testing.T) {
	env := map[string]string{"NCCL_COLLNET_ENABLE": "1"}
	off := planFor(t, "dgx-h100", 2, 8, "2.28", nil)
	c := hosts(preset(t, "dgx-h100"), 2)
	c.Network.Reduction = cluster.Yes
	on := planOn(t, c, 2, 8, "2.28", env)
	if off.CollNet || !on.CollNet || on.Graphs.Chain.NChannels == 0 || on.Graphs.Direct.NChannels != 8 {
		t.Fatalf("off %v, on %v: chain %d, direct %d channels", off.CollNet, on.CollNet, on.Graphs.Chain.NChannels,
			on.Graphs.Direct.NChannels)
	}
	for _, a := range []nccl.Algo{nccl.CollNetDirect, nccl.CollNetChain, nccl.NVLS} {
		if off.Est[nccl.AllReduce][a][nccl.Simple].BW != 0 || on.Est[nccl.AllReduce][a][nccl.Simple].BW == 0 {
			t.Errorf("%s: %v without, %v with", a, off.Est[nccl.AllReduce][a][nccl.Simple],
				on.Est[nccl.AllReduce][a][nccl.Simple])
		}
	}
}

// TestOnePoorNode checks that a node with a slow NIC lowers the job.
func TestOnePoorNode(t *testing.T) {
	good, poor := meshNode(80, 4, 4, 16, 200*unit.Gbps), meshNode(80, 4, 4, 16, 100*unit.Gbps)
	c := hosts(good, 3)
	fast := planOn(t, c, 3, 4, "2.28", nil)
	c.Types = append(c.Types, poor)
	c.Hosts[1].Type = 1
	slow := planOn(t, c, 3, 4, "2.28", nil)
	if slow.Graphs.Ring.BwInter*float32(slow.Graphs.Ring.NChannels) >= fast.Graphs.Ring.BwInter*
		float32(fast.Graphs.Ring.NChannels) {
		t.Errorf("with the poor node %+v, without %+v", slow.Graphs.Ring, fast.Graphs.Ring)
	}
	checkPlan(t, "mixed", slow)
}

// TestLayouts covers placements other than block, and what NCCL refuses.
func TestLayouts(t *testing.T) {
	c := hosts(meshNode(80, 4, 4, 16, 200*unit.Gbps), 2)
	gpus := c.Types[0].Of(cluster.GPU)
	var cyclic nccl.Layout
	for _, g := range gpus {
		for h := range 2 {
			cyclic = append(cyclic, nccl.Rank{Host: h, GPU: g})
		}
	}
	p, err := new(nccl.Planner).Plan(c, cyclic, nccl.Newest, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, "cyclic", p)
	if p.NNodes != 2 || fmt.Sprint(p.Nodes[1].Ranks) != "[1 3 5 7]" {
		t.Errorf("%d nodes, second has %v", p.NNodes, p.Nodes[1].Ranks)
	}
	for name, l := range map[string]nccl.Layout{
		"none": {}, "twice": {{0, gpus[0]}, {0, gpus[0]}}, "no GPU": {{0, 0}}, "no host": {{7, gpus[0]}},
		"no device": {{0, 999}},
	} {
		if _, err := new(nccl.Planner).Plan(c, l, nccl.Newest, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, x := range [][2]int{{3, 4}, {2, 5}, {0, 1}, {1, 0}} {
		if _, err := nccl.Block(c, x[0], x[1]); err == nil {
			t.Errorf("%v: no error", x)
		}
	}
	one, err := new(nccl.Planner).Plan(c, cyclic[:1], nccl.Newest, nil)
	if err != nil || one.Count() < 1 {
		t.Errorf("one rank: %v", err)
	}
}
