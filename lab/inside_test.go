package lab

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/hardware"
)

// pcieOnly are nodes whose GPUs talk over PCIe and the link between sockets.
const pcieOnly = `
name: pcie
types:
  node:
    gpus: 4 x L40S
    nics: 1 x 100GbE roce
nodes:
  - count: 2
    type: node
network:
  nodes_per_leaf: 8
`

func preset(t *testing.T, name string, nodes int, o Options) *Plan {
	t.Helper()
	c, err := hardware.Preset(name, nodes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// Every kind of node has the links of its model, and no way has two of them in one shaper.
func TestInsidesOfNodes(t *testing.T) {
	pcie, err := New(read(t, pcieOnly), Options{Inside: Links})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		p      *Plan
		links  int
		stages []int
		rate   float64 // of the first link in the cluster, GB/s
	}{
		{"mesh", preset(t, "baskerville", 1, Options{Inside: Links}), 12, []int{stageLoop}, 100},
		{"switch", preset(t, "dgx-a100", 1, Options{Inside: Links}), 16, []int{stageBefore, stageLoop}, 300},
		{"PCIe", pcie, 10, []int{stageBefore, stageLoop, stageBehind}, 31.5},
	} {
		in := x.p.Inner[0]
		if x.p.Inside != Links || len(in.Links) != x.links || len(in.Left) > 0 {
			t.Errorf("%s: %s, %d links, left out %v; want %d links", x.name, x.p.Inside, len(in.Links), in.Left, x.links)
		}
		if got := in.Links[0].Rate.GBps() / x.p.Scale.Value(); math.Abs(got/x.rate-1) > 0.01 {
			t.Errorf("%s: %s has %.1f GB/s, want %.1f", x.name, in.Links[0].Name, got, x.rate)
		}
		for s := range stages {
			want := false
			for _, k := range x.stages {
				want = want || k == s
			}
			if in.has(s) != want {
				t.Errorf("%s: links in shaper %d: %v", x.name, s, in.has(s))
			}
		}
		checkStages(t, x.name, &in)
	}
	cube := preset(t, "dgx-1v", 1, Options{Inside: Links})
	checkStages(t, "cube mesh", &cube.Inner[0])
}

func checkStages(t *testing.T, name string, in *Inner) {
	t.Helper()
	for i := range in.Routes {
		for j, way := range in.Routes[i] {
			if (len(way) == 0) != (i == j) {
				t.Errorf("%s: %d links from %d to %d", name, len(way), i, j)
			}
			seen := map[int]bool{}
			for _, k := range way {
				if seen[in.Links[k].Stage] {
					t.Errorf("%s: two links of the way from %d to %d in one shaper", name, i, j)
				}
				seen[in.Links[k].Stage] = true
			}
		}
	}
}

// What cannot be pushed stays in memory, and is said with the scale at which it could be.
func TestInsideIsChosen(t *testing.T) {
	for _, x := range []struct {
		name  string
		nodes int
		o     Options
		want  Inside
		note  string
	}{
		{"baskerville", 4, Options{GPUs: 1}, Links, "each link between GPUs"},
		{"baskerville", 2, Options{}, Memory, "with --scale 1/400 they are"},
		{"baskerville", 2, Options{Scale: Scale{1, 400}}, Links, "each link between GPUs"},
		{"baskerville", 1, Options{Inside: Memory}, Memory, "not imitated: ranks"},
		{"baskerville", 1, Options{Staging: 1e10, Local: true}, Memory, "crosses the path through host memory instead"},
		{"baskerville", 1, Options{GPUs: 8}, Memory, "8 ranks and has 4 GPUs"},
		{"dgx-h100", 2, Options{}, Memory, "with --scale 1/4000 they are"},
		{"dgx-h100", 2, Options{Inside: Links}, Links, "each link between GPUs"},
		{"gh200-node", 2, Options{}, Memory, "no node has two GPUs"},
	} {
		p := preset(t, x.name, x.nodes, x.o)
		if notes := strings.Join(p.Notes, "\n"); p.Inside != x.want || !strings.Contains(notes, x.note) ||
			(len(p.Inner) > 0) != (x.want == Links) {
			t.Errorf("%s %+v: %s, want %s with %q:\n%s", x.name, x.o, p.Inside, x.want, x.note, notes)
		}
	}
	c, err := hardware.Preset("baskerville", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{
		{Inside: Links, Local: true, Staging: 1e10}, {Inside: Links, GPUs: 8}, {Inside: Links, Scale: Scale{1, 2}},
	} {
		if _, err := New(c, o); err == nil || !strings.Contains(err.Error(), "links inside nodes: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A rank binds to the address of its GPU, on the NIC nearest to it.
func TestRanksBindToGPUs(t *testing.T) {
	p := preset(t, "baskerville", 2, Options{Scale: Scale{1, 400}})
	slots := p.Slots(2, 4)
	if err := p.checkSlots(slots); err != nil {
		t.Error(err)
	}
	if got := p.Bind(slots[6]); got != "10.64.3.2" {
		t.Errorf("rank 6 binds to %s", got)
	}
	if hosts := p.hostsText(); !strings.Contains(hosts, "\n10.64.3.2 node1-gpu2\n") {
		t.Errorf("no name for a GPU:\n%s", hosts)
	}
	if p.checkSlots(p.Slots(1, 5)) == nil {
		t.Error("five ranks on four GPUs")
	}
	q := preset(t, "baskerville", 2, Options{Inside: Memory})
	if got := q.Bind(q.Slots(2, 4)[6]); got != "mlx5_0" || q.checkSlots(q.Slots(1, 5)) != nil {
		t.Errorf("without links: %s", got)
	}
	// 2x2 in a lab for 4x1: ranks take the first GPUs.
	if n := len(preset(t, "baskerville", 4, Options{GPUs: 1}).Nodes[0].Near); n != 4 {
		t.Errorf("NICs of %d GPUs", n)
	}
}
