package nccl_test

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// planFor decides for nodes×gpus of a preset.
func planFor(t *testing.T, preset string, nodes, gpus int, version string, env map[string]string) *nccl.Plan {
	t.Helper()
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return planOn(t, c, nodes, gpus, version, env)
}

func planOn(t *testing.T, c *cluster.Cluster, nodes, gpus int, version string, env map[string]string) *nccl.Plan {
	t.Helper()
	l, err := nccl.Block(c, nodes, gpus)
	if err != nil {
		t.Fatal(err)
	}
	v, err := nccl.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(nccl.Planner).Plan(c, l, v, env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// meshNode is a node whose GPUs are joined in pairs by NVLinks and sit two a
// socket, each under a switch of its own with a NIC if rate is not zero.
func meshNode(sm, gpus, lanes int, gts float64, rate unit.Rate) *cluster.NodeType {
	t := &cluster.NodeType{Name: "mesh"}
	var ids, numas []int
	for s := range 2 {
		cpu := &cluster.CPUInfo{Arch: "x86_64", Vendor: "GenuineIntel", Family: 6, Model: 143}
		numa := t.Add(cluster.Device{Kind: cluster.NUMA, Index: s, Parent: -1, CPU: cpu})
		numas = append(numas, numa)
		for range gpus / 2 {
			sw := t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: numa})
			t.Connect(cluster.Link{A: numa, B: sw, Kind: cluster.PCIe, Lanes: 16, GTs: gts})
			g := t.Add(cluster.Device{
				Kind: cluster.GPU, Index: len(ids), Parent: sw, GPU: &cluster.GPUInfo{Vendor: "nvidia", SM: sm},
			})
			t.Connect(cluster.Link{A: sw, B: g, Kind: cluster.PCIe, Lanes: 16, GTs: gts})
			if rate > 0 {
				nic := &cluster.NICInfo{
					Kind: cluster.InfiniBand, Ports: []cluster.Port{{Num: 1, Rate: cluster.FromSpec(rate, "test"), State: cluster.Up}},
				}
				n := t.Add(cluster.Device{Kind: cluster.NIC, Index: len(ids), Parent: sw, NIC: nic})
				t.Connect(cluster.Link{A: sw, B: n, Kind: cluster.PCIe, Lanes: 16, GTs: gts})
			}
			ids = append(ids, g)
		}
	}
	t.Connect(cluster.Link{A: numas[0], B: numas[1], Kind: cluster.SMP})
	for i, a := range ids {
		for _, b := range ids[i+1:] {
			t.Connect(cluster.Link{A: a, B: b, Kind: cluster.NVLink, Lanes: lanes})
		}
	}
	return t
}

func hosts(t *cluster.NodeType, n int) *cluster.Cluster {
	c := &cluster.Cluster{Types: []*cluster.NodeType{t}}
	for i := range n {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprint("node", i)})
	}
	return c
}

// TestDerivedChannels holds searches to channel counts that are known from
// NVIDIA's machines (NCCL 2.28 src/graph/connect.cc, ncclTopoPostset).
func TestDerivedChannels(t *testing.T) {
	for _, c := range []struct {
		preset      string
		nodes, gpus int
		version     string
		want        string // ring, tree and NVLS graphs; channels of collectives
	}{
		{"dgx-h100", 1, 8, "2.30", "ring 12×30/30 NVL, tree 12×30/30 pattern 1, nvls 8×40/60, 24 channels"},
		{"dgx-h100", 1, 8, "2.22", "ring 12×30/30 NVL, tree 12×30/30 pattern 1, nvls 8×40/60, 24 channels"},
		{"dgx-h100", 2, 8, "2.19", "ring 8×45/45 NVL, tree 8×48/48 pattern 3, nvls 8×40/48, 16 channels"},
		{"dgx-a100", 1, 8, "2.28", "ring 12×20/20 NVL, tree 12×20/20 pattern 1, nvls 0×0/0, 24 channels"},
		{"dgx-b200", 1, 8, "2.25", "ring 16×45/45 NVL, tree 16×40/40 pattern 1, nvls 8×80/90, 32 channels"},
		{"baskerville", 1, 4, "2.20", "ring 12×20/20 NVL, tree 12×20/20 pattern 1, nvls 0×0/0, 24 channels"},
		{"baskerville", 2, 2, "2.20", "ring 1×20/20 NVL, tree 1×48/20 pattern 1, nvls 0×0/0, 2 channels"},
		{"baskerville", 4, 1, "2.20", "ring 1×20/20 LOC, tree 1×48/20 pattern 3, nvls 0×0/0, 2 channels"},
	} {
		p := planFor(t, c.preset, c.nodes, c.gpus, c.version, nil)
		r, tr, nv := p.Graphs.Ring, p.Graphs.Tree, p.Graphs.NVLS
		got := fmt.Sprintf("ring %d×%v/%v %s, tree %d×%v/%v pattern %d, nvls %d×%v/%v, %d channels",
			r.NChannels, r.BwIntra, r.BwInter, r.TypeIntra, tr.NChannels, tr.BwIntra, tr.BwInter, tr.Pattern, nv.NChannels,
			nv.BwIntra, nv.BwInter, p.Count())
		if got != c.want {
			t.Errorf("%s %d×%d %s: %s, want %s", c.preset, c.nodes, c.gpus, c.version, got, c.want)
		}
	}
}

