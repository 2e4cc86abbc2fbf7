package hardware

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Description is a network in a few words: what a person says about a cluster's
// fabric. Zero fields take the default that their comment names.
type Description struct {
	Name string
	Kind cluster.NetKind // default: the kind of the first NIC
	// Speed is a port's speed as ParsePortSpeed reads it, Rate the same as a number.
	// Default: the rate of the first NIC.
	Speed string
	Rate  unit.Rate
	// Rails above 1: NIC i of every node goes to a leaf of rail i. A node with more
	// NICs than rails has them dealt out in blocks; a node of several trays has each
	// tray's dealt out alike.
	Rails int
	// NodesPerLeaf defaults to what the ports of a leaf allow: all of them in the
	// ratio of Oversubscription down and up. Radix defaults to the catalogue's switch.
	NodesPerLeaf int
	Radix        int
	Model        string // of the switches; default the catalogue's
	// LeavesPerPod above 0 asks for pods of that many leaves under a core tier.
	// Default: one spine tier as long as its ports reach all leaves, else pods.
	LeavesPerPod     int
	Oversubscription float64 // at the leaf, 2 = 2:1; default 1
	// Topology is how leaves are joined: torus:4x4x4, hyperx:4x4 (a flattened butterfly), dragonfly:4, dragonfly+:4
	// (leaves of a group), rail-only or planes (rails that nothing joins). Default: below spines.
	Topology string
	// Routing is minimal (default) or adaptive; see cluster.Network.
	Routing   string
	Reduction cluster.Tri
	NICs      []int // positions of the NICs that join; default all of the network's kind
	// Always builds switches for a single node too.
	Always bool
	// Origin and Source are written beside the figures that the description states;
	// default Spec and "description of the network".
	Origin cluster.Origin
	Source string
	// Take is asked about leaf switches before they are made; nil lets all of them be made.
	Take func(switches int) error
}

// MaxNodes bounds what Preset and Describe build.
const MaxNodes = 1_000_000

// Describe replaces the network of a cluster by the described one: leaf switches
// with their hosts, one entry for all spines of a pod, one for the core. It takes
// time in proportion to the nodes. What it had to assume is a warning on the
// cluster, or an Assumed fact.
func Describe(d Description, c *cluster.Cluster) error {
	if err := d.check(c); err != nil {
		return err
	}
	joined, err := parseTopology(d.Topology)
	if err != nil {
		return err
	}
	b := &layout{d: d, c: c}
	if err := b.resolve(); err != nil {
		return err
	}
	c.Network = cluster.Network{
		Name: d.Name, Topology: d.Topology, Routing: d.Routing, Kind: b.d.Kind, Rails: d.Rails, Reduction: d.Reduction,
		Oversubscription: b.ratio(),
	}
	if len(c.Hosts) == 0 || len(c.Hosts) == 1 && !d.Always || b.ports == 0 {
		return nil
	}
	if d.Take != nil {
		if err := d.Take((len(c.Hosts)-1)/max(b.perLeaf, 1)*b.rails + b.rails); err != nil {
			return err
		}
	}
	b.leaves()
	if joined.kind != "" {
		return b.lateral(joined)
	}
	b.trunks()
	return nil
}

func (d *Description) check(c *cluster.Cluster) error {
	switch {
	case len(c.Hosts) > MaxNodes:
		return fmt.Errorf("network: %d nodes; at most %d", len(c.Hosts), MaxNodes)
	case d.Rails < 0 || d.Rails > 1024:
		return fmt.Errorf("network: %d rails; expected 1 to 1024", d.Rails)
	case d.NodesPerLeaf < 0 || d.LeavesPerPod < 0 || d.Radix < 0 || d.Radix > 1<<16:
		return fmt.Errorf("network: nodes per leaf %d, leaves per pod %d, ports %d; none may be negative", d.NodesPerLeaf,
			d.LeavesPerPod, d.Radix)
	case d.Oversubscription < 0 || d.Oversubscription > 1000 || math.IsNaN(d.Oversubscription):
		return fmt.Errorf("network: oversubscription %g; expected a ratio such as 2 for 2:1", d.Oversubscription)
	case d.Routing != "" && d.Routing != "minimal" && d.Routing != "adaptive":
		return fmt.Errorf("network: routing %.40q; expected minimal or adaptive", d.Routing)
	case d.Rate < 0 || math.IsNaN(float64(d.Rate)):
		return fmt.Errorf("network: rate %v; expected more than zero", d.Rate)
	}
	return nil
}

