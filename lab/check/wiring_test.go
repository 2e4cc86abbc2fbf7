package check

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/lab"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

const clos = `
name: clos
types:
  one:
    gpus: 1 x A100-SXM4-40GB
    nics: 1 x 100GbE roce
nodes:
  - count: 8
    type: one
network:
  nodes_per_leaf: 4
  oversubscription: 4
`

// Data crosses what it must, and a collective in the simulated lab takes what the
// arithmetic of its NICs says.
func TestWiringGivesArithmetic(t *testing.T) {
	for _, x := range []struct {
		name  string
		o     lab.Options
		word  string
		nodes int
		each  int
		want  float64 // in sizes over a NIC's data rate
	}{
		{"one leaf", lab.Options{}, "ring", 8, 1, 2 * 7.0 / 8},
		{"over 4:1 in node order", lab.Options{Spines: 1}, "ring", 8, 1, 2 * 7.0 / 8},
		{"over 4:1 to and fro", lab.Options{Spines: 1}, "ring:crossing", 8, 1, 4 * 2 * 7.0 / 8},
		{"half duplex", lab.Options{Staging: 12.5e9}, "ring", 4, 1, 2 * 1.5},
	} {
		c, err := readCluster("clos", clos)
		if err != nil {
			t.Fatal(err)
		}
		p, err := lab.New(c, x.o)
		if err != nil {
			t.Fatal(err)
		}
		const size = 1 << 22
		w, took, busy := played(t, p, x.word, x.nodes, x.each, size)
		want := x.want * size / w.Capacity()[0]
		if got := took.Seconds(); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: %.4f s, want %.4f; limited by %s", x.name, got, want, w.Name(busy))
		}
	}
}

// played is an all-reduce on a plan's wires with processors enough: how long it takes, and
// the number of what limits it.
func played(t *testing.T, p *lab.Plan, word string, nodes, each int, size unit.Bytes) (w *lab.Wiring, took unit.Time, busy int) {
	t.Helper()
	tr, err := newTrial(coll.AllReduce, word, nodes, each)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tr.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	slots := p.Slots(nodes, each)
	w = p.Wire(slots)
	job := sim.Job{Schedule: s, Op: tr.Op(size)}
	for i := range slots {
		job.Ranks = append(job.Ranks, i)
	}
	times, busy, err := (&sim.Sockets{Cores: 1000}).Simulate(t.Context(), w, []sim.Job{job})
	if err != nil {
		t.Fatal(err)
	}
	return w, times[0], busy
}

// preset is a preset's lab with its links inside nodes.
func preset(t *testing.T, name string, nodes int) *lab.Plan {
	t.Helper()
	c, err := hardware.Preset(name, nodes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := lab.New(c, lab.Options{Inside: lab.Links, Scale: lab.Scale{Num: 1, Den: 4000}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// The links inside nodes give the times that arithmetic does.
func TestInsideGivesArithmetic(t *testing.T) {
	const size = 1 << 22
	for _, x := range []struct {
		name, preset, word string
		nodes, each        int
		link, nic          float64 // sizes over a link's rate and over a NIC's
	}{
		{"ring in one node", "baskerville", "ring", 1, 4, 1.5, 0},
		{"ring over two nodes", "baskerville", "ring", 2, 2, 0, 1.5},
		{"inside first", "baskerville", "hierarchical", 2, 2, 1, 1},
		{"behind a switch", "dgx-a100", "direct", 1, 8, 1.75, 0},
	} {
		p := preset(t, x.preset, x.nodes)
		w, took, busy := played(t, p, x.word, x.nodes, x.each, size)
		caps := w.Capacity()
		want := unit.Seconds(x.link*size/caps[2*len(p.NICs)+2*len(p.Cables)+len(p.Nodes)] + x.nic*size/caps[0])
		if got := float64(took) / float64(want); math.Abs(got-1) > 0.02 {
			t.Errorf("%s: %v, want %v; limited by %s", x.name, took, want, w.Name(busy))
		}
		if name := w.Name(busy); x.nic == 0 && !strings.HasPrefix(name, "node0/") {
			t.Errorf("%s: limited by %q", x.name, name)
		}
	}
}
