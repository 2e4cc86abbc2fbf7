package nccl_test

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
)

// TestEveryPreset plans for every preset on one and on three nodes, in several
// releases: rings visit all ranks once, trees hang together, and something is
// chosen for every size.
func TestEveryPreset(t *testing.T) {
	releases := map[string]bool{
		"dgx-h100": true, "dgx-a100": true, "baskerville": true, "aws-p5": true, "jean-zay-v100": true,
	}
	done := 0
	for _, info := range hardware.Presets() {
		if info.GPUs < 1 || testing.Short() && (info.GPUs > 16 || info.NICs == 0) {
			continue
		}
		versions := []string{"2.28"}
		if releases[info.Name] && !testing.Short() {
			versions = []string{"2.18", "2.19", "2.20", "2.22", "2.25", "2.27", "2.28", "2.29", "2.30"}
		}
		for _, nodes := range []int{1, 3} {
			c, err := hardware.Preset(info.Name, nodes)
			if err != nil {
				t.Fatal(err)
			}
			l, err := nccl.Block(c, nodes, info.GPUs)
			if err != nil {
				t.Fatal(err)
			}
			for _, version := range versions {
				v, _ := nccl.ParseVersion(version)
				p, err := new(nccl.Planner).Plan(c, l, v, nil)
				if err != nil {
					if !strings.Contains(err.Error(), "has no NIC") && !strings.Contains(err.Error(), "RCCL on AMD's") &&
						!strings.Contains(err.Error(), "RCCL's figures are known") {
						t.Errorf("%s %d nodes %s: %v", info.Name, nodes, version, err)
					}
					break
				}
				done++
				checkPlan(t, fmt.Sprintf("%s %d nodes %s", info.Name, nodes, version), p)
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
