package health

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/result/pairs"
)

// domain is what a cause is a fault of.
type domain int

const (
	ofNode domain = iota
	ofNIC         // a node and a rail
	ofLeaf
	ofPath // two leaves
	ofRail
	ofPair
	ofDirection // of a pair
)

func (d domain) node() bool   { return d <= ofNIC }
func (d domain) leaf() bool   { return d == ofLeaf || d == ofPath }
func (d domain) narrow() bool { return d >= ofPair }

// causeKind is a kind of fault that slows the pairs of something: what it sends, what it receives, or both.
type causeKind struct {
	kind finding.Kind
	domain
	out, in bool
	// {who} is what the cause is about, {slow} how it is, {how} by how much and since when; {node}, {rail}, {a} and {b}
	// are names, and {share} says that only some pairs of leaves suffer.
	text, fix string
}

var causeKinds = []causeKind{
	{
		pairs.SlowHost, ofNode, true, true, "{who} is {slow} with all others, in both directions: {how}.",
		"Drain {node}; check the NIC's PCIe width and speed (lspci -vv), its link speed and counters, CPU frequency and " +
			"memory; then measure again.",
	},
	{pairs.SlowOut, ofNode, true, false, sending, swapOut},
	{pairs.SlowIn, ofNode, false, true, receiving, swapIn},
	{
		SlowNIC, ofNIC, true, true, "NIC {who} is {slow}, both ways: {how}.",
		"Check cable, link speed and PCIe link of {rail} on {node}; until then leave it out (NCCL_IB_HCA=^{rail}).",
	},
	{SlowNICOut, ofNIC, true, false, sending, swapOut},
	{SlowNICIn, ofNIC, false, true, receiving, swapIn},
	{SlowLeaf, ofLeaf, true, true, "Paths to and from leaf " + leafSlow, uplinks},
	{SlowLeafOut, ofLeaf, true, false, "Paths out of leaf " + leafSlow, uplinks},
	{SlowLeafIn, ofLeaf, false, true, "Paths into leaf " + leafSlow, uplinks},
	{
		SlowPath, ofPath, true, false, "Paths between leaves {a} and {b} are {slow}{share}: {how}.",
		"Check the links between these leaves and the spine that joins them.",
	},
	{
		SlowRail, ofRail, true, false, "Rail {who} is {slow} on all nodes: {how}.",
		"Check the switches of rail {who} and its settings on the nodes.",
	},
	{
		pairs.SlowPair, ofPair, true, false, "{a} and {b} are {slow} with each other and not with others: {how}.",
		"Check the path between the two: " + hashed,
	},
	{
		pairs.OneWay, ofDirection, true, false, "From {a} to {b} it is {slow}, and not the other way nor with others: {how}.",
		"Check the path in this direction: " + hashed,
	},
}

const (
	sending   = "{who} is {slow} in sending, to all others: {how}."
	receiving = "{who} is {slow} in receiving, from all others: {how}."
	swapOut   = "Drain {node}; swap the cable or transceiver of the port (transmit lanes here, receive at the switch), " +
		"check link speed and error counters at both ends."
	swapIn = "Drain {node}; swap the cable or transceiver of the port, check pause frames and discards at the switch, " +
		"and the NIC's PCIe link."
	leafSlow = "{who} are {slow} while those inside it are healthy{share}: {how}."
	uplinks  = "Check the uplinks of {who} (ports down, link speed, errors, ECMP or adaptive routing); keep jobs inside " +
		"it until then."
	hashed  = "a bad link among several that are shared by hashing, or a route; neither node needs draining."
	cutOff  = "{who} is cut off from all others: {how}."
	restore = "Check whether {node} is up and its port has a link (ip link, ibstat), and look at its switch port; drain " +
		"it until measurements work."
)

// place is what has a fault: a node, leaf or rail, a node and its rail, or two nodes or leaves.
type place struct{ a, b int32 }

// cause is one fault that may be: what it covers is all pairs of its place.
type cause struct {
	*causeKind
	place
}

// ends are the places of a domain that a pair leaves and reaches; false where it has none.
func (t *table) ends(d domain, k pairKey) (out, in place, ok bool) {
	switch d {
	case ofNode:
		return place{k.from, 0}, place{k.to, 0}, true
	case ofNIC:
		return place{k.from, k.rail}, place{k.to, k.rail}, true
	case ofRail:
		return place{k.rail, 0}, place{}, true
	case ofPair:
		return place{min(k.from, k.to), max(k.from, k.to)}, place{}, true
	case ofDirection:
		return place{k.from, k.to}, place{}, true
	}
	from, to := t.node[k.from].leaf, t.node[k.to].leaf
	if d == ofPath {
		return place{min(from, to), max(from, to)}, place{}, min(from, to) >= 0 && from != to
	}
	return place{from, 0}, place{to, 0}, min(from, to) >= 0 && from != to
}

