package ibnet

import (
	"fmt"

	"busbar.dev/cluster"
)

// warn turns what was noticed into one warning of a kind.
func (b *building) warn() {
	say := func(n noticed, format string, args ...any) {
		if n.n > 0 {
			b.out.Warnf(n.line, "", format, args...)
		}
	}
	s := &b.seen
	say(s.bad, "%s not be used, the first: %s", plural(s.bad.n, "line could", "lines could"), s.bad.what)
	say(s.clash, "%s an earlier line about one end, the first: %s; kept the earlier",
		plural(s.clash.n, "cable contradicts", "cables contradict"), s.clash.what)
	say(s.differ, "%s at one speed by one end and at another by the other, the first: %s; took the slower",
		plural(s.differ.n, "cable runs", "cables run"), s.differ.what)
	say(s.beyond, "%s beyond what the node states, the first: %s",
		plural(s.beyond.n, "port number is", "port numbers are"), s.beyond.what)
	say(s.unknown, "%s at a speed that is not known here, the first: %s", plural(s.unknown.n, "port runs", "ports run"),
		s.unknown.what)
	say(s.wide, "%s 12X as possible, the first: %s; a cable has four lanes, so 4X was taken as the most",
		plural(s.wide.n, "port names", "ports name"), s.wide.what)
	say(b.shared, "%s for several machines, the first: %s; those are named ca- and a GUID",
		plural(b.shared.n, "host name stands", "host names stand"), b.shared.what)
	say(b.unnamed, "%s no host name, the first: %q; each is a host named ca- and its GUID; start rdma-ndd on the hosts "+
		"so that they set one", plural(b.unnamed.n, "adapter carries", "adapters carry"), b.unnamed.what)
	if b.reducing > 0 {
		b.out.Warnf(0, "", "%s of switches, not hosts: the fabric can reduce in the network (SHARP)",
			plural(b.reducing, "aggregation node is part", "aggregation nodes are parts"))
	}
	if b.routers > 0 {
		b.out.Warnf(0, "", "%s left out", plural(b.routers, "router is", "routers are"))
	}
}

// warnIncomplete tells of a scan that did not see the whole fabric: no cables,
// neighbours without lines of their own, cables that one end does not list.
func (f *fabric) warnIncomplete(out *cluster.Fragment) {
	const remedy = "run the tool again, as root, on a host whose port is active"
	cables, mentioned, oneSided := 0, noticed{}, noticed{}
	for n := range f.nodes {
		if nd := &f.nodes[n]; !nd.own {
			mentioned.addNotice(int(nd.line), nd.title())
		}
	}
	for i := range f.ports {
		p := &f.ports[i]
		if p.peer < 0 || int32(i) > p.peer {
			continue
		}
		cables++
		q := &f.ports[p.peer]
		if p.own != q.own && f.nodes[p.node].own && f.nodes[q.node].own {
			oneSided.addNotice(int(max(p.line, q.line)), f.where(int32(i))+" to "+f.where(p.peer))
		}
	}
	switch {
	case cables == 0:
		out.Warnf(0, "", "incomplete scan: %s and not one cable; %s", plural(len(f.nodes), "node", "nodes"), remedy)
	case len(out.Network.Switches) == 0:
		out.Warnf(0, "", "no switch in the fabric: %s hosts directly", plural(cables, "cable joins", "cables join"))
	}
	if mentioned.n > 0 {
		out.Warnf(mentioned.line, "", "incomplete scan: %s named as a neighbour without lines of its own, the first: %s; %s",
			plural(mentioned.n, "node is", "nodes are"), mentioned.what, remedy)
	}
	if oneSided.n > 0 {
		out.Warnf(oneSided.line, "", "incomplete scan: %s listed by one end only, the first: %s; %s",
			plural(oneSided.n, "cable is", "cables are"), oneSided.what, remedy)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
