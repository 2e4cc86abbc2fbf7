package plan

import (
	"fmt"
	"slices"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
)

// site is leaves with so many free nodes each, below spines of per leaves each where per is not 0.
func site(t *testing.T, leaves []int, per int) (*Placer, *cluster.Cluster) {
	t.Helper()
	c, err := hardware.Preset("dgx-h100", len(leaves)*8)
	if err != nil {
		t.Fatal(err)
	}
	c.Network = cluster.Network{}
	for i := range leaves {
		c.Network.Switches = append(c.Network.Switches, cluster.Switch{Name: fmt.Sprintf("leaf%d", i), Tier: cluster.Leaf})
		c.Network.Links = append(c.Network.Links, cluster.NetLink{A: cluster.AtSwitch(i, 0), B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{{First: i * 8, N: 8}}}})
	}
	if per == 0 {
		per = len(leaves)
	}
	core := len(leaves)
	c.Network.Switches = append(c.Network.Switches, cluster.Switch{Name: "core", Tier: cluster.Core})
	for i := 0; i < len(leaves); i += per {
		spine := len(c.Network.Switches)
		c.Network.Switches = append(c.Network.Switches, cluster.Switch{Name: fmt.Sprintf("spine%d", i), Tier: cluster.Spine})
		c.Network.Links = append(c.Network.Links, cluster.NetLink{A: cluster.AtSwitch(core, 0), B: cluster.AtSwitch(spine, 0)})
		for k := i; k < min(i+per, len(leaves)); k++ {
			c.Network.Links = append(c.Network.Links, cluster.NetLink{A: cluster.AtSwitch(spine, 0), B: cluster.AtSwitch(k, 0)})
		}
	}
	var free []nccl.Layout
	for i, n := range leaves {
		for k := range n {
			free = append(free, nccl.Layout{{Host: i*8 + k, GPU: c.Types[0].Of(cluster.GPU)[0]}})
		}
	}
	x, err := NewPlacer(&Query{Cluster: c}, nil, free, 1)
	if err != nil {
		t.Fatal(err)
	}
	return x, c
}

// What Slurm takes, by leaf, as a real controller answers for these trees (TestSlurmPlacement of cmd/busbar).
func TestBestFit(t *testing.T) {
	for _, tt := range []struct {
		free []int
		per  int
		n    int
		want []int
	}{
		{[]int{4, 4, 4}, 0, 4, []int{4, 0, 0}},
		{[]int{5, 4, 3}, 0, 4, []int{0, 4, 0}},        // the tightest that holds it
		{[]int{3, 3, 2}, 0, 4, []int{3, 0, 1}},        // none does: the fullest first, then the tightest
		{[]int{2, 3, 3, 8}, 2, 12, []int{1, 3, 0, 8}}, // the fullest, then below the spine that holds the rest
		{[]int{3, 3, 2, 3}, 2, 5, []int{0, 0, 2, 3}},  // below the tightest spine that holds it
	} {
		x, _ := site(t, tt.free, tt.per)
		x.n = tt.n
		got := make([]int, len(tt.free))
		leaves, counts := x.Leaves(x.BestFit())
		for k, leaf := range leaves {
			got[leaf] = counts[k]
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d of %v, %d leaves a spine: %v; want %v", tt.n, tt.free, tt.per, got, tt.want)
		}
	}
}
