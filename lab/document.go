package lab

// StatusDoc is what `busbar lab status --json` prints, DownDoc what lab down prints, FaultsDoc what lab fault and lab
// heal print.
type (
	StatusDoc struct {
		Labs []Document `json:"labs"`
	}
	DownDoc struct {
		Ended []string `json:"ended"` // names
	}
	FaultsDoc struct {
		Faults []Fault `json:"faults"` // that are in place
	}
)

// Documents are labs as lab status prints them.
func Documents(states []*State) *StatusDoc {
	d := &StatusDoc{Labs: []Document{}}
	for _, s := range states {
		d.Labs = append(d.Labs, s.Document())
	}
	return d
}

// Document is a lab as `busbar lab up --json` and `lab status --json` print it: names instead of numbers, rates in
// GB/s.
type Document struct {
	Name     string     `json:"name"`
	Pid      int        `json:"pid"`
	Started  string     `json:"started"`
	Rootless bool       `json:"rootless"`
	Cluster  string     `json:"cluster"`
	Scale    string     `json:"scale"`
	Nodes    []NodeDoc  `json:"nodes"`
	Switches []Switch   `json:"switches"`
	Cables   []CableDoc `json:"cables"`
	Staging  float64    `json:"staging_GBps,omitempty"`
	Inside   Inside     `json:"inside"`
	Inner    []Inner    `json:"inner"`
	Faults   []Fault    `json:"faults"`
	Notes    []string   `json:"notes"`
}

// NodeDoc is a node of a Document.
type NodeDoc struct {
	Name  string   `json:"name"`
	Ranks int      `json:"ranks"`
	Inner int      `json:"inner"` // index into Document.Inner, -1: links inside are not imitated
	NICs  []NICDoc `json:"nics"`
}

// NICDoc is a NIC of a NodeDoc.
type NICDoc struct {
	Name   string  `json:"name"`
	Addr   string  `json:"addr"`
	Rate   float64 `json:"rate_GBps"`
	MTU    int     `json:"mtu_bytes"`
	Switch string  `json:"switch"`
}

// CableDoc is a cable between two switches of a Document.
type CableDoc struct {
	A    string  `json:"a"`
	B    string  `json:"b"`
	Rate float64 `json:"rate_GBps"`
}

// Document is the state as --json prints it.
func (s *State) Document() Document {
	p := s.Plan
	d := Document{
		Name: s.Name, Pid: s.Pid, Started: s.Started.Format("2006-01-02T15:04:05Z07:00"), Rootless: s.Rootless,
		Cluster: p.Cluster, Scale: p.Scale.String(),
		Inside: p.Inside, Inner: append([]Inner{}, p.Inner...), Switches: p.Switches, Cables: []CableDoc{},
		Staging: p.Staging.GBps(), Faults: s.Faults, Notes: s.AllNotes(),
	}
	for _, n := range p.Nodes {
		x := NodeDoc{Name: n.Name, Ranks: n.GPUs, Inner: n.Inner, NICs: []NICDoc{}}
		for _, i := range n.NICs {
			nic := &p.NICs[i]
			x.NICs = append(x.NICs, NICDoc{nic.Name, nic.Addr.String(), nic.Rate.GBps(), nic.MTU, p.Switches[nic.Switch].Name})
		}
		d.Nodes = append(d.Nodes, x)
	}
	for _, c := range p.Cables {
		d.Cables = append(d.Cables, CableDoc{p.Switches[c.A].Name, p.Switches[c.B].Name, c.Rate.GBps()})
	}
	return d
}

// AllNotes are the plan's notes and the machine's; never nil.
func (s *State) AllNotes() []string {
	return append(append([]string{}, s.Plan.Notes...), s.Notes...)
}
