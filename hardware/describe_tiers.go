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
