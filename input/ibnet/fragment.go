package ibnet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
)

// building turns a fabric into a fragment.
type building struct {
	*fabric
	out      *cluster.Fragment
	format   string
	switchOf []int32 // node → index into Switches, -1
	hostOf   []int32 // node → index into Hosts, -1
	nicOf    []int32 // node → position among the host's NICs
}

// fragment gives the fabric as hosts of few types, switches with tiers, and cables.
func (f *fabric) fragment(source, format string) *cluster.Fragment {
	out := &cluster.Fragment{Format: format, Source: source}
	out.Network.Kind = cluster.InfiniBand
	b := building{fabric: f, out: out, format: format}
	b.switchOf = slices.Repeat([]int32{-1}, len(f.nodes))
	b.hostOf, b.nicOf = slices.Clone(b.switchOf), slices.Clone(b.switchOf)
	b.addHosts()
	b.addSwitches()
	b.addLinks()
	f.warn(out)
	return out
}

// addSwitches lists the switches by tier and name, so that two scans of one
// fabric give one order whatever node they started from.
func (b *building) addSwitches() {
	around := b.neighbours()
	tiers := b.tiers(around)
	type entry struct {
		node int32
		sw   cluster.Switch
	}
	var list []entry
	for n := range b.nodes {
		nd := &b.nodes[n]
		if nd.kind != aSwitch {
			continue
		}
		list = append(list, entry{int32(n), cluster.Switch{
			GUID: guidText(nd.guid), Tier: tiers[n], Rail: -1, Ports: b.portCount(int32(n), around[n].inner), LID: int(nd.lid),
		}})
		sw := &list[len(list)-1].sw
		if around[n].inner > 0 {
			sw.Reduction = cluster.Yes
		}
		sw.Name, sw.Model = switchOf(nd.desc)
		if sw.Name == "" && sw.GUID != "" {
			sw.Name = "sw-" + sw.GUID
		}
		sw.Name = cmp.Or(sw.Name, nd.id, "sw") // freeName makes it one of its kind
		if nd.desc != sw.Name {
			sw.Label = nd.desc
		}
	}
	slices.SortStableFunc(list, func(x, y entry) int {
		// An unknown tier (-1) sorts last: as an unsigned byte it is the greatest.
		return cmp.Or(cmp.Compare(uint8(x.sw.Tier), uint8(y.sw.Tier)), natural.Compare(x.sw.Name, y.sw.Name),
			strings.Compare(x.sw.GUID, y.sw.GUID))
	})
	used := names{}
	for _, e := range list {
		e.sw.Name = used.freeName(e.sw.Name, e.sw.GUID)
		b.switchOf[e.node] = int32(len(b.out.Network.Switches))
		b.out.Network.Switches = append(b.out.Network.Switches, e.sw)
	}
}

// portCount is the stated number of ports, but for the inner ones: a switch counts those of its own aggregation node,
// also where that is off. Switches have even numbers of sockets, so an odd last port (41, 65, 81) with nothing on it is
// such a one. The formats that state none list every port, down or up: then an unbroken row from 1 is the number.
func (b *building) portCount(n int32, inner int) int {
	nd := &b.nodes[n]
	if most := nd.ports; most > 0 {
		last, known := b.at[portKey(n, most)]
		if inner == 0 && most > 36 && most%2 == 1 && (!known || b.ports[last].peer < 0) {
			inner = 1
		}
		return most - inner
	}
	for _, p := range nd.has {
		if !b.ports[p].own || len(nd.has) < 3 || int(b.ports[p].num) > len(nd.has) {
			return 0
		}
	}
	return len(nd.has)
}

// addLinks lists every cable once, and the ports of switches that have none.
func (b *building) addLinks() {
	end := func(p int32) cluster.End {
		pt := &b.ports[p]
		e := cluster.End{Switch: int(b.switchOf[pt.node]), NIC: -1, Port: int(pt.num)}
		if h := b.hostOf[pt.node]; h >= 0 {
			e.NIC = int(b.nicOf[pt.node])
			e.Hosts = []cluster.Span{{First: int(h), N: 1}}
		}
		return e
	}
	links := make([]cluster.NetLink, 0, len(b.ports)/2+1)
	for i := range b.ports {
		p, q := int32(i), b.ports[i].peer
		switch {
		case q < 0:
			if b.ports[p].own && b.switchOf[b.ports[p].node] >= 0 {
				half := b.link(p, -1)
				half.A, half.B = end(p), cluster.End{Switch: -1, NIC: -1}
				links = append(links, half)
			}
		case p < q && b.drawn(p) && b.drawn(q):
			if b.under(p, q) {
				p, q = q, p
			}
			l := b.link(p, q)
			l.A, l.B = end(p), end(q)
			links = append(links, l)
		}
	}
	slices.SortStableFunc(links, func(x, y cluster.NetLink) int {
		return before(x.A, y.A)
	})
	b.out.Network.Links = links
}

// drawn reports whether a port belongs to a switch or a host of the fragment.
func (b *building) drawn(p int32) bool {
	n := b.ports[p].node
	return b.switchOf[n] >= 0 || b.hostOf[n] >= 0
}

// under reports whether port p is on the B side of its cable to q: hosts, and
// the lower of two tiers.
func (b *building) under(p, q int32) bool {
	x, y := b.switchOf[b.ports[p].node], b.switchOf[b.ports[q].node]
	if x < 0 || y < 0 {
		return x < 0 && y >= 0
	}
	sw := b.out.Network.Switches
	if sw[x].Tier != sw[y].Tier {
		return sw[x].Tier < sw[y].Tier
	}
	return x > y
}

// before orders links by their upper end; ends of hosts come last.
func before(a, b cluster.End) int {
	// As an unsigned number -1, no switch, comes last.
	return cmp.Or(cmp.Compare(uint(a.Switch), uint(b.Switch)), a.Port-b.Port)
}

// link is the cable between two ports, q -1 when only p is known. Both ends say
// how it trained; the slower word counts.
func (b *building) link(p, q int32) cluster.NetLink {
	pt := &b.ports[p]
	is, could, state := pt.is, pt.could, pt.state
	l := cluster.NetLink{Counters: pt.keyed("A.", nil)}
	if q >= 0 {
		qt := &b.ports[q]
		if is.known() && qt.is.known() && is != qt.is {
			b.notice(differ, int(pt.line), fmt.Sprintf("%s says %s, %s says %s", b.where(p), is, b.where(q), qt.is))
		}
		is = is.or(qt.is)
		if !could.known() || qt.could.slower(could) {
			could = qt.could
		}
		if qt.state != cluster.StateUnknown && (state == cluster.StateUnknown || qt.state < state) {
			state = qt.state
		}
		l.Counters = qt.keyed("B.", l.Counters)
	}
	l.Lanes, l.Speed, l.State = int(is.lanes), is.String(), state
	l.Rate, l.Max = is.fact(b.format), could.fact(b.format)
	return l
}

// keyed adds the port's counters under an end's letter.
func (p *port) keyed(end string, to map[string]uint64) map[string]uint64 {
	for name, v := range p.counters {
		if to == nil {
			to = make(map[string]uint64, len(p.counters))
		}
		to[end+name] = v
	}
	return to
}
