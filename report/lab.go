package report

import (
	"fmt"
	"io"

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
	rootless := ""
	if s.Rootless {
		rootless = ", rootless"
	}
	fmt.Fprintf(w, "lab %s: %s, %s, rates × %v%s\n\n", s.Name, p.Cluster, words.Plural(len(p.Nodes), "node"), p.Scale,
		rootless)
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
			t.Row(name, ranks, x.Name, x.Addr.String(), x.Rate.Bits(), fmt.Sprint(x.MTU), p.Switches[x.Switch].Name)
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
		for i := range p.Nodes {
			if p.Nodes[i].GPUs > 1 {
				fmt.Fprintln(w, "\ninside nodes: shared memory of this machine")
				return
			}
		}
		return
	}
	fmt.Fprintln(w)
	for i := range p.Inner {
		var rates []unit.Rate
		count := map[unit.Rate]int{}
		example := map[unit.Rate]string{}
		for _, l := range p.Inner[i].Links {
			if count[l.Rate]++; count[l.Rate] == 1 {
				rates = append(rates, l.Rate)
				example[l.Rate] = l.Name
			}
		}
		for _, r := range rates {
			fmt.Fprintf(w, "inside nodes: %d links of %v in one direction, such as %s\n", count[r], r, example[r])
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