// layout is a description on its way to switches and links.
type layout struct {
	d       Description
	c       *cluster.Cluster
	rail    [][]int                     // per type: the rail of each NIC, -1 when it does not join
	nics    [][]cluster.Fact[unit.Rate] // per type: what each NIC can do
	rails   int                         // at least 1
	ports   int                         // of one node on one leaf, the most that any type has
	perLeaf int
	sw      SwitchModel
	rate    cluster.Fact[unit.Rate]
	speed   string
	lanes   int
	latency cluster.Fact[unit.Time] // of a node's end
}

func (b *layout) fact(v float64) cluster.Fact[float64] {
	f := cluster.Fact[float64]{Value: v, Origin: b.d.Origin, Source: b.d.Source}
	if f.Origin == cluster.Unknown {
		f.Origin = cluster.Spec
	}
	f.Source = cmp.Or(f.Source, "description of the network")
	return f
}

func (b *layout) ratio() cluster.Fact[float64] {
	if b.d.Oversubscription > 0 {
		return b.fact(b.d.Oversubscription)
	}
	return cluster.FromAssumed(1.0, "oversubscription not stated; taken as none")
}

// resolve settles kind, rate, the NICs that join, and the switch.
func (b *layout) resolve() error {
	first := b.firstNIC()
	if b.d.Speed != "" {
		p, err := ParsePortSpeed(b.d.Speed)
		if err != nil {
			return fmt.Errorf("network: %w", err)
		}
		b.d.Kind = cmp.Or(b.d.Kind, p.Kind)
		b.d.Rate = cmp.Or(b.d.Rate, p.Rate)
	}
	if b.d.Kind == "" && first != nil {
		b.d.Kind = first.Kind
	}
	if b.d.Rate > 0 {
		f := b.fact(0)
		b.rate = cluster.Fact[unit.Rate]{Value: b.d.Rate, Origin: f.Origin, Source: f.Source}
	} else if nic := b.firstNIC(); nic != nil {
		b.rate = nic.Rate()
	}
	b.rails = max(b.d.Rails, 1)
	b.rail, b.nics = make([][]int, len(b.c.Types)), make([][]cluster.Fact[unit.Rate], len(b.c.Types))
	b.ports = 0
	for i, t := range b.c.Types {
		b.rail[i], b.nics[i] = b.join(t), nicRates(t)
		most := busiest(b.rail[i], b.rails)
		b.ports = max(b.ports, most)
		if most == 0 && len(b.rail[i]) > 0 {
			b.c.Warnings = append(b.c.Warnings, cluster.Warning{
				Source: "hardware catalogue", Where: t.Name,
				Text: fmt.Sprintf("none of its %d NICs joins the %s network; set the kind of the NICs or of the network",
					len(b.rail[i]), b.d.Kind),
			})
		}
	}
	if b.ports == 0 && b.anyUnknown() {
		b.ports = 1
	}
	b.speed = speedText(b.d.Kind, b.d.Speed, b.rate.Value)
	if p, err := ParsePortSpeed(b.speed); err == nil {
		b.lanes = p.Lanes
	}
	b.latency = adapterLatency(b.d.Kind, b.speed)
	b.pickSwitch()
	return nil
}

// firstNIC is the first network card of the network's kind in the cluster.
func (b *layout) firstNIC() *cluster.NICInfo {
	for _, t := range b.c.Types {
		for i := range t.Devices {
			if nic := t.Devices[i].NIC; nic != nil && joins(nic.Kind, b.d.Kind) {
				return nic
			}
		}
	}
	return nil
}

// anyUnknown reports a host without a description of their inside, or whose type lists
// no NIC at all: it still hangs on the network, by a NIC that nobody knows.
func (b *layout) anyUnknown() bool {
	return slices.ContainsFunc(b.c.Hosts,
		func(h cluster.Host) bool { return h.Type < 0 || h.Type >= len(b.rail) || len(b.rail[h.Type]) == 0 })
}

// joins reports whether a card of one kind can be on a network of another. An
// Ethernet card carries RoCE.
func joins(nic, net cluster.NetKind) bool {
	ether := func(k cluster.NetKind) bool { return k == cluster.Ethernet || k == cluster.RoCE }
	return nic == "" || net == "" || nic == net || ether(nic) && ether(net)
}

