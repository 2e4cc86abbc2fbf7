package ibnet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
)

// fragment gives the fabric as hosts of few types, switches with tiers, and cables.
func (f *fabric) fragment(source, format string) *cluster.Fragment {
	f.out, f.format = &cluster.Fragment{Format: format, Source: source}, format
	f.out.Network.Kind = cluster.InfiniBand
	f.addHosts()
	f.addSwitches()
	f.addLinks()
	f.warn()
	return f.out
}

// addSwitches lists the switches by tier and name, so that two scans of one
// fabric give one order whatever node they started from.
func (f *fabric) addSwitches() {
	around := f.neighbours()
	tiers := f.tiers(around)
	type entry struct {
		node int
		sw   cluster.Switch
	}
	var list []entry
	for n := range f.nodes {
		nd := &f.nodes[n]
		if nd.kind != aSwitch {
			continue
		}
		list = append(list, entry{n, cluster.Switch{
			GUID: guidText(nd.guid), Tier: tiers[n], Rail: -1, Ports: f.portCount(n, around[n].inner), LID: nd.lid,
		}})
		if f.format == Perf.name && f.ports[nd.has[len(nd.has)-1]].num <= 2 {
			f.notice(someKind, nd.line, nd.title())
		}
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
		f.nodes[e.node].sw = len(f.out.Network.Switches)
		f.out.Network.Switches = append(f.out.Network.Switches, e.sw)
	}
}

// portCount is the stated number of ports, but for the inner ones: a switch counts those of its own aggregation node,
// also where that is off. Switches have even numbers of sockets, so an odd last port (41, 65, 81) with nothing on it is
// such a one. The formats that state none list every port, down or up: then an unbroken row from 1 is the number.
func (f *fabric) portCount(n int, inner int) int {
	nd := &f.nodes[n]
	if most := nd.ports; most > 0 {
		last, known := f.at[portKey(n, most)]
		if inner == 0 && most > 36 && most%2 == 1 && (!known || f.ports[last].peer < 0) {
			inner = 1
		}
		return most - inner
	}
	for _, p := range nd.has {
		if !f.ports[p].own || len(nd.has) < 3 || f.ports[p].num > len(nd.has) {
			return 0
		}
	}
	return len(nd.has)
}

// addLinks lists every cable once, and the ports of switches that have none.
func (f *fabric) addLinks() {
	at := func(p int) *node { return &f.nodes[f.ports[p].node] }
	drawn := func(p int) bool { return at(p).sw >= 0 || at(p).host >= 0 }
	links := make([]cluster.NetLink, 0, len(f.ports)/2+1)
	for p := range f.ports {
		q := f.ports[p].peer
		if q < 0 && (!f.ports[p].own || at(p).sw < 0) || q >= 0 && (p > q || !drawn(p) || !drawn(q)) {
			continue
		}
		if q >= 0 && f.under(p, q) {
			p, q = q, p
		}
		links = append(links, f.link(p, q))
	}
	slices.SortStableFunc(links, func(x, y cluster.NetLink) int { return before(x.A, y.A) })
	f.out.Network.Links = links
}

// end is a port as the end of a link, -1 none.
func (f *fabric) end(p int) cluster.End {
	if p < 0 {
		return cluster.End{Switch: -1, NIC: -1}
	}
	nd := &f.nodes[f.ports[p].node]
	e := cluster.End{Switch: nd.sw, NIC: -1, Port: f.ports[p].num}
	if nd.host >= 0 {
		e.NIC, e.Hosts = nd.nic, []cluster.Span{{First: nd.host, N: 1}}
	}
	return e
}

// under reports whether port p is on the B side of its cable to q: hosts, and
// the lower of two tiers.
func (f *fabric) under(p, q int) bool {
	x, y := f.nodes[f.ports[p].node].sw, f.nodes[f.ports[q].node].sw
	if x < 0 || y < 0 {
		return x < 0 && y >= 0
	}
	sw := f.out.Network.Switches
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
func (f *fabric) link(p, q int) cluster.NetLink {
	pt := &f.ports[p]
	is, could, state := pt.is, pt.could, pt.state
	l := cluster.NetLink{A: f.end(p), B: f.end(q), Counters: pt.keyed("A.", nil)}
	if q >= 0 {
		qt := &f.ports[q]
		if is.known() && qt.is.known() && is != qt.is {
			f.notice(differ, pt.line, fmt.Sprintf("%s says %s, %s says %s", f.where(p), is, f.where(q), qt.is))
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
	l.Lanes, l.Speed, l.State = is.lanes, is.String(), state
	l.Rate, l.Max = is.fact(f.format), could.fact(f.format)
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
