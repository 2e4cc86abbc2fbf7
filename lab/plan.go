package lab

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Bounds of a lab; beyond them one machine imitates nothing any more.
const (
	maxNodes  = 64
	maxNICs   = 128 // of all nodes together
	maxCables = 512
)

// Plan is a cluster as it will be made: rates are those of the lab.
type Plan struct {
	Cluster  string    `json:"cluster"`
	Scale    Scale     `json:"scale"`
	Nodes    []Node    `json:"nodes"`
	Switches []Switch  `json:"switches"`
	Cables   []Cable   `json:"cables"`
	NICs     []NIC     `json:"nics"` // of all nodes, in their order
	Staging  unit.Rate `json:"staging_GBps,omitempty"`
	// Local says that what ranks of a node send to each other crosses the staging path
	// too, once out and once in.
	Local bool `json:"staging_local,omitempty"`
	// Inside is how ranks of a node reach each other, Links or Memory, and Inner the links
	// of each kind of node in the first case.
	Inside Inside  `json:"inside"`
	Inner  []Inner `json:"inner,omitempty"`
	// Notes say what is not as in the file.
	Notes []string `json:"notes,omitempty"`
}

// Node is a host of the cluster.
type Node struct {
	Name string `json:"name"`
	Host int    `json:"-"` // in the cluster
	// GPUs is the number of ranks that the node is meant for, and Near the NICs of each, or
	// of each GPU where those are more: indexes into Plan.NICs.
	GPUs int     `json:"gpus"`
	Near [][]int `json:"near,omitempty"`
	NICs []int   `json:"nics"` // indexes into Plan.NICs
	// Inner is the node's kind among Plan.Inner, -1 for none.
	Inner int `json:"inner"`
}

// NIC is a network card with its cable to a switch.
type NIC struct {
	Node   int        `json:"node"`
	Name   string     `json:"name"` // of the interface in the node
	Place  int        `json:"place"`
	Switch int        `json:"switch"`
	Order  int        `json:"order"` // among the NICs of its switch
	Rate   unit.Rate  `json:"rate_GBps"`
	MTU    int        `json:"mtu_bytes"`
	Addr   netip.Addr `json:"addr"`
}

// Switch is a bridge.
type Switch struct {
	Name string       `json:"name"`
	Tier cluster.Tier `json:"tier"`
}

// Cable joins two switches; several side by side are one of their summed rate.
type Cable struct {
	A    int       `json:"a"` // the upper one
	B    int       `json:"b"`
	Rate unit.Rate `json:"rate_GBps"`
}

// Options are the choices of a plan. The zero value makes all nodes of the cluster,
// at the scale that fits the machine.
type Options struct {
	Nodes  int   // 0 is all
	GPUs   int   // ranks of a node; 0 is its GPUs
	Scale  Scale // the zero value is chosen by fit
	Spines int   // boxes that an entry for several spines becomes at most; 0 is 2
	MTU    int   // where the file names none; 0 is 9000
	// Staging is the rate, before scaling, of a half-duplex path through host memory
	// that every byte to or from a node's NICs crosses; 0 is none.
	Staging unit.Rate
	Local   bool
	Inside  Inside // the zero value is Auto
}

// New plans a lab.
func New(c *cluster.Cluster, o Options) (*Plan, error) {
	n := len(c.Hosts)
	if o.Nodes > 0 {
		if o.Nodes > n {
			return nil, fmt.Errorf("a layout of %d nodes, and %s has %d: choose fewer with -l NODESxGPUS, or a greater "+
				"cluster with CLUSTER:NODES", o.Nodes, c.Name, n)
		}
		n = o.Nodes
	}
	if n == 0 {
		return nil, fmt.Errorf("%s has no nodes; a lab has 1 to %d", c.Name, maxNodes)
	}
	if n > maxNodes {
		return nil, fmt.Errorf("%s has %d nodes; a lab has 1 to %d: choose fewer with -l NODESxGPUS", c.Name, n, maxNodes)
	}
	b := &planner{
		c: c, o: o, routes: cluster.NewRoutes(c), p: &Plan{Cluster: c.Name, Local: o.Local}, index: map[int][]int{},
	}
	if err := b.nodes(n); err != nil {
		return nil, err
	}
	b.trunks()
	b.insides()
	b.p.Scale = o.Scale
	flow := b.flow()
	if b.p.Scale == (Scale{}) {
		b.p.Scale = b.p.fit()
		if inside := oneOver(float64(flow / innerTogether)); o.Inside == Links && inside.Value() < b.p.Scale.Value() {
			b.p.Scale = inside
		}
	}
	if err := b.p.shrink(o.Staging); err != nil {
		return nil, err
	}
	if err := b.choose(flow * unit.Rate(b.p.Scale.Value())); err != nil {
		return nil, err
	}
	if err := b.p.connected(); err != nil {
		return nil, err
	}
	b.notes()
	return b.p, nil
}

