package health

import (
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

// mostPaths is up to how many leaves paths between two of them are looked at.
const mostPaths = 2048

// coverage counts the pairs that leave and reach every place of the wide domains.
type coverage struct {
	*table
	out, in   [ofPair][]int32
	leafNodes []int // nodes of a leaf
	leaves    int   // that have nodes
}

// size is how many places of a domain there are, and how far those are apart that differ in a.
func (t *table) size(d domain) (n, stride int) {
	nodes, leaves, rails := len(t.node), len(t.leaves.list), len(t.rails.list)
	switch {
	case d == ofNode:
		return nodes, 1
	case d == ofLeaf:
		return leaves, 1
	case d == ofPath && leaves <= mostPaths:
		return leaves * leaves, leaves
	case d == ofNIC && rails > 1:
		return nodes * rails, rails
	case d == ofRail && rails > 1:
		return rails, 1
	}
	return 0, 0
}

func (t *table) coverage(cells []cell) *coverage {
	v := &coverage{table: t, leafNodes: make([]int, len(t.leaves.list))}
	for i := range t.node {
		if n := &t.node[i]; n.leaf >= 0 && !n.gone {
			v.leafNodes[n.leaf]++
		}
	}
	for _, n := range v.leafNodes {
		v.leaves += min(n, 1)
	}
	for d := range ofPair {
		n, stride := t.size(d)
		v.out[d], v.in[d] = make([]int32, n), make([]int32, n)
		for i := range cells {
			if n == 0 {
				break
			}
			if out, in, ok := t.ends(d, t.series[cells[i].series].pairKey); ok {
				v.out[d][int(out.a)*stride+int(out.b)]++
				v.in[d][int(in.a)*stride+int(in.b)]++
			}
		}
	}
	return v
}

// total is how many pairs a cause covers.
func (v *coverage) total(c cause) (n int) {
	_, stride := v.size(c.domain)
	i := int(c.a)*stride + int(c.b)
	if c.out {
		n += int(v.out[c.domain][i])
	}
	if c.in {
		n += int(v.in[c.domain][i])
	}
	return n
}

// wide are the causes that a pair's slowness can have beside its own.
func (v *coverage) wide(k pairKey, put func(cause)) {
	for i := range causeKinds {
		kind := &causeKinds[i]
		if kind.narrow() || len(v.out[kind.domain]) == 0 {
			continue
		}
		out, in, ok := v.ends(kind.domain, k)
		// Of two leaves nobody can say which: it is the path between them. A leaf of one node is that node.
		may := func(p place) bool { return kind.domain != ofLeaf || v.leaves > 2 && v.leafNodes[p.a] > 1 }
		if ok && kind.out && may(out) {
			put(cause{kind, out})
		}
		if ok && kind.in && may(in) {
			put(cause{kind, in})
		}
	}
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
func (t *table) id(c cause, f figure) string {
	id := string(c.kind) + ":" + t.who(c)
	if f == latency {
		id = "latency-" + id
	}
	return id
}

// names are those of a cause's place; the second is empty where it has one.
func (t *table) names(c cause) (a, b string) {
	switch c.domain {
	case ofNode:
		return t.nodes.list[c.a], ""
	case ofNIC:
		return t.nodes.list[c.a], t.rails.list[c.b]
	case ofLeaf:
		return t.leaves.list[c.a], ""
	case ofPath:
		return t.leaves.list[c.a], t.leaves.list[c.b]
	case ofRail:
		return t.rails.list[c.a], ""
	}
	return t.nodes.list[c.a], t.nodes.list[c.b]
}

// who names what a cause is about.
func (t *table) who(c cause) string {
	a, b := t.names(c)
	switch c.domain {
	case ofNIC:
		return a + "/" + b
	case ofPath, ofPair:
		return min(a, b) + "-" + max(a, b)
	case ofDirection:
		return a + ">" + b
	}
	return a
}

// nodesOf are the nodes to look at.
func (t *table) nodesOf(c cause) []string {
	a, b := t.names(c)
	switch {
	case c.domain == ofRail:
		return []string{}
	case c.domain == ofPair:
		return []string{min(a, b), max(a, b)}
	case c.domain == ofDirection:
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
	if r.domain == ofPair {
		a, b = min(a, b), max(a, b)
	}
	words := strings.NewReplacer("{who}", t.who(r.cause), "{slow}", slow, "{how}", how, "{node}", a, "{rail}", b,
		"{a}", a, "{b}", b, "{share}", r.share())
	if r.lost && r.node() {
		return words.Replace(cutOff), words.Replace(restore)
	}
	return words.Replace(r.text), words.Replace(r.fix)
}
