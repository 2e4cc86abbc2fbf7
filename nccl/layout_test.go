package nccl

import (
	"math/rand/v2"
	"slices"
	"testing"

	"busbar.dev/hardware"
)

// TestNodesOfLayouts puts ranks of any order into nodes, and compares with a plain count.
func TestNodesOfLayouts(t *testing.T) {
	c, err := hardware.Preset("gb200-nvl72", 3)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Block(c, 3, 72)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 40 {
		l := slices.Clone(whole)
		if trial%4 > 0 { // all in order, stretches out of order, or anyhow
			block := []int{0, 4, 72, 1}[trial%4]
			r.Shuffle(len(l)/block, func(i, j int) {
				for k := range block {
					l[i*block+k], l[j*block+k] = l[j*block+k], l[i*block+k]
				}
			})
			l = l[:1+r.IntN(len(l))]
		}
		for _, split := range []bool{false, true} {
			type key struct{ host, tray int }
			var order []key
			ranks, gpus := map[key][]int{}, map[key][]int{}
			for rank, x := range l {
				k := key{host: x.Host}
				if split {
					k.tray = c.TypeOf(x.Host).Devices[x.GPU].Tray
				}
				if ranks[k] == nil {
					order = append(order, k)
				}
				ranks[k], gpus[k] = append(ranks[k], rank), append(gpus[k], x.GPU)
			}
			nodes, err := l.nodes(c, split)
			if err != nil || len(nodes) != len(order) {
				t.Fatalf("trial %d: %d nodes, %v; want %d", trial, len(nodes), err, len(order))
			}
			for i, k := range order {
				if n := nodes[i]; n.Host != k.host || !slices.Equal(n.Ranks, ranks[k]) || !slices.Equal(n.gpus, gpus[k]) {
					t.Fatalf("trial %d node %d: %+v; want %v: ranks %v, GPUs %v", trial, i, n, k, ranks[k], gpus[k])
				}
			}
		}
	}
	if _, err := append(slices.Clone(whole), whole[5]).nodes(c, false); err == nil {
		t.Error("two ranks on one GPU are taken")
	}
}
