package step_test

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// racks is eight nodes below two leaves of a ratio, with the ranks of all GPUs on the hosts in an order.
func racks(t *testing.T, ratio float64, order ...int) (*cluster.Cluster, nccl.Layout) {
	t.Helper()
	c, err := hardware.Preset("dgx-a100", 8)
	if err != nil {
		t.Fatal(err)
	}
	err = hardware.Describe(hardware.Description{NodesPerLeaf: 4, Oversubscription: ratio, Kind: cluster.InfiniBand}, c)
	if err != nil {
		t.Fatal(err)
	}
	var l nccl.Layout
	for _, h := range order {
		for _, g := range c.TypeOf(h).Of(cluster.GPU) {
			l = append(l, nccl.Rank{Host: h, GPU: g})
		}
	}
	return c, l
}

// TestWirings: hosts that alternate between two racks are put in order, and a sum by racks is offered; a network on
// which every host can send all it has gets neither.
func TestWirings(t *testing.T) {
	mixed := []int{0, 4, 1, 5, 2, 6, 3, 7}
	c, l := racks(t, 4, mixed...)
	list := step.Wirings(c, l, nil)
	if len(list) != 2 || list[0].Setting != "--hosts node[0-7]" || list[1].Rack != 32 ||
		!strings.HasPrefix(list[1].Setting, "--hosts node[0-7] and HOOK=rack") {
		t.Errorf("%+v; want an order, and a sum by racks of 32 ranks", list)
	}
	c, l = racks(t, 4, 0, 1, 2, 3, 4, 5, 6, 7)
	if list = step.Wirings(c, l, nil); len(list) != 1 || list[0].Rack != 32 {
		t.Errorf("in order: %+v; want a sum by racks alone", list)
	}
	c, l = racks(t, 1, mixed...)
	if list = step.Wirings(c, l, nil); len(list) > 0 {
		t.Errorf("without oversubscription: %+v", list)
	}
	c, l = racks(t, 4, 0, 1, 2)
	if list = step.Wirings(c, l, nil); len(list) > 0 {
		t.Errorf("in one rack: %+v", list)
	}
}

// TestNearGPUs: where some GPUs of each node take part and others are nearer to its NICs, those are offered; all of a
// node, one node, or the near ones get nothing.
func TestNearGPUs(t *testing.T) {
	c, err := hardware.Preset("baskerville", 2)
	if err != nil {
		t.Fatal(err)
	}
	gpus := c.TypeOf(0).Of(cluster.GPU)
	for _, x := range []struct {
		nodes int
		gpus  []int
		want  string
	}{{2, []int{2, 3}, "--devices 0,1"}, {2, []int{3}, "--devices 0"}, {2, []int{0, 1}, ""}, {1, []int{2, 3}, ""}} {
		var l nccl.Layout
		for h := range x.nodes {
			for _, g := range x.gpus {
				l = append(l, nccl.Rank{Host: h, GPU: gpus[g]})
			}
		}
		got := ""
		for _, w := range step.Wirings(c, l, nil) {
			got += w.Setting
		}
		if got != x.want {
			t.Errorf("GPUs %v of %d nodes: %q, want %q", x.gpus, x.nodes, got, x.want)
		}
	}
}

// TestTwoPhase: between racks every rank sends its share alone, so that a sum by racks is worth it where a flat ring's
// hops crowd the uplinks, and never takes less than its bytes there need.
func TestTwoPhase(t *testing.T) {
	c, l := racks(t, 4, 0, 4, 1, 5, 2, 6, 3, 7)
	split, err := workload.Split{}.On(len(l))
	if err != nil {
		t.Fatal(err)
	}
	const bytes = unit.Volume(1 << 30)
	flat, _, err := step.NewFabric(c, l, split, nccl.Newest).Time(step.Data, coll.AllReduce, bytes)
	if err != nil {
		t.Fatal(err)
	}
	near := step.Wirings(c, l, nil)[1]
	two, _, err := near.On(step.NewFabric(c, l, split, nccl.Newest)).TwoPhase(near.Rack, bytes)
	if err != nil {
		t.Fatal(err)
	}
	up := 0.0
	for _, s := range c.Network.Sides() {
		if rate, _ := s.Up.Rate(); rate > 0 {
			up = float64(rate)
		}
	}
	if least := unit.Span(float64(bytes) / up); two < least || two > flat {
		t.Errorf("two phases take %v, all at once %v; want less, and at least %v for the bytes of a rack", two, flat, least)
	}
}
