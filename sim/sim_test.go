package sim_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// TestRingByHand holds both forms to the formula: 2(n−1) times the latency, and
// 2(n−1)/n of the data over the link's rate.
func TestRingByHand(t *testing.T) {
	const n = 8
	m, _ := machine(t, "dgx-a100", 1, n)
	o, _ := outlined(t, m, "ring", schedule.Params{Ranks: n})
	model := sim.Plain()
	model.Wire.Hop[sim.OverNVLink] = unit.Microsecond
	op := coll.Op{Kind: coll.AllReduce, Bytes: 800 * 1000 * 1000}
	want := 14e-6 + 2*7.0/8*800e6/300e9
	exact, err := o.Exact(context.Background(), op, model, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]unit.Time{"steady": o.Price(op, model).Time, "exact": exact.Time} {
		if d := float64(got)/1e12/want - 1; math.Abs(d) > 1e-6 {
			t.Errorf("%s: %v; the formula says %.3f µs", name, got, want*1e6)
		}
	}
}

// TestLimits holds the words to the cause.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		preset      string
		nodes, gpus int
		algo        string
		size        unit.Bytes
		kind        result.LimitKind
		text        string
	}{
		{"dgx-h100", 1, 8, "ring", unit.GiB, result.ByNVLink, "450 GB/s"},
		{"dgx-h100", 2, 1, "ring", unit.GiB, result.ByNIC, "400 Gb/s"},
		{"baskerville", 2, 2, "ring", unit.GiB, result.ByHost, "cannot reach the memory of GPUs"},
		{"dgx-h100", 8, 8, "ring", 1024, result.ByLatency, "sequential messages"},
		{"l40s-8", 1, 2, "ring", unit.GiB, result.ByPCIe, "PCIe"},
	} {
		m, groups := machine(t, c.preset, c.nodes, c.gpus)
		o, _ := outlined(t, m, c.algo, schedule.Params{Ranks: c.nodes * c.gpus, Channels: 8, Groups: groups, Turn: true})
		f := sim.Fitted()
		proto := sim.Simple
		if c.size < 1<<20 {
			proto = sim.LL
		}
		r := o.Price(coll.Op{Kind: coll.AllReduce, Bytes: c.size},
			f.NCCLModel(sim.Setup{Gen: sim.Hopper, Kind: coll.AllReduce, Algo: c.algo, Proto: proto}))
		if r.Limit.Kind != c.kind || !strings.Contains(r.Limit.Text, c.text) {
			t.Errorf("%s %dx%d %v: %s, %q; expected %s with %q", c.preset, c.nodes, c.gpus, c.size, r.Limit.Kind, r.Limit.Text,
				c.kind, c.text)
		}
		if got := r.Parts.Launch + r.Parts.Latency + r.Parts.Sync + r.Parts.Moving; got != r.Time {
			t.Errorf("%s: the parts add up to %v, not %v", c.preset, got, r.Time)
		}
	}
}

// TestFasterIsNeverSlower doubles the rate of random links: no prediction may grow.
func TestFasterIsNeverSlower(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		c, err := hardware.Preset([]string{"dgx-h100", "baskerville", "alps-gh200"}[rng.IntN(3)], 4)
		if err != nil {
			t.Fatal(err)
		}
		algo := []string{"ring", "tree", "hierarchical", "direct"}[rng.IntN(4)]
		op := coll.Op{Kind: coll.AllReduce, Bytes: 1 << (12 + rng.IntN(18))}
		price := func() (unit.Time, unit.Time) {
			m, groups := placed(t, c, 2, func(k int) int { return k })
			o, _ := outlined(t, m, algo, schedule.Params{Ranks: 2 * len(c.Hosts), Channels: 2, Groups: groups})
			e, err := o.Exact(context.Background(), op, sim.Plain(), nil, false)
			if err != nil {
				t.Fatal(err)
			}
			return o.Price(op, sim.Plain()).Time, e.Time
		}
		steady, exact := price()
		ty := c.Types[0]
		for i := range ty.Links {
			ty.Links[i].Rate.Value *= 2
		}
		for d := range ty.Devices {
			if nic := ty.Devices[d].NIC; nic != nil {
				for p := range nic.Ports {
					nic.Ports[p].Rate.Value *= 2
				}
			}
		}
		for i := range c.Network.Links {
			c.Network.Links[i].Rate.Value *= 2
		}
		if s, e := price(); s > steady || e > exact {
			t.Errorf("%s on %s, %v: links twice as fast take %v and %v instead of %v and %v", algo, c.Name, op.Bytes, s, e,
				steady, exact)
		}
	}
}