// covers tells whether a pair suffers under a cause.
func (t *table) covers(c cause, k pairKey) bool {
	out, in, ok := t.ends(c.domain, k)
	return ok && (c.out && out == c.place || c.in && in == c.place)
}

// wideDomain tells whether many pairs may have a cause of a domain; one rail is no other than its nodes.
func (t *table) wideDomain(d domain) bool {
	return !d.narrow() && (len(t.rails.list) > 1 || d != ofNIC && d != ofRail)
}

// wide are the causes that a pair's slowness can have beside its own; leaves are how many nodes each leaf has.
func (t *table) wide(k pairKey, leaves map[int32]int, put func(cause)) {
	for i := range causeKinds {
		kind := &causeKinds[i]
		if !t.wideDomain(kind.domain) {
			continue
		}
		out, in, ok := t.ends(kind.domain, k)
		// Of two leaves nobody can say which: it is the path between them. A leaf of one node is that node.
		may := func(p place) bool { return kind.domain != ofLeaf || len(leaves) > 2 && leaves[p.a] > 1 }
		if ok && kind.out && may(out) {
			put(cause{kind, out})
		}
		if ok && kind.in && may(in) {
			put(cause{kind, in})
		}
	}
}

// site is a place of a domain.
type site struct {
	domain
	place
}

// coverage counts the cells, of every so many, that leave and reach each site.
func (s *state) coverage(every int) (out, in map[site]int) {
	out, in = map[site]int{}, map[site]int{}
	for i := 0; i < len(s.cells); i += every {
		for d := range ofPair {
			if from, to, ok := s.ends(d, s.series[s.cells[i].series].pairKey); ok && s.wideDomain(d) {
				out[site{d, from}]++
				in[site{d, to}]++
			}
		}
	}
	return out, in
}

// suspects is how many causes of a domain there are: what a penalty and a threshold grow with.
func (t *table) suspects(d domain) float64 {
	nodes, leaves, rails := float64(len(t.node)), float64(len(t.leaves.list)), float64(len(t.rails.list))
	return [...]float64{
		3 * nodes, 3 * nodes * rails, 3 * leaves, leaves * leaves, rails, nodes * nodes * rails, nodes * nodes * rails,
	}[d]
}

// penalty is what an explanation costs: the logarithm of how many such there are, and of
// how much rarer than a bad host or pair they are.
func (t *table) penalty(d domain) float64 {
	p := 3 + math.Log(t.suspects(d))
	if d.leaf() || d == ofRail {
		p += 2
	}
	return p
}

// id is the kind and who.
func (t *table) id(c cause) string { return string(c.kind) + ":" + t.who(c) }

// names are those of a cause's place, sorted where they have no order; the second is empty where it has one.
func (t *table) names(c cause) (a, b string) {
	from, to := &t.nodes, &t.nodes
	switch c.domain {
	case ofLeaf, ofPath:
		from, to = &t.leaves, &t.leaves
	case ofNIC:
		to = &t.rails
	case ofRail:
		from = &t.rails
	}
	a = from.list[c.a]
	if between[c.domain] != "" {
		b = to.list[c.b]
	}
	if c.domain == ofPath || c.domain == ofPair {
		a, b = min(a, b), max(a, b)
	}
	return a, b
}

// between stands between the names of a place that has two.
var between = [...]string{ofNIC: "/", ofPath: "-", ofPair: "-", ofDirection: ">"}

// who names what a cause is about.
func (t *table) who(c cause) string {
	a, b := t.names(c)
	return a + between[c.domain] + b
}

// nodesOf are the nodes to look at.
func (t *table) nodesOf(c cause) []string {
	a, b := t.names(c)
	switch {
	case c.domain == ofRail:
		return []string{}
	case c.narrow():
		return []string{a, b}
	case c.node():
		return []string{a}
	}
	return t.members(func(n *node) bool { return n.leaf == c.a || c.domain == ofPath && n.leaf == c.b })
}

// members are the names of nodes of some sort.
func (h *History) members(in func(*node) bool) []string {
	list := []string{}
	for i := range h.node {
		if n := &h.node[i]; !n.gone && in(n) {
			list = append(list, h.nodes.list[i])
		}
	}
	slices.Sort(list)
	return list
}

// describe are the sentence to act on, and what to do; slow and how are words of it.
func (t *table) describe(r *trial, slow, how string) (text, fix string) {
	a, b := t.names(r.cause)
	share := ""
	if r.some() {
		share = fmt.Sprintf(" (%d of %d pairs: one of several links)", r.slow, r.total)
	}
	words := strings.NewReplacer("{who}", t.who(r.cause), "{slow}", slow, "{how}", how, "{node}", a, "{rail}", b,
		"{a}", a, "{b}", b, "{share}", share)
	if r.lost && r.node() {
		return words.Replace(cutOff), words.Replace(restore)
	}
	return words.Replace(r.text), words.Replace(r.fix)
}
