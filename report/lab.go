package report

import (
	"fmt"
	"io"
	"slices"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// Labs writes several labs.
func Labs(w io.Writer, list []*lab.State) error {
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := Lab(w, s); err != nil {
			return err
		}
	}
	return nil
}

// Lab writes a lab's nodes, cables and faults.
func Lab(w io.Writer, s *lab.State) error {
	p := s.Plan
	fmt.Fprintf(w, "lab %s: %s, %s, rates × %v%s\n\n", s.Name, p.Cluster, words.Plural(len(p.Nodes), "node"), p.Scale,
		when(s.Rootless, ", rootless"))
	nodes := labNodes(p)
	nodes.Title = "lab " + s.Name
	if err := nodes.Write(w); err != nil {
		return err
	}
	if len(p.Cables) > 0 {
		fmt.Fprintln(w)
		t := texttab.New("switch", "switch", ">rate")
		t.Title = nodes.Title
		for _, c := range p.Cables {
			t.Row(p.Switches[c.B].Name, p.Switches[c.A].Name, c.Rate.Bits())
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	labInside(w, p)
	if p.Staging > 0 {
		fmt.Fprintf(w, "host memory: one half-duplex path of %s in each node\n", p.Staging.Bits())
	}
	for _, f := range s.Faults {
		fmt.Fprintln(w, "fault:", f)
	}
	return nil
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
func labInside(w io.Writer, p *lab.Plan) {
	if p.Inside != lab.Links {
		several := func(n lab.Node) bool { return n.GPUs > 1 }
		fmt.Fprint(w, when(slices.ContainsFunc(p.Nodes, several), "\ninside nodes: shared memory of this machine\n"))
		return
	}
	fmt.Fprintln(w)
	for i := range p.Inner {
		var links grouped[unit.Rate, string]
		for _, l := range p.Inner[i].Links {
			links.put(l.Rate, l.Name)
		}
		for rate, names := range links.all() {
			fmt.Fprintf(w, "inside nodes: %d links of %v in one direction, such as %s\n", len(names), rate, names[0])
		}
	}
}

// LabFaults writes the faults that are in place, one a line.
func LabFaults(w io.Writer, faults []lab.Fault) {
	if len(faults) == 0 {
		fmt.Fprintln(w, "no faults")
	}
	for _, f := range faults {
		fmt.Fprintln(w, f)
	}
}
