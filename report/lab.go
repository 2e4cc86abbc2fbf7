package report

import (
	"fmt"
	"slices"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// Labs writes several labs.
func Labs(p *Page, list []*lab.State) {
	for i, s := range list {
		if i > 0 {
			p.printf("\n")
		}
		Lab(p, s)
	}
}

// Lab writes a lab's nodes, cables and faults.
func Lab(p *Page, s *lab.State) {
	x := s.Plan
	p.printf("lab %s: %s, %s, rates × %v%s\n\n", s.Name, x.Cluster, words.Plural(len(x.Nodes), "node"), x.Scale,
		when(s.Rootless, ", rootless"))
	nodes := labNodes(x)
	nodes.Title = "lab " + s.Name
	p.table(nodes)
	cables := texttab.New("switch", "switch", ">rate")
	cables.Title = nodes.Title
	for _, c := range x.Cables {
		cables.Row(x.Switches[c.B].Name, x.Switches[c.A].Name, c.Rate.Bits())
	}
	p.below(cables)
	labInside(p, x)
	if x.Staging > 0 {
		p.printf("host memory: one half-duplex path of %s in each node\n", x.Staging.Bits())
	}
	for _, f := range s.Faults {
		p.printf("fault: %v\n", f)
	}
}

// labNodes has a line for each NIC, and one for a node that has none.
func labNodes(p *lab.Plan) *texttab.Table {
	t := texttab.New("node", ">ranks", "NIC", "address", ">rate", ">MTU", "switch")
	for _, n := range p.Nodes {
		name, ranks := n.Name, fmt.Sprint(n.GPUs)
		for _, i := range n.NICs {
			x := &p.NICs[i]
			t.Add(name, ranks, x.Name, x.Addr, x.Rate.Bits(), x.MTU, p.Switches[x.Switch].Name)
			name, ranks = "", ""
		}
		if len(n.NICs) == 0 {
			t.Row(name, ranks)
		}
	}
	return t
}

// labInside writes how ranks of a node reach each other: links by their rate, since most of
// them are alike.
func labInside(p *Page, x *lab.Plan) {
	if x.Inside != lab.Links {
		if slices.ContainsFunc(x.Nodes, func(n lab.Node) bool { return n.GPUs > 1 }) {
			p.printf("\ninside nodes: shared memory of this machine\n")
		}
		return
	}
	p.printf("\n")
	for i := range x.Inner {
		var links grouped[unit.Rate, string]
		for _, l := range x.Inner[i].Links {
			links.put(l.Rate, l.Name)
		}
		for rate, names := range links.all() {
			p.printf("inside nodes: %d links of %v in one direction, such as %s\n", len(names), rate, names[0])
		}
	}
}

// LabFaults writes the faults that are in place, one a line.
func LabFaults(p *Page, d lab.FaultsDoc) {
	if len(d.Faults) == 0 {
		p.printf("no faults\n")
	}
	for _, f := range d.Faults {
		p.printf("%v\n", f)
	}
}
