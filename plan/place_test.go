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
		c.Network.Links = append(c.Network.Links, cluster.NetLink{
			A: cluster.AtSwitch(i, 0), B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{{First: i * 8, N: 8}}},
		})
	}
	if per == 0 {
		per = len(leaves)
	}
	core := len(leaves)
	c.Network.Switches = append(c.Network.Switches, cluster.Switch{Name: "core", Tier: cluster.Core})
	for i := 0; i < len(leaves); i += per {
		spine := len(c.Network.Switches)
		c.Network.Switches = append(c.Network.Switches, cluster.Switch{Name: fmt.Sprintf("spine%d", i), Tier: cluster.Spine})
		c.Network.Links = append(c.Network.Links, cluster.NetLink{
			A: cluster.AtSwitch(core, 0), B: cluster.AtSwitch(spine, 0),
		})
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
	x, err := NewPlacer(&Query{Cluster: c}, nil, free, nil, 1)
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
		for _, leaf := range x.Leaves(x.BestFit()) {
			got[leaf.at] = leaf.Nodes
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d of %v, %d leaves a spine: %v; want %v", tt.n, tt.free, tt.per, got, tt.want)
		}
	}
}

// A scheduler's own tree decides, whatever the cables are: of three leaves of four nodes, racks of 3, 5 and 4 across
// them.
func TestBestFitInTree(t *testing.T) {
	x, _ := site(t, []int{4, 4, 4}, 0)
	x.n = 4
	tree := Tree{Up: []int{3, 3, 3, -1}, Of: []int{0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 2}}
	if got := x.BestFitIn(tree); !slices.Equal(got, []int{2, 6, 10, 11}) {
		t.Errorf("%v, want the rack of four", got)
	}
	x.n = 2
	tree.Of[2], tree.Of[6] = -1, -1 // nodes that topology.conf does not name are on no switch
	if got := x.BestFitIn(tree); !slices.Equal(got, []int{2, 6}) && !slices.Equal(got, []int{10, 11}) {
		t.Errorf("%v, want one of the two pairs", got)
	}
}

// What Slurm's topology/block takes, by base block, as a real controller answers (TestSlurmBlocks of cmd/busbar); nil
// is that the job waits.
func TestBlockFit(t *testing.T) {
	for _, tt := range []struct {
		free, sizes []int
		n           int
		want        []int
	}{
		{[]int{4, 4, 4, 4}, []int{4, 8}, 4, []int{0, 0, 0, 4}}, // of equals the last
		{[]int{4, 2, 3, 4}, []int{4, 8}, 2, []int{0, 2, 0, 0}}, // the tightest that holds it
		{[]int{4, 2, 3, 4}, []int{4, 8}, 5, []int{4, 1, 0, 0}}, // of pairs the one with fewer nodes, in it the fullest first
		{[]int{3, 1, 2, 3}, []int{4, 8}, 6, nil},               // no pair has six
		{[]int{1, 1, 1, 1}, []int{4, 8, 16}, 4, nil},           // four nodes are planned in one base block
		{[]int{3, 3, 3, 3}, []int{4, 8, 16}, 9, []int{0, 3, 3, 3}},
		{[]int{2, 4, 4, 2, 4, 4}, []int{4}, 10, []int{0, 0, 0, 2, 4, 4}}, // nothing larger is planned: all blocks
		{[]int{4, 4, 1, 4, 3, 2, 4, 4}, []int{4, 8, 16, 32}, 10, []int{0, 0, 0, 0, 0, 2, 4, 4}},
		{[]int{4, 4, 1, 4, 3, 2, 4, 4}, []int{4, 16}, 6, []int{0, 0, 0, 0, 0, 2, 0, 4}},
		{[]int{2, 2, 3, 3, 1, 4, 4, 4}, []int{4, 8, 32}, 13, []int{0, 0, 0, 0, 1, 4, 4, 4}},
	} {
		x, _ := site(t, tt.free, 0)
		x.n = tt.n
		b := Blocks{N: len(tt.free), Sizes: tt.sizes}
		for i := range x.free {
			b.Of = append(b.Of, x.at[i][len(place{})-1])
		}
		nodes, ok := x.BlockFit(b)
		var got []int
		if ok {
			got = make([]int, len(tt.free))
			for _, i := range nodes {
				got[b.Of[i]]++
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d of %v in %v: %v; want %v", tt.n, tt.free, tt.sizes, got, tt.want)
		}
	}
}
