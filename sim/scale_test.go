package sim_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// site is a fat tree of eight-GPU nodes, built once and shared by benchmarks.
func site(b testing.TB, nodes int) (*cluster.Cluster, []cluster.Place, [][]int) {
	c, err := hardware.Preset("dgx-h100", nodes)
	if err != nil {
		b.Fatal(err)
	}
	gpus := c.Types[0].Of(cluster.GPU)
	places := make([]cluster.Place, 0, nodes*len(gpus))
	groups := make([][]int, nodes)
	all := make([]int, nodes*len(gpus))
	for h := range nodes {
		for _, d := range gpus {
			all[len(places)] = len(places)
			places = append(places, cluster.Place{Host: h, Device: d})
		}
		groups[h] = all[h*len(gpus) : (h+1)*len(gpus)]
	}
	return c, places, groups
}

func pricing(b testing.TB, c *cluster.Cluster, places []cluster.Place, groups [][]int, algo string) *sim.Outline {
	m, err := sim.New(c, places)
	if err != nil {
		b.Fatal(err)
	}
	o, _ := outlined(b, m, algo, schedule.Params{Ranks: len(places), Channels: 8, Pieces: 1, Groups: groups, Turn: true})
	return o
}

// BenchmarkSteady shows the growth of the steady form from 8 GPUs to a million: a
// machine, a schedule, its outline and one price of 1 GiB, from a cluster that is
// there.
func BenchmarkSteady(b *testing.B) {
	for _, nodes := range []int{1, 8, 64, 512, 4096, 32768, 131072} {
		c, places, groups := site(b, nodes)
		for _, algo := range []string{"ring", "tree", "hierarchical"} {
			b.Run(fmt.Sprintf("%s/gpus=%d", algo, 8*nodes), func(b *testing.B) {
				b.ReportAllocs()
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				for range b.N {
					o := pricing(b, c, places, groups, algo)
					o.Price(coll.Op{Kind: coll.AllReduce, Bytes: unit.GiB},
						sim.Fitted().NCCLModel(sim.Setup{Gen: sim.Hopper, Kind: coll.AllReduce, Algo: algo, Proto: sim.Simple}))
				}
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "MB/op")
			})
		}
	}
}

// BenchmarkExact plays a ring over 512 ranks with its NICs contended for.
func BenchmarkExact(b *testing.B) {
	c, places, _ := site(b, 64)
	m, err := sim.New(c, places)
	if err != nil {
		b.Fatal(err)
	}
	o, _ := outlined(b, m, "ring", schedule.Params{Ranks: len(places)})
	b.ReportAllocs()
	for range b.N {
		if _, err := o.Exact(context.Background(), coll.Op{Kind: coll.AllReduce, Bytes: unit.GiB}, sim.Plain(), nil,
			false); err != nil {
			b.Fatal(err)
		}
	}
}
