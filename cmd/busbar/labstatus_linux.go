package main

import (
	"errors"
	"fmt"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/texttab"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// labJSON is a lab in --json.
type labJSON struct {
	Name     string       `json:"name"`
	Pid      int          `json:"pid"`
	Started  string       `json:"started"`
	Rootless bool         `json:"rootless"`
	Cluster  string       `json:"cluster"`
	Scale    string       `json:"scale"`
	Nodes    []labNode    `json:"nodes"`
	Switches []lab.Switch `json:"switches"`
	Cables   []labCable   `json:"cables"`
	Staging  float64      `json:"staging_GBps,omitempty"`
	Inside   lab.Inside   `json:"inside"`
	Inner    []lab.Inner  `json:"inner"`
	Faults   []lab.Fault  `json:"faults"`
	Notes    []string     `json:"notes"`
}

type labNode struct {
	Name  string   `json:"name"`
	Ranks int      `json:"ranks"`
	Inner int      `json:"inner"` // its kind among the lab's, -1: links inside are not imitated
	NICs  []labNIC `json:"nics"`
}

type labNIC struct {
	Name   string  `json:"name"`
	Addr   string  `json:"addr"`
	Rate   float64 `json:"rate_GBps"`
	MTU    int     `json:"mtu_bytes"`
	Switch string  `json:"switch"`
}

type labCable struct {
	A    string  `json:"a"`
	B    string  `json:"b"`
	Rate float64 `json:"rate_GBps"`
}

func labDoc(s *lab.State) labJSON {
	p := s.Plan
	d := labJSON{
		Name: s.Name, Pid: s.Pid, Started: s.Started.Format("2006-01-02T15:04:05Z07:00"), Rootless: s.Rootless, Cluster: p.Cluster, Scale: p.Scale.String(),
		Inside: p.Inside, Inner: append([]lab.Inner{}, p.Inner...), Switches: p.Switches, Cables: []labCable{}, Staging: p.Staging.GBps(), Faults: s.Faults, Notes: append(append([]string{}, p.Notes...), s.Notes...),
	}
	for _, n := range p.Nodes {
		x := labNode{Name: n.Name, Ranks: n.GPUs, Inner: n.Inner, NICs: []labNIC{}}
		for _, i := range n.NICs {
			nic := &p.NICs[i]
			x.NICs = append(x.NICs, labNIC{nic.Name, nic.Addr.String(), nic.Rate.GBps(), nic.MTU, p.Switches[nic.Switch].Name})
		}
		d.Nodes = append(d.Nodes, x)
	}
	for _, c := range p.Cables {
		d.Cables = append(d.Cables, labCable{p.Switches[c.A].Name, p.Switches[c.B].Name, c.Rate.GBps()})
	}
	return d
}

// Run shows what is up.
func (c *labStatusCmd) Run(e *env) error {
	folder := labFolder()
	names, err := folder.Names()
	if err != nil {
		return failure.Cannot(err)
	}
	labs := []labJSON{}
	var states []*lab.State
	var broken error
	for _, n := range names {
		if c.Name != "" && c.Name != n {
			continue
		}
		l, err := folder.Open(n)
		if errors.Is(err, lab.ErrNone) {
			if !c.Quiet {
				fmt.Fprintf(e.stderr, "busbar: %s: the holder has died; `busbar lab down --name %s` removes what is left\n", n, n)
			}
			continue
		}
		if err != nil {
			broken = errors.Join(broken, err) // the others are shown all the same
			continue
		}
		states = append(states, l.State)
		labs = append(labs, labDoc(l.State))
	}
	if c.JSON {
		if err := writeIndented(e.stdout, map[string]any{"labs": labs}); err != nil {
			return err
		}
	} else {
		for i, s := range states {
			if i > 0 {
				fmt.Fprintln(e.stdout)
			}
			printLab(e, s)
		}
	}
	if broken != nil {
		return labError(broken)
	}
	if len(states) == 0 {
		if !c.JSON && !c.Quiet {
			fmt.Fprintln(e.stderr, "busbar: no lab is up")
		}
		return errWrong
	}
	return nil
}

// printLab prints a lab's nodes, cables and faults.
func printLab(e *env, s *lab.State) {
	p := s.Plan
	how := ""
	if s.Rootless {
		how = ", rootless"
	}
	nodes := "1 node"
	if n := len(p.Nodes); n != 1 {
		nodes = fmt.Sprintf("%d nodes", n)
	}
	fmt.Fprintf(e.stdout, "lab %s: %s, %s, rates × %v%s\n\n", s.Name, p.Cluster, nodes, p.Scale, how)
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{{Head: "node"}, {Head: "ranks", Align: right}, {Head: "NIC"}, {Head: "address"}, {Head: "rate", Align: right}, {Head: "MTU", Align: right}, {Head: "switch"}}}
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
	t.Write(e.stdout)
	if len(p.Cables) > 0 {
		fmt.Fprintln(e.stdout)
		u := texttab.Table{Columns: []texttab.Column{{Head: "switch"}, {Head: "switch"}, {Head: "rate", Align: right}}}
		for _, c := range p.Cables {
			u.Row(p.Switches[c.B].Name, p.Switches[c.A].Name, c.Rate.Bits())
		}
		u.Write(e.stdout)
	}
	printInside(e, p)
	if p.Staging > 0 {
		fmt.Fprintf(e.stdout, "host memory: one half-duplex path of %s in each node\n", p.Staging.Bits())
	}
	for _, f := range s.Faults {
		fmt.Fprintln(e.stdout, "fault:", f)
	}
}

// printInside says how ranks of a node reach each other: links by their rate, since most of
// them are alike.
func printInside(e *env, p *lab.Plan) {
	if p.Inside != lab.Links {
		for i := range p.Nodes {
			if p.Nodes[i].GPUs > 1 {
				fmt.Fprintln(e.stdout, "\ninside nodes: shared memory of this machine")
				return
			}
		}
		return
	}
	fmt.Fprintln(e.stdout)
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
			fmt.Fprintf(e.stdout, "inside nodes: %d links of %v in one direction, such as %s\n", count[r], r, example[r])
		}
	}
}
