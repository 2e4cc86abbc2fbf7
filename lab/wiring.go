package lab

import "cmp"

// Slot is where a rank runs: its node, and the NICs that it uses, the first of them
// where it has one connection a peer.
type Slot struct {
	Node  int
	Local int // its number on the node, which is that of its GPU
	NICs  []int
	// Bare is a rank that talks over the plain loopback, past the links of its node.
	Bare bool
}

// Slots puts each ranks on each of the first nodes, in the order of the nodes; each 0 is
// what the plan says.
func (p *Plan) Slots(nodes, each int) []Slot {
	var slots []Slot
	for n := range min(nodes, len(p.Nodes)) {
		k := each
		if k == 0 {
			k = p.Nodes[n].GPUs
		}
		for i := range k {
			s := Slot{Node: n, Local: i}
			if near := p.Nodes[n].Near; len(near) > 0 {
				s.NICs = near[i%len(near)]
			}
			slots = append(slots, s)
		}
	}
	return slots
}

// Leaves are the ranks below each switch, by the first NIC of each; nil where a rank has none.
func (p *Plan) Leaves(slots []Slot) [][]int {
	var groups [][]int
	at := map[int]int{}
	for r, s := range slots {
		if len(s.NICs) == 0 {
			return nil
		}
		sw := p.NICs[s.NICs[0]].Switch
		if _, ok := at[sw]; !ok {
			at[sw] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[sw]] = append(groups[at[sw]], r)
	}
	return groups
}

// Wiring is the lab's network as a simulator sees it: what every cable carries of data,
// and which cables a message crosses. It is sim's Wiring.
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
		if w.TCP && x != nil && !a.Bare && !b.Bare && a.Local < x.GPUs && b.Local < x.GPUs {
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