type planner struct {
	c      *cluster.Cluster
	o      Options
	routes *cluster.Routes
	p      *Plan
	index  map[int][]int // bridges that a switch of the cluster became
	// What the notes say: NICs that no source joins to a switch, what is not as in the file, and why links inside nodes
	// are not imitated.
	noSwitch bool
	changed  []string
	inMemory string
}

func (b *planner) nodes(n int) error {
	for h := range n {
		t := b.c.TypeOf(h)
		if t == nil {
			return fmt.Errorf("%s is not described", b.c.Hosts[h].Name)
		}
		node := Node{Name: nodeName(b.c.Hosts[h].Name), Host: h, GPUs: t.Count(cluster.GPU)}
		if b.o.GPUs > 0 {
			node.GPUs = b.o.GPUs
		}
		node.GPUs = max(node.GPUs, 1)
		for _, x := range b.p.Nodes {
			if x.Name == node.Name {
				return fmt.Errorf("two nodes are called %s", node.Name)
			}
		}
		at := map[int]int{} // NIC by device
		for place, dev := range t.Of(cluster.NIC) {
			nic, ok := b.nic(h, t, dev)
			if !ok {
				continue
			}
			nic.Node, nic.Place = h, place
			at[dev] = len(b.p.NICs)
			node.NICs = append(node.NICs, len(b.p.NICs))
			b.p.NICs = append(b.p.NICs, nic)
		}
		if len(b.p.NICs) > maxNICs {
			return fmt.Errorf("more than %d NICs; choose fewer nodes with -l NODESxGPUS", maxNICs)
		}
		if len(node.NICs) == 0 && n > 1 {
			return fmt.Errorf("%s has no NIC with a known rate; a lab of several nodes needs one", node.Name)
		}
		node.Near = near(t, node, at)
		b.p.Nodes = append(b.p.Nodes, node)
	}
	return b.p.address()
}

// near is which NICs the ranks of a node use, GPU by GPU.
func near(t *cluster.NodeType, node Node, at map[int]int) [][]int {
	byGPU := t.Nearest()
	list := make([][]int, max(node.GPUs, len(byGPU)))
	for g := range list {
		if len(byGPU) > 0 {
			for _, dev := range byGPU[g%len(byGPU)].NICs {
				if i, ok := at[dev]; ok {
					list[g] = append(list[g], i)
				}
			}
		}
		if len(list[g]) == 0 {
			list[g] = node.NICs
		}
	}
	return list
}