// join gives every NIC of a type its rail, -1 for those outside the network.
func (b *layout) join(t *cluster.NodeType) []int {
	nics := t.Of(cluster.NIC)
	rail := make([]int, len(nics))
	member := make(map[int][]int) // per tray: positions that join, in order
	for p, dev := range nics {
		rail[p] = -1
		if b.member(p, t.Devices[dev].NIC) {
			tray := t.Devices[dev].Tray
			member[tray] = append(member[tray], p)
		}
	}
	for _, list := range member {
		for k, p := range list {
			rail[p] = k * b.rails / len(list)
		}
	}
	return rail
}

func (b *layout) member(position int, nic *cluster.NICInfo) bool {
	if b.d.NICs != nil {
		return slices.Contains(b.d.NICs, position)
	}
	return nic == nil || joins(nic.Kind, b.d.Kind)
}

// busiest is the most NICs that a node has on one rail.
func busiest(rail []int, rails int) int {
	count := make([]int, rails)
	most := 0
	for _, r := range rail {
		if r >= 0 {
			count[r]++
			most = max(most, count[r])
		}
	}
	return most
}

// speedText is the speed as text, made from the rate for InfiniBand.
func speedText(kind cluster.NetKind, speed string, rate unit.Rate) string {
	if speed != "" || kind != cluster.InfiniBand {
		return speed
	}
	for _, lanes := range []int{4, 2} {
		for _, g := range ibGens() {
			r := InfiniBandRate(g.Name, lanes)
			if rate > r*0.98 && rate < r*1.02 {
				return fmt.Sprintf("%dx%s", lanes, g.Name)
			}
		}
	}
	return ""
}

// pickSwitch settles the switch and how many nodes hang on a leaf.
func (b *layout) pickSwitch() {
	sw, ok := defaultSwitch(b.d.Kind, b.rate.Value)
	if !ok {
		sw = SwitchModel{Ports: 64, Source: "no switch of this network in the catalogue; 64 ports assumed"}
	}
	if b.d.Model != "" {
		sw.Name = b.d.Model
	}
	if b.d.Radix > 0 {
		sw.Ports = b.d.Radix
	}
	b.sw = sw
	b.perLeaf = b.d.NodesPerLeaf
	if b.perLeaf > 0 || b.ports == 0 {
		return
	}
	over := math.Max(1, b.d.Oversubscription)
	down := int(float64(sw.Ports) * over / (1 + over))
	b.perLeaf = max(1, down/b.ports)
	if len(b.c.Hosts) > b.perLeaf {
		b.c.Warnings = append(b.c.Warnings, cluster.Warning{
			Source: "hardware catalogue", Where: "network",
			Text: fmt.Sprintf("nodes per leaf not stated; assumed %d: %s has %d ports, %d of them towards nodes", b.perLeaf,
				sw.Name, sw.Ports, down),
		})
	}
}

// leaves adds the leaf switches and the links to their hosts, group after group
// of nodes, in each group rail after rail.
func (b *layout) leaves() {
	n := &b.c.Network
	groups := (len(b.c.Hosts) + b.perLeaf - 1) / b.perLeaf
	leaves := groups * b.rails
	n.Switches = make([]cluster.Switch, 0, leaves+leaves/b.podSize(leaves)+4)
	boxes := max(1, (min(b.perLeaf, len(b.c.Hosts))*b.ports+b.sw.Ports-1)/b.sw.Ports)
	widest := 1
	for _, r := range b.rail {
		widest = max(widest, len(r))
	}
	for g := range groups {
		if g == 1 { // groups are mostly alike: room for their cables and a trunk of every leaf, and no copies while they grow
			n.Links = slices.Grow(n.Links, (groups-1)*len(n.Links)+groups*b.rails+groups)
		}
		runs := b.runs(g*b.perLeaf, min((g+1)*b.perLeaf, len(b.c.Hosts)))
		for r := range b.rails {
			name, rail := "leaf"+strconv.Itoa(g), -1
			if b.rails > 1 {
				name, rail = "rail"+strconv.Itoa(r)+"-"+name, r
			}
			leaf := b.box(name, cluster.Leaf, boxes)
			leaf.Rail = rail
			n.Switches = append(n.Switches, leaf)
			b.cables(len(n.Switches)-1, r, runs, widest)
		}
	}
}

// run is a stretch of hosts of one type; typ -1 when the inside is unknown.
type run struct {
	cluster.Span
	typ int
}

func (b *layout) runs(from, to int) []run {
	var runs []run
	for h := from; h < to; h++ {
		typ := b.c.Hosts[h].Type
		if typ < 0 || typ >= len(b.rail) || len(b.rail[typ]) == 0 {
			typ = -1
		}
		if k := len(runs) - 1; k >= 0 && runs[k].typ == typ {
			runs[k].N++
			continue
		}
		runs = append(runs, run{cluster.Span{First: h, N: 1}, typ})
	}
	return runs
}

