//go:build linux

package lab

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Wiring is the lab's network as a simulator sees it: what every cable carries of data,
// and which cables a message crosses. It is the simulator's network.
type Wiring struct {
	p      *Plan
	tables []table
	slots  []Slot
	// TCP says that ranks of a node talk over sockets too, as they always do where the links
	// inside nodes are shaped.
	TCP bool
	// Slow is what is left of a NIC's rate, where that is not all.
	Slow map[int]float64
}

// Wire is the network under ranks that sit so.
func (p *Plan) Wire(slots []Slot) *Wiring {
	return &Wiring{p: p, tables: p.tables(), slots: slots, TCP: p.Inside == Links}
}

// Headers of a packet, and what the interface counts beside its MTU.
const (
	ipHeaders = 20 + 20 + 12 // IP, TCP, time stamps
	ethHeader = 14
)

// data is the part of a rate that data gets, with packets of a size.
func data(mtu int) float64 { return float64(mtu-ipHeaders) / float64(mtu+ethHeader) }

// Capacity is what each resource carries: NICs out and in, cables up and down, the paths
// through host memory, the links inside nodes.
func (w *Wiring) Capacity() []float64 {
	p := w.p
	var caps []float64
	mtu := 65000
	for i := range p.NICs {
		x := &p.NICs[i]
		mtu = min(mtu, x.MTU)
		r := float64(x.Rate) * data(x.MTU)
		if s, ok := w.Slow[i]; ok {
			r *= s
		}
		caps = append(caps, r, r)
	}
	for i := range p.Cables {
		r := float64(p.Cables[i].Rate) * data(mtu)
		caps = append(caps, r, r)
	}
	for range p.Nodes {
		r := cmp.Or(float64(p.Staging)*data(mtu), 1e15)
		caps = append(caps, r)
	}
	for n := range p.Nodes {
		if x := p.inner(n); x != nil {
			for _, l := range x.Links {
				caps = append(caps, float64(l.Rate)*data(innerMTU))
			}
		}
	}
	return caps
}

// innerFrom is the number of the first link inside a node among the resources.
func (w *Wiring) innerFrom(node int) int {
	first := 2*len(w.p.NICs) + 2*len(w.p.Cables) + len(w.p.Nodes)
	for n := range node {
		if x := w.p.inner(n); x != nil {
			first += len(x.Links)
		}
	}
	return first
}

// innerName is a link inside a node in words.
func (w *Wiring) innerName(resource int) string {
	for n := range w.p.Nodes {
		if x := w.p.inner(n); x != nil {
			if k := resource - w.innerFrom(n); k >= 0 && k < len(x.Links) {
				return w.p.Nodes[n].Name + "/" + x.Links[k].Name
			}
		}
	}
	return "?"
}

// Name is a resource in words.
func (w *Wiring) Name(resource int) string {
	p := w.p
	way := func(name, even, odd string) string {
		if resource%2 == 0 {
			return name + " " + even
		}
		return name + " " + odd
	}
	switch k := resource / 2; {
	case resource < 0:
		return "processors and waiting"
	case k < len(p.NICs):
		return way(p.Nodes[p.NICs[k].Node].Name+"/"+p.NICs[k].Name, "out", "in")
	case k < len(p.NICs)+len(p.Cables):
		c := p.Cables[k-len(p.NICs)]
		return way(p.Switches[c.B].Name+"–"+p.Switches[c.A].Name, "up", "down")
	case resource >= w.innerFrom(0):
		return w.innerName(resource)
	default:
		return p.Nodes[resource-2*len(p.NICs)-2*len(p.Cables)].Name + "/host memory"
	}
}

// Route lists what a message from one rank to another crosses.
func (w *Wiring) Route(from, to int) (resources []int, near bool) {
	p := w.p
	a, b := w.slots[from], w.slots[to]
	memory := 2*len(p.NICs) + 2*len(p.Cables)
	if a.Node == b.Node {
		if w.TCP && p.Local {
			return []int{memory + a.Node, memory + a.Node}, false
		}
		x := p.inner(a.Node)
		if w.TCP && x != nil && a.Local < x.GPUs && b.Local < x.GPUs {
			first := w.innerFrom(a.Node)
			for _, k := range x.Routes[a.Local][b.Local] {
				resources = append(resources, first+k)
			}
		}
		return resources, !w.TCP
	}
	if len(a.NICs) == 0 || len(b.NICs) == 0 {
		return nil, false
	}
	out, in := a.NICs[0], b.NICs[0]
	resources = append(resources, 2*out, 2*in+1)
	legs, _ := p.route(w.tables, out, in)
	for _, l := range legs {
		k := 2*len(p.NICs) + 2*l.Cable
		if !l.Up {
			k++
		}
		resources = append(resources, k)
	}
	if p.Staging > 0 {
		resources = append(resources, memory+a.Node, memory+b.Node)
	}
	return resources, false
}

// Data crosses what it must, and a collective in the simulated lab takes what the arithmetic of its NICs says.
func TestWiringGivesArithmetic(t *testing.T) {
	for _, x := range []struct {
		name  string
		o     Options
		word  string
		nodes int
		want  float64 // in sizes over a NIC's data rate
	}{
		{"one leaf", Options{}, "ring", 8, 2 * 7.0 / 8},
		{"over 4:1 in node order", Options{Spines: 1}, "ring", 8, 2 * 7.0 / 8},
		{"over 4:1 to and fro", Options{Spines: 1}, "ring:crossing", 8, 4 * 2 * 7.0 / 8},
		{"half duplex", Options{Staging: 12.5e9}, "ring", 4, 2 * 1.5},
	} {
		p, err := New(read(t, clos), x.o)
		if err != nil {
			t.Fatal(err)
		}
		w, took, busy := simulated(t, p, x.word, x.nodes, 1)
		want := x.want * playedSize / w.Capacity()[0]
		if got := took.Seconds(); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: %.4f s, want %.4f; limited by %s", x.name, got, want, w.Name(busy))
		}
	}
}

const playedSize = 1 << 22

// simulated is an all-reduce on a plan's wires with processors enough: how long it takes, and the number of what limits
// it.
func simulated(t *testing.T, p *Plan, word string, nodes, each int) (w *Wiring, took unit.Time, busy int) {
	t.Helper()
	x := newTrial(coll.AllReduce, word, nodes, each)
	w = p.Wire(p.Slots(nodes, each))
	job := placed(t, coll.AllReduce, x.Algo, nodes*each, x.Params, playedSize)
	times, busy, err := (&Sockets{Cores: 1000}).Simulate(t.Context(), w, []Played{job})
	if err != nil {
		t.Fatal(err)
	}
	return w, times[0], busy
}

// The links inside nodes give the times that arithmetic does.
func TestInsideGivesArithmetic(t *testing.T) {
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
		p := preset(t, x.preset, x.nodes, Options{Inside: Links, Scale: Scale{1, 4000}})
		w, took, busy := simulated(t, p, x.word, x.nodes, x.each)
		caps := w.Capacity()
		want := unit.Seconds(x.link*playedSize/caps[w.innerFrom(0)] + x.nic*playedSize/caps[0])
		if got := float64(took) / float64(want); math.Abs(got-1) > 0.02 {
			t.Errorf("%s: %v, want %v; limited by %s", x.name, took, want, w.Name(busy))
		}
		if name := w.Name(busy); x.nic == 0 && !strings.HasPrefix(name, "node0/") {
			t.Errorf("%s: limited by %q", x.name, name)
		}
	}
}
