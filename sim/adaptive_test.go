package sim

import (
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
)

// Between two leaves of a torus a pair has the link between them, or half of what each end has where routing is
// adaptive.
func TestAdaptiveRouting(t *testing.T) {
	rates := map[string]float64{}
	for _, routing := range []string{"minimal", "adaptive"} {
		c, err := hardware.Preset("dgx-h100", 16)
		if err != nil {
			t.Fatal(err)
		}
		if err := hardware.Describe(hardware.Description{
			NodesPerLeaf: 1, Topology: "torus:4x4", Routing: routing, Oversubscription: 1,
		}, c); err != nil {
			t.Fatal(err)
		}
		f := newFabric(c, 0)
		var link int
		for i := range c.Network.Links {
			if l := &c.Network.Links[i]; !l.A.ToHosts() && !l.B.ToHosts() {
				link = i
				break
			}
		}
		leg := cluster.Leg{Link: link, Forward: true}
		rates[routing] = f.resource(f.number(leg)).rate.GBps()
		if routing == "adaptive" {
			if pools := f.pools(nil, leg); len(pools) != 2 ||
				f.resource(pools[0]).rate != 4*f.c.Network.Links[link].Rate.Value*2 || f.cables(pools[0]) != 1 {
				t.Errorf("pools %v of %v", pools, f.resource(pools[0]).rate)
			}
		}
	}
	if rates["minimal"] != 100 || rates["adaptive"] != 200 {
		t.Errorf("%v; want 100 GB/s of one link and 200 of half of four", rates)
	}
}