// TestEvents holds the record of an exact run to its schedule: every op of every
// lane once a loop, none before the one in front of it has begun.
func TestEvents(t *testing.T) {
	m, groups := machine(t, "baskerville", 2, 2)
	o, s := outlined(t, m, "tree", schedule.Params{Ranks: 4, Channels: 2, Groups: groups, Pieces: 1})
	model := sim.Fitted().NCCLModel(sim.Setup{Gen: sim.Ampere, Kind: coll.AllReduce, Algo: "tree", Proto: sim.Simple})
	r, err := o.Exact(context.Background(), coll.Op{Kind: coll.AllReduce, Bytes: 8 << 20}, model, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	loops, ops := 0, 0
	last := map[[2]int]result.Event{}
	for _, e := range r.Events {
		k := [2]int{e.Rank, e.Lane}
		if p, ok := last[k]; ok && (e.From < p.From || e.Loop*100+e.Op <= p.Loop*100+p.Op) {
			t.Fatalf("rank %d lane %d: op %d of loop %d begins at %v after op %d of loop %d at %v", e.Rank, e.Lane, e.Op, e.Loop,
				e.From, p.Op, p.Loop, p.From)
		}
		if e.To < e.From || e.To > r.Time {
			t.Fatalf("an event from %v to %v in a run of %v", e.From, e.To, r.Time)
		}
		last[k] = e
		loops = max(loops, e.Loop+1)
	}
	for p := range s.Nodes() {
		for l := range s.Lanes {
			ops += s.Len(p, l)
		}
	}
	if len(r.Events) != ops*loops || loops < 2 {
		t.Errorf("%d events in %d loops; expected %d ops in each of several", len(r.Events), loops, ops)
	}
	again, err := o.Exact(context.Background(), coll.Op{Kind: coll.AllReduce, Bytes: 8 << 20}, model, nil, true)
	if err != nil || !slices.Equal(r.Events, again.Events) {
		t.Error("a second run differs")
	}
}

// TestUnreachable names the pair that no route joins.
func TestUnreachable(t *testing.T) {
	c, err := hardware.Preset("h200", 2)
	if err != nil {
		t.Fatal(err)
	}
	g := c.Types[0].Of(cluster.GPU)[0]
	m, err := sim.New(c, []cluster.Place{{Host: 0, Device: g}, {Host: 1, Device: g}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Build(coll.AllReduce, "ring", schedule.Params{Ranks: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Outline(s, nil); err == nil || !strings.Contains(err.Error(), "node0/gpu0") {
		t.Errorf("%v; expected the pair that cannot talk", err)
	}
	if _, err := sim.New(c, []cluster.Place{{Host: 5, Device: g}}); err == nil {
		t.Error("a rank on a host that is not there")
	}
}

// TestOversubscription prices a ring that crosses leaves on a fabric with fewer
// uplinks than nodes, by load and by hash.
func TestOversubscription(t *testing.T) {
	price := func(over float64, kind cluster.NetKind) *result.Run {
		c, err := hardware.Preset("dgx-h100", 16)
		if err != nil {
			t.Fatal(err)
		}
		for d := range c.Types[0].Devices {
			if nic := c.Types[0].Devices[d].NIC; nic != nil {
				nic.Kind = kind
			}
		}
		if err := hardware.Describe(hardware.Description{Kind: kind, Oversubscription: over, NodesPerLeaf: 4},
			c); err != nil {
			t.Fatal(err)
		}
		m, groups := placed(t, c, 8, func(k int) int { return k%4*4 + k/4 }) // neighbours of the ring are on different leaves
		o, _ := outlined(t, m, "ring", schedule.Params{Ranks: 128, Channels: 8, Groups: groups, Turn: true})
		return o.Price(coll.Op{Kind: coll.AllReduce, Bytes: unit.GiB},
			sim.Fitted().NCCLModel(sim.Setup{Gen: sim.Blackwell, Kind: coll.AllReduce, Algo: "ring", Proto: sim.Simple}))
	}
	flat, four := price(1, cluster.InfiniBand), price(4, cluster.InfiniBand)
	if ratio := float64(four.Time) / float64(flat.Time); ratio < 2.5 || ratio > 4.5 || four.Limit.Kind != result.ByFabric {
		t.Errorf("4:1 takes %.2f times as long as 1:1, limited by %v", ratio, four.Limit)
	}
	if h := price(1, cluster.RoCE); h.Time < flat.Time*5/4 || !strings.Contains(h.Limit.Text, "hashing") {
		t.Errorf("hashed uplinks: %v against %v, %v", h.Time, flat.Time, h.Limit)
	}
}
