package hardware

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

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
			Text: fmt.Sprintf("nodes per leaf not stated; assumed %d: %s has %d ports, %d of them towards nodes", b.perLeaf, sw.Name, sw.Ports, down),
		})
	}
}

// leaves adds the leaf switches and the links to their hosts, group after group
// of nodes, in each group rail after rail.
func (b *layout) leaves() {
	n := &b.c.Network
	groups := (len(b.c.Hosts) + b.perLeaf - 1) / b.perLeaf
	n.Switches = make([]cluster.Switch, 0, groups*b.rails+4)
	boxes := max(1, (min(b.perLeaf, len(b.c.Hosts))*b.ports+b.sw.Ports-1)/b.sw.Ports)
	widest := 1
	for _, r := range b.rail {
		widest = max(widest, len(r))
	}
	for g := range groups {
		runs := b.runs(g*b.perLeaf, min((g+1)*b.perLeaf, len(b.c.Hosts)))
		for r := range b.rails {
			name, rail := "leaf"+strconv.Itoa(g), -1
			if b.rails > 1 {
				name, rail = fmt.Sprintf("rail%d-leaf%d", r, g), r
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
	for p := -1; p < widest; p++ {
		var links []cluster.NetLink
		for _, r := range runs {
			known := r.typ >= 0
			if !(p < 0 && !known && rail == 0 || p >= 0 && known && p < len(b.rail[r.typ]) && b.rail[r.typ][p] == rail) {
				continue
			}
			l := cluster.NetLink{A: cluster.AtSwitch(leaf, 0), Lanes: b.lanes, Speed: b.speed, Rate: b.rate, Latency: b.latency}
			if nic := b.nicRate(r.typ, p); nic.Known() && b.rate.Known() && nic.Value < b.rate.Value {
				l.Rate, l.Lanes, l.Speed = nic, 0, ""
			}
			at := slices.IndexFunc(links, func(k cluster.NetLink) bool { return k.Rate == l.Rate })
			if at < 0 {
				l.B = cluster.End{Switch: -1, NIC: p}
				at, links = len(links), append(links, l)
			}
			links[at].B.Hosts = append(links[at].B.Hosts, r.Span)
		}
		b.c.Network.Links = append(b.c.Network.Links, links...)
	}
}

// nicRate is what NIC number p of a type can do; unknown when nobody says.
func (b *layout) nicRate(typ, p int) cluster.Fact[unit.Rate] {
	if typ < 0 || p < 0 {
		return cluster.Fact[unit.Rate]{}
	}
	t := b.c.Types[typ]
	nics := t.Of(cluster.NIC)
	if p >= len(nics) || t.Devices[nics[p]].NIC == nil {
		return cluster.Fact[unit.Rate]{}
	}
	return t.Devices[nics[p]].NIC.Rate()
}

func (b *layout) box(name string, tier cluster.Tier, count int) cluster.Switch {
	s := cluster.Switch{Name: name, Model: b.sw.Name, Tier: tier, Rail: -1, Ports: b.sw.Ports, Latency: b.sw.Latency, Reduction: b.d.Reduction}
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
	rate := b.rate
	if rate.Known() && float64(cables) > up+1e-9 {
		rate = cluster.Fact[unit.Rate]{
			Value: rate.Value * unit.Rate(up/float64(cables)), Origin: rate.Origin,
			Source: fmt.Sprintf("%d cables share %.4g ports' worth: %s", cables, up, rate.Source),
		}
	}
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
