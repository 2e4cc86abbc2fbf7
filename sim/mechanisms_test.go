package sim_test

import (
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// time is how long a call takes under conditions, by what NCCL takes.
func timeOf(t *testing.T, c *cluster.Cluster, nodes, per int, op coll.Op, how predict.Conditions) unit.Time {
	t.Helper()
	l, err := nccl.Block(c, nodes, per)
	if err != nil {
		t.Fatal(err)
	}
	p, err := predict.New(c, l, nccl.Newest, nil, sim.Fitted())
	if err != nil {
		t.Fatal(err)
	}
	p.Conditions = how
	s, err := p.Auto(op)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Price(op, s)
	if err != nil {
		t.Fatal(err)
	}
	return r.Time
}

// Every mechanism changes the time of some call in the direction that its physics says: leaving it out must make
// the call faster (or slower).
func TestMechanismsMatter(t *testing.T) {
	h100, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		t.Fatal(err)
	}
	rack, err := hardware.Preset("gb200-nvl72", 1)
	if err != nil {
		t.Fatal(err)
	}
	shape := func(s hardware.Spec, nodes int) *cluster.Cluster {
		c, err := s.Cluster(nodes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	cards := shape(hardware.Spec{GPU: "l40s", Count: 4}, 1)
	newer := shape(hardware.Spec{GPU: "rtxpro6000", Count: 8}, 1)
	pair := shape(hardware.Spec{GPU: "l40s", Count: 2}, 1)
	for _, x := range []struct {
		off        sim.Mechanisms
		c          *cluster.Cluster
		nodes, per int
		op         coll.Op
		how        predict.Conditions
		slower     bool // with it
	}{
		{sim.LaunchMode, h100, 1, 8, coll.Op{Kind: coll.AllReduce, Bytes: 8}, predict.Conditions{Serial: 8}, true},
		{sim.LaunchMode, h100, 1, 8, coll.Op{Kind: coll.AllReduce, Bytes: 8}, predict.Conditions{Alone: true}, true},
		{sim.LaunchMode, h100, 1, 8, coll.Op{Kind: coll.AllReduce, Bytes: 8}, predict.Conditions{Graph: true}, false},
		{sim.RootedLoops, h100, 1, 8, coll.Op{Kind: coll.Broadcast, Bytes: unit.MiB}, predict.Conditions{Queue: true}, false},
		// through the other socket's memory
		{sim.HostMemory, cards, 1, 4, coll.Op{Kind: coll.AllReduce, Bytes: unit.GiB}, predict.Conditions{}, true},
		// memory of a newer generation
		{sim.HostMemory, newer, 1, 8, coll.Op{Kind: coll.AllToAll, Bytes: unit.GiB}, predict.Conditions{}, false},
		// two GPUs of an AMD host are peers
		{sim.PeerRules, pair, 1, 2, coll.Op{Kind: coll.AllReduce, Bytes: unit.GiB}, predict.Conditions{}, false},
		// over the network
		{sim.StoreForward, h100, 2, 8, coll.Op{Kind: coll.AllGather, Bytes: 4 * unit.MiB}, predict.Conditions{}, true},
		{sim.RackDomains, rack, 1, 72, coll.Op{Kind: coll.AllReduce, Bytes: unit.GiB}, predict.Conditions{}, true},
	} {
		with := timeOf(t, x.c, x.nodes, x.per, x.op, x.how)
		x.how.Without = x.off
		without := timeOf(t, x.c, x.nodes, x.per, x.op, x.how)
		if with == without || with > without != x.slower {
			t.Errorf("%v of %v under %+v: %v with the mechanism, %v without", x.op.Kind, x.op.Bytes, x.how, with, without)
		}
	}
	// Of calls in a queue nobody waits for a chain of nodes as far as buffers hold a channel's part of a call.
	queue := predict.Conditions{Queue: true}
	if a, b := timeOf(t, h100, 2, 8, coll.Op{Kind: coll.Broadcast, Bytes: 8 * unit.KiB}, queue),
		timeOf(t, h100, 2, 8, coll.Op{Kind: coll.Broadcast, Bytes: 128 * unit.KiB}, queue); b > 8*a {
		t.Errorf("broadcasts in a queue take %v with 8 KiB and %v with 128, which buffers hold", a, b)
	}
	// A thread that serves eight GPUs has nothing to do with a long call.
	long := coll.Op{Kind: coll.AllReduce, Bytes: unit.GiB}
	if a, b := timeOf(t, h100, 1, 8, long, predict.Conditions{}),
		timeOf(t, h100, 1, 8, long, predict.Conditions{Serial: 8}); a != b {
		t.Errorf("1 GiB takes %v by a process a GPU and %v by one thread for all", a, b)
	}
}
