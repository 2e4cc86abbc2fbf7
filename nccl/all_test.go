package nccl_test

import (
	"fmt"
	"testing"
	"time"

	"busbar/hardware"
	"busbar/nccl"
)

// TestEveryPreset thinks for every preset on one and on three nodes, in several
// releases: rings visit all ranks once, trees hang together, and something is
// chosen for every size.
func TestEveryPreset(t *testing.T) {
	versions := []string{"2.18", "2.22", "2.28", "2.30"}
	if testing.Short() {
		versions = versions[2:3]
	}
	done := 0
	for _, info := range hardware.Presets() {
		for _, nodes := range []int{1, 3} {
			c, err := hardware.Preset(info.Name, nodes)
			if err != nil {
				t.Fatal(err)
			}
			l, err := nccl.Block(c, nodes, max(info.GPUs, 1))
			if err != nil {
				continue // no GPUs
			}
			for _, version := range versions {
				v, _ := nccl.ParseVersion(version)
				begin := time.Now()
				p, err := nccl.Think(c, l, v, nil)
				if err != nil {
					t.Logf("%s: %v", info.Name, err)
					break
				}
				if d := time.Since(begin); d > 2*time.Second {
					t.Logf("%s %d nodes %s: %v", info.Name, nodes, version, d)
				}
				done++
				name := fmt.Sprintf("%s %d nodes %s", info.Name, nodes, version)
				checkPlan(t, name, p)
			}
		}
	}
	t.Logf("%d plans", done)
}

func checkPlan(t *testing.T, name string, p *nccl.Plan) {
	t.Helper()
	if p.Count() < 1 {
		t.Fatalf("%s: no channels", name)
	}
	for c := range p.Count() {
		seen := make([]bool, p.NRanks)
		for _, r := range p.Ring(c) {
			if seen[r] {
				t.Fatalf("%s: ring %d visits %d twice", name, c, r)
			}
			seen[r] = true
		}
		if len(p.Ring(c)) != p.NRanks {
			t.Fatalf("%s: ring %d has %d ranks", name, c, len(p.Ring(c)))
		}
		roots, kids := 0, 0
		tree := p.Tree(c)
		for r, l := range tree {
			if l.Up < 0 {
				roots++
			}
			for _, d := range l.Down {
				if d >= 0 {
					kids++
					if tree[d].Up != r {
						t.Fatalf("%s: tree %d: %d's child %d has parent %d", name, c, r, d, tree[d].Up)
					}
				}
			}
		}
		if roots != 1 || kids != p.NRanks-1 {
			t.Fatalf("%s: tree %d has %d roots and %d children", name, c, roots, kids)
		}
	}
	for bytes := int64(8); bytes <= 8<<30; bytes *= 16 {
		ch, err := p.Choose(nccl.Call{Op: nccl.AllReduce, Bytes: bytes})
		if err != nil || p.NRanks > 1 && !(ch.Time > 0) {
			t.Fatalf("%s: %d bytes: %+v, %v", name, bytes, ch, err)
		}
	}
}
