package ibnet

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
)

// notice is something that a reader counts on the way; each kind becomes one warning.
type notice int

const (
	badLine notice = iota
	orphan
	clash
	differ
	beyond
	unknownSpeed
	wide
	shared
	unnamed
	aggregation
	router
	allPorts
	someKind
	noCable
	noSwitch
	mentioned
	oneSided
	allNotices
)

const remedy = "run the tool again, as root, on a host whose port is active"

// notices are the warnings in their order: what stands before the number, behind it for one and for several, and the
// rest, in which %[2]s is the first that was met.
var notices = [allNotices]struct{ before, one, many, rest string }{
	badLine: {"", "line could", "lines could", "not be used, the first: %[2]s"},
	orphan:  {"", "line could", "lines could", "not be used, the first: %[2]s"},
	clash: {
		"", "cable contradicts", "cables contradict", "an earlier line about one end, the first: %[2]s; kept the earlier",
	},
	differ: {
		"", "cable runs", "cables run",
		"at one speed by one end and at another by the other, the first: %[2]s; took the slower",
	},
	beyond:       {"", "port number is", "port numbers are", "beyond what the node states, the first: %[2]s"},
	unknownSpeed: {"", "port runs", "ports run", "at a speed that is not known here, the first: %[2]s"},
	wide: {
		"", "port names", "ports name",
		"12X as possible, the first: %[2]s; a cable has four lanes, so 4X was taken as the most",
	},
	shared: {
		"", "host name stands", "host names stand",
		"for several machines, the first: %[2]s; those are named ca- and a GUID",
	},
	unnamed: {
		"", "adapter carries", "adapters carry", "no host name, the first: %[2]q; each is a host named ca- and its GUID; " +
			"start rdma-ndd on the hosts so that they set one",
	},
	aggregation: {
		"", "aggregation node is part", "aggregation nodes are parts",
		"of switches, not hosts: the fabric can reduce in the network (SHARP)",
	},
	router: {"", "router is", "routers are", "left out"},
	allPorts: {
		"", "blocks are sums", "blocks are sums",
		"over all ports of a switch and say nothing of one port; left out; query each port (perfquery -l LID)",
	},
	someKind: {
		"", "LID may be", "LIDs may be",
		"an adapter's, the first: %[2]s; perfquery does not say, so a switch's was taken; iblinkinfo tells",
	},
	noCable:  {"incomplete scan: ", "node", "nodes", "and not one cable; " + remedy},
	noSwitch: {"no switch in the fabric: ", "cable joins", "cables join", "hosts directly"},
	mentioned: {
		"incomplete scan: ", "node is", "nodes are",
		"named as a neighbour without lines of its own, the first: %[2]s; " + remedy,
	},
	oneSided: {
		"incomplete scan: ", "cable is", "cables are", "listed by one end only, the first: %[2]s; " + remedy,
	},
}

// noticed counts occurrences and keeps the first.
type noticed struct {
	n, line int
	what    string
}

func (f *fabric) notice(which notice, line int, what string) {
	s := &f.seen[which]
	if s.n == 0 {
		s.line, s.what = line, what
	}
	s.n++
}

// warn turns what was noticed into one warning of a kind.
func (f *fabric) warn(out *cluster.Fragment) {
	for i, t := range notices {
		if s := f.seen[i]; s.n > 0 {
			out.Warnf(s.line, "", t.before+"%[1]s "+t.rest, plural(s.n, t.one, t.many), s.what)
		}
	}
}

// scanned is the fragment of a scan. It warns of one that did not see the whole fabric: no cables,
// neighbours without lines of their own, cables that one end does not list.
func (f *fabric) scanned(source, format string) *cluster.Fragment {
	cables := 0
	for n := range f.nodes {
		if nd := &f.nodes[n]; !nd.own {
			f.notice(mentioned, int(nd.line), nd.title())
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
			f.notice(oneSided, int(max(p.line, q.line)), f.where(int32(i))+" to "+f.where(p.peer))
		}
	}
	if cables == 0 {
		f.seen[noCable].n = len(f.nodes)
	} else if !slices.ContainsFunc(f.nodes, func(n node) bool { return n.kind == aSwitch }) {
		f.seen[noSwitch].n = cables
	}
	return f.fragment(source, format)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