// nic is a NIC of a host, if it takes part.
func (b *planner) nic(h int, t *cluster.NodeType, dev int) (NIC, bool) {
	d := &t.Devices[dev]
	if d.NIC == nil {
		return NIC{}, false
	}
	nic := NIC{Rate: d.NIC.Rate().Value, MTU: b.o.MTU, Name: interfaceName(d.Title())}
	sw, link := b.routes.Leaf(h, dev)
	if link >= 0 {
		l := &b.c.Network.Links[link]
		if l.State == cluster.Down {
			return nic, false
		}
		if r := l.Rate.Value * unit.Rate(l.Cables()); r > 0 && (nic.Rate == 0 || r < nic.Rate) {
			nic.Rate = r
		}
	}
	if nic.Rate <= 0 {
		return nic, false
	}
	if sw < 0 && len(b.c.Network.Switches) > 0 {
		return nic, false // a network that is known, and not this NIC's
	}
	for _, p := range d.NIC.Ports {
		if m := p.MTU.Value; m > 0 && nic.MTU == 0 {
			nic.MTU = m
		}
	}
	nic.MTU = cmp.Or(nic.MTU, 9000)
	if nic.MTU < 576 || nic.MTU > 65000 {
		b.changed = append(b.changed, fmt.Sprintf("%s: an MTU of %d is made 9000", d.Title(), nic.MTU))
		nic.MTU = 9000
	}
	nic.Switch = b.leaf(sw)
	for i := range b.p.NICs {
		if b.p.NICs[i].Switch == nic.Switch {
			nic.Order++
		}
	}
	return nic, true
}

// leaf is the bridge of a switch; one for all NICs where no switch is known.
func (b *planner) leaf(sw int) int {
	b.noSwitch = b.noSwitch || sw < 0
	return b.boxes(sw, 1)[0]
}

// boxes are the bridges of a switch, at most so many.
func (b *planner) boxes(sw, most int) []int {
	if list := b.index[sw]; list != nil {
		return list
	}
	name, tier, count := "switch0", cluster.Leaf, 1
	if sw >= 0 {
		x := &b.c.Network.Switches[sw]
		name, tier, count = x.Name, x.Tier, min(max(x.Count, 1), most)
	}
	for i := range count {
		s := Switch{Name: name, Tier: tier}
		if count > 1 {
			s.Name = fmt.Sprintf("%s.%d", name, i)
		}
		b.index[sw] = append(b.index[sw], len(b.p.Switches))
		b.p.Switches = append(b.p.Switches, s)
	}
	return b.index[sw]
}

// trunks lays the cables between switches that the nodes need: those on the way up
// from their leaves.
func (b *planner) trunks() {
	spines := cmp.Or(b.o.Spines, 2)
	net := &b.c.Network
	laid := make([]bool, len(net.Links))
	for more := true; more; {
		more = false
		for i := range net.Links {
			l := &net.Links[i]
			if laid[i] || l.State == cluster.Down || l.Rate.Value <= 0 || l.Count < 0 || l.Loose() || l.A.ToHosts() ||
				l.B.ToHosts() {
				continue
			}
			up, low := l.A.Switch, l.B.Switch
			if net.Switches[low].Tier > net.Switches[up].Tier {
				up, low = low, up
			}
			if b.index[low] == nil {
				continue
			}
			fresh := b.index[up] == nil
			ups, lows := b.boxes(up, min(spines, l.Cables())), b.boxes(low, 1)
			for _, u := range ups {
				for _, v := range lows {
					b.cable(u, v, l.Rate.Value*unit.Rate(l.Cables())/unit.Rate(len(ups)*len(lows)))
				}
			}
			if n := max(net.Switches[up].Count, 1); fresh && n > len(ups) {
				b.changed = append(b.changed, fmt.Sprintf("%s stands for %d switches; the lab has %d with the same sum of uplinks",
					net.Switches[up].Name, n, len(ups)))
			}
			laid[i], more = true, true
		}
	}
}

// cable lays a cable between two switches, or adds its rate to the one that is there.
func (b *planner) cable(up, low int, rate unit.Rate) {
	for i := range b.p.Cables {
		if x := &b.p.Cables[i]; x.A == up && x.B == low {
			x.Rate += rate
			return
		}
	}
	b.p.Cables = append(b.p.Cables, Cable{up, low, rate})
}

// nodeName is a host's name as a label of a host name.
func nodeName(s string) string {
	s, _, _ = strings.Cut(s, ".")
	return clean(s, 63)
}

// interfaceName is a device's name as the kernel takes it for an interface.
func interfaceName(s string) string {
	s = clean(s, 15)
	if s == "lo" || strings.HasPrefix(s, "ifb") {
		return "nic_" + s
	}
	return s
}

func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, s)
	if len(s) > most {
		s = s[:most]
	}
	return cmp.Or(s, "x")
}
