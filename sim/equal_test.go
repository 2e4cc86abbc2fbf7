package sim_test

import (
	"math"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// TestEqualNodes holds the answer that counts equal nodes once to the one that asks everybody, over presets, numbers of
// nodes on both sides of whole leaves, uplinks that are enough and that are not, algorithms, kinds and sizes.
func TestEqualNodes(t *testing.T) {
	worst, compared := 0.0, 0
	for _, c := range []struct {
		preset string
		nodes  int
		over   float64
	}{{"dgx-h100", 66, 2}, {"dgx-h100", 130, 1}, {"baskerville", 130, 4}} {
		site, err := hardware.Preset(c.preset, c.nodes)
		if err != nil {
			t.Fatal(err)
		}
		if c.over > 1 {
			if err := hardware.Describe(hardware.Description{Kind: cluster.InfiniBand, Oversubscription: c.over},
				site); err != nil {
				t.Fatal(err)
			}
		}
		gpus := len(site.Types[0].Of(cluster.GPU))
		few, groups := placed(t, site, gpus, func(k int) int { return k })
		all, _ := placed(t, site, gpus, func(k int) int { return k })
		sim.Entire(all)
		for _, x := range []struct {
			kind coll.Kind
			algo string
		}{
			{coll.AllReduce, "ring"},
			{coll.AllReduce, "tree"},
			{coll.AllReduce, "nvls_tree"},
			{coll.AllReduce, "hierarchical"},
			{coll.AllGather, "ring"},
			{coll.ReduceScatter, "ring"},
			{coll.AllToAll, "direct"},
			{coll.Broadcast, "chain"},
		} {
			if x.algo == "nvls_tree" && c.preset != "dgx-h100" || x.algo == "direct" && c.nodes > 66 {
				continue
			}
			s, err := schedule.Build(x.kind, x.algo, schedule.Params{
				Ranks: c.nodes * gpus, Channels: 4, Pieces: 1, Groups: groups, Turn: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			a, err := few.Outline(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := all.Outline(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []unit.Bytes{1 << 10, 1 << 20, 1 << 26, 1 << 30} {
				op := coll.Op{Kind: x.kind, Bytes: size}
				m := sim.Fitted().NCCLModel(sim.Setup{Gen: sim.Hopper, Kind: x.kind, Algo: x.algo, Proto: sim.Simple})
				got, want := float64(a.Time(op, m)), float64(b.Time(op, m))
				off := math.Abs(got/want - 1)
				worst, compared = max(worst, off), compared+1
				most := 0.001
				if x.algo == "direct" { // some messages stand for all
					most = 0.02
				}
				if off > most {
					t.Errorf("%s:%d over %g, %s by %s of %v: %v, of everybody %v (%.1f%% off)", c.preset, c.nodes, c.over, x.kind,
						x.algo, size, unit.Time(got), unit.Time(want), 100*off)
				}
			}
		}
	}
	t.Logf("%d prices compared, worst %.3f%% off", compared, 100*worst)
}
