package step_test

import (
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/unit"
)

func small() *cluster.Cluster {
	t := &cluster.NodeType{Name: "n"}
	for range 4 {
		nic := &cluster.NICInfo{GDR: cluster.No, Ports: []cluster.Port{{Rate: cluster.FromRead(unit.Rate(25e9), "test")}}}
		t.Devices = append(t.Devices, cluster.Device{Kind: cluster.NIC, NIC: nic})
	}
	t.Links = []cluster.Link{{Kind: cluster.NVLink, Rate: cluster.FromRead(unit.Rate(300e9), "test")}}
	return &cluster.Cluster{Name: "c", Types: []*cluster.NodeType{t}}
}

// A variant has other figures, and the cluster it was made of keeps its own.
func TestVariants(t *testing.T) {
	c := small()
	rate := func(c *cluster.Cluster) unit.Rate { return c.Types[0].Devices[3].NIC.Ports[0].Rate.Value }
	fast, ok := step.Faster(c, 2, step.Ports)
	if !ok || rate(fast) != 50e9 || rate(c) != 25e9 || fast.Types[0].Links[0].Rate.Value != 300e9 {
		t.Errorf("twice as fast: %v, of %v", rate(fast), rate(c))
	}
	if fast, _ := step.Faster(c, 2, step.Inner); fast.Types[0].Links[0].Rate.Value != 600e9 ||
		c.Types[0].Links[0].Rate.Value != 300e9 {
		t.Error("NVLink is as fast as before, or was changed where it stands")
	}
	if _, ok := step.Faster(c, 2, step.Trunks); ok {
		t.Error("there are no cables between switches")
	}
	for n := 1; n <= 4; n++ {
		few, ok := step.WithPorts(c, n)
		live := 0
		for _, d := range few.Types[0].Devices {
			if d.NIC.Ports[0].State != cluster.Down {
				live++
			}
		}
		if !ok || live != n {
			t.Errorf("%d NICs: %d live", n, live)
		}
	}
	if _, ok := step.WithPorts(c, 5); ok {
		t.Error("five of four NICs")
	}
	if r, ok := hardware.WithGPUDirect(c, cluster.No, cluster.Yes); !ok || r.Types[0].Devices[0].NIC.GDR != cluster.Yes ||
		c.Types[0].Devices[0].NIC.GDR != cluster.No {
		t.Error("NICs do not reach, or were changed where they stand")
	}
}

// Only what is assumed is said to be; where nobody says how oversubscribed leaves are, cables between
// switches are.
func TestAssumed(t *testing.T) {
	c := small()
	if tiers, _ := step.Assumed(c); len(tiers) != 0 {
		t.Errorf("assumed: %v; all was read", tiers)
	}
	c.Types[0].Links[0].Rate.Origin = cluster.Assumed
	c.Network.Switches = []cluster.Switch{{Name: "leaf"}, {Name: "spine", Tier: 1}}
	c.Network.Links = []cluster.NetLink{{
		A: cluster.AtSwitch(1, 0), B: cluster.AtSwitch(0, 0), Rate: cluster.FromRead(unit.Rate(50e9), "test"),
	}}
	c.Network.Oversubscription = cluster.FromAssumed(1.0, "not stated")
	tiers, why := step.Assumed(c)
	if len(tiers) != 2 || tiers[0] != step.Trunks || why[0] != "not stated" || tiers[1] != step.Inner {
		t.Errorf("assumed: %v, %q", tiers, why)
	}
}