// cables joins a leaf to the NICs of its rail, one link for every NIC position
// and rate: a slower NIC trains its cable down. Hosts without known NICs hang on
// rail 0 by an unknown one.
func (b *layout) cables(leaf, rail int, runs []run, widest int) {
	n := &b.c.Network
	for p := -1; p < widest; p++ {
		first := len(n.Links)
		for _, r := range runs {
			known := r.typ >= 0
			if !(p < 0 && !known && rail == 0 || p >= 0 && known && p < len(b.rail[r.typ]) && b.rail[r.typ][p] == rail) {
				continue
			}
			l := cluster.NetLink{A: cluster.AtSwitch(leaf, 0), Lanes: b.lanes, Speed: b.speed, Rate: b.rate, Latency: b.latency}
			if known && b.rate.Known() {
				if nic := b.nics[r.typ][p]; nic.Known() && nic.Value < b.rate.Value {
					l.Rate, l.Lanes, l.Speed = nic, 0, ""
				}
			}
			at := first
			for at < len(n.Links) && n.Links[at].Rate != l.Rate {
				at++
			}
			if at == len(n.Links) {
				l.B = cluster.End{Switch: -1, NIC: p}
				n.Links = append(n.Links, l)
			}
			n.Links[at].B.Hosts = append(n.Links[at].B.Hosts, r.Span)
		}
	}
}

// nicRates is what the NICs of a type can do; unknown where nobody says.
func nicRates(t *cluster.NodeType) []cluster.Fact[unit.Rate] {
	nics := t.Of(cluster.NIC)
	rates := make([]cluster.Fact[unit.Rate], len(nics))
	for p, d := range nics {
		if nic := t.Devices[d].NIC; nic != nil {
			rates[p] = nic.Rate()
		}
	}
	return rates
}

func (b *layout) box(name string, tier cluster.Tier, count int) cluster.Switch {
	s := cluster.Switch{
		Name: name, Model: b.sw.Name, Tier: tier, Rail: -1, Ports: b.sw.Ports, Latency: b.sw.Latency,
		Reduction: b.d.Reduction,
	}
	if count > 1 {
		s.Count = count
	}
	return s
}

// trunks adds the spine and core tiers. A single leaf needs none. The uplinks of
// a leaf carry what its ports towards the nodes carry, divided by the ratio; when
// that is no whole number of cables, each runs at a little less than a port.
func (b *layout) trunks() {
	n := &b.c.Network
	leaves := len(n.Switches)
	if leaves < 2 {
		return
	}
	down := float64(min(b.perLeaf, len(b.c.Hosts)) * b.ports)
	up := math.Max(down/math.Max(1, b.d.Oversubscription), 1e-6)
	cables := int(math.Ceil(up - 1e-9))
	rate := b.shared(cables, up)
	link := func(upper, lower, count int) {
		n.Links = append(n.Links, cluster.NetLink{
			A: cluster.End{Switch: upper, NIC: -1}, B: cluster.End{Switch: lower, NIC: -1},
			Count: count, Lanes: b.lanes, Speed: b.speed, Rate: rate, Max: b.rate,
		})
	}
	perPod := b.podSize(leaves)
	pods := (leaves + perPod - 1) / perPod
	ports := b.sw.Ports // of a spine towards its leaves
	if pods > 1 {
		ports = max(1, b.sw.Ports/2)
	}
	core := -1
	if pods > 1 {
		n.Switches = append(n.Switches, b.box("core", cluster.Core, (leaves*cables+b.sw.Ports-1)/b.sw.Ports))
		core = len(n.Switches) - 1
	}
	for p := range pods {
		first, last := p*perPod, min((p+1)*perPod, leaves)
		name := "spine"
		if pods > 1 {
			name = "spine" + strconv.Itoa(p)
		}
		n.Switches = append(n.Switches, b.box(name, cluster.Spine, ((last-first)*cables+ports-1)/ports))
		spine := len(n.Switches) - 1
		for leaf := first; leaf < last; leaf++ {
			link(spine, leaf, cables)
		}
		if core >= 0 {
			link(core, spine, (last-first)*cables)
		}
	}
}

// podSize is the number of leaves under one spine tier, whole groups of rails.
func (b *layout) podSize(leaves int) int {
	size := b.d.LeavesPerPod
	if size == 0 {
		if leaves <= b.sw.Ports {
			return leaves
		}
		size = b.sw.Ports / 2
	}
	return max(1, size/b.rails) * b.rails
}