// TestBaskerville holds rings and trees to the lines of a published log of four
// A100s on one, two and four Baskerville nodes.
func TestBaskerville(t *testing.T) {
	rings := func(s string) []string { return strings.Split(s, "|") }
	for _, c := range []struct {
		nodes, gpus, channels int
		rings                 map[int]string
		trees                 map[int][]string // by channel; by rank: children->rank->parent
	}{
		{1, 4, 24, map[int]string{0: "0 1 2 3", 1: "0 1 3 2", 2: "0 2 3 1", 6: "0 1 2 3", 7: "0 1 3 2"}, map[int][]string{
			0:  rings("1/-1/-1->0->-1|2/-1/-1->1->0|3/-1/-1->2->1|-1/-1/-1->3->2"),
			3:  rings("1/-1/-1->0->-1|2/-1/-1->1->0|3/-1/-1->2->1|-1/-1/-1->3->2"),
			4:  rings("2/-1/-1->0->-1|3/-1/-1->1->2|1/-1/-1->2->0|-1/-1/-1->3->1"),
			5:  rings("2/-1/-1->0->-1|3/-1/-1->1->2|1/-1/-1->2->0|-1/-1/-1->3->1"),
			23: rings("3/-1/-1->0->1|0/-1/-1->1->-1|-1/-1/-1->2->3|2/-1/-1->3->0"),
		}},
		{2, 2, 2, map[int]string{0: "0 1 2 3", 1: "0 1 2 3"}, map[int][]string{
			0: rings("1/2/-1->0->-1|-1/-1/-1->1->0|3/-1/-1->2->0|-1/-1/-1->3->2"),
			1: rings("1/-1/-1->0->2|-1/-1/-1->1->0|3/0/-1->2->-1|-1/-1/-1->3->2"),
		}},
		{4, 1, 2, map[int]string{0: "0 1 2 3", 1: "0 1 2 3"}, map[int][]string{
			0: rings("2/-1/-1->0->-1|-1/-1/-1->1->2|1/3/-1->2->0|-1/-1/-1->3->2"),
			1: rings("-1/-1/-1->0->1|2/0/-1->1->3|-1/-1/-1->2->1|1/-1/-1->3->-1"),
		}},
	} {
		for _, version := range []string{"2.18", "2.20", "2.22", "2.25", "2.28"} {
			p := planFor(t, "baskerville", c.nodes, c.gpus, version, nil)
			name := fmt.Sprintf("%d×%d in %s", c.nodes, c.gpus, version)
			if p.Count() != c.channels {
				t.Errorf("%s: %d channels, want %d", name, p.Count(), c.channels)
				continue
			}
			for ch, want := range c.rings {
				if got := strings.Trim(fmt.Sprint(p.Ring(ch)), "[]"); got != want {
					t.Errorf("%s: ring %d: %s, want %s", name, ch, got, want)
				}
			}
			for ch, want := range c.trees {
				for r, l := range p.Tree(ch) {
					if got := fmt.Sprintf("%d/%d/%d->%d->%d", l.Down[0], l.Down[1], l.Down[2], r, l.Up); got != want[r] {
						t.Errorf("%s: tree %d: %s, want %s", name, ch, got, want[r])
					}
				}
			}
		}
	}
}
