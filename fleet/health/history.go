package health

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"busbar.dev/finding"
)

// bounds are the most that a History keeps: a thousand nodes and all their pairs in some 200 MB.
type bounds struct {
	samples int // of one pair and direction
	series  int // pairs of a transport, by direction and rail
	nodes   int
	sweeps  int // of a transport
}

// mostMemory bounds the samples of all pairs of a transport together, in bytes.
const mostMemory = 128 << 20

// Place says which nodes are peers. Empty names are unknown, and equal to each other.
type Place struct {
	Leaf string // the switch or rack that the node hangs on
	Type string // nodes of one type are built alike
}

// History is what is known of a fleet. Make one with New.
type History struct {
	most    bounds
	silence time.Duration // after how long without a heartbeat a node is unreachable
	lost    int64         // until when heartbeats were lost, ns
	nodes   names
	leaves  names
	types   names
	node    []node // by number of nodes
	version int    // counts changes of places, and nodes that were taken out or came back
	tables  map[string]*table
}

// node is what is known of one node apart from its pairs.
type node struct {
	leaf, kind int32 // -1 where it is unknown
	gone       bool
	failure    string  // why its last measurement that failed did
	beat       int64   // the last, ns
	gaps       []int64 // when the last gaps between heartbeats began
	ports      map[string]*port
}

// New is an empty history. A node is unreachable after so long without a heartbeat; 0 is 25 s.
func New(silence time.Duration) *History {
	return &History{
		most: bounds{512, 1_050_000, 16384, 4096}, silence: cmp.Or(silence, 25*time.Second), tables: map[string]*table{},
	}
}

// mostTables bounds the transports that have histories.
const mostTables = 5

// over is the table of pairs over a transport, nil where there are too many: RDMA and NCCL show many times
// what TCP does, and a pair's past, its class and its sweeps are those of one transport.
func (h *History) over(by string) *table {
	t := h.tables[by]
	if t == nil && len(h.tables) < mostTables && len(by) <= longest {
		t = &table{
			History: h, index: map[pairKey]int32{}, active: map[string]*raised{},
			sweeps: sweeps{byID: map[string]uint32{}},
		}
		h.tables[by] = t
	}
	return t
}

// names numbers names in the order of their coming.
type names struct {
	list []string
	num  map[string]int32
}

// of is the number of a name, -1 when there are already most.
func (n *names) of(name string, most int) int32 {
	i, known := n.num[name]
	switch {
	case known:
		return i
	case len(n.list) >= most:
		return -1
	case n.num == nil:
		n.num = map[string]int32{}
	}
	i = int32(len(n.list))
	n.num[name], n.list = i, append(n.list, name)
	return i
}

// longest bounds names: of nodes, ports, counters, rails, sweeps.
const longest = 256

// nodeOf is the number of a node, which is made where it is new.
func (h *History) nodeOf(name string) (i int32, ok bool) {
	if name == "" || len(name) > longest {
		return -1, false
	}
	if i = h.nodes.of(name, h.most.nodes); i < 0 {
		return -1, false
	}
	if int(i) == len(h.node) {
		h.node = append(h.node, node{leaf: -1, kind: -1})
	}
	if h.node[i].gone {
		h.node[i].gone = false
		h.version++
	}
	return i, true
}

// mostTypes bounds the types of nodes, for classes are pairs of them; further ones are unknown.
const mostTypes = 30

// SetPlace says where a node is. A later call replaces an earlier one.
func (h *History) SetPlace(name string, p Place) {
	i, ok := h.nodeOf(name)
	if !ok || len(p.Leaf) > longest || len(p.Type) > longest {
		return
	}
	leaf, kind := int32(-1), int32(-1)
	if p.Leaf != "" {
		leaf = h.leaves.of(p.Leaf, h.most.nodes)
	}
	if p.Type != "" {
		kind = h.types.of(p.Type, mostTypes)
	}
	if n := &h.node[i]; n.leaf != leaf || n.kind != kind {
		n.leaf, n.kind = leaf, kind
		h.version++
	}
}

// Forget takes a node out: it was removed on purpose, and is neither silent nor slow.
// What its pairs showed stays until it is pushed out, but is not looked at. Any new
// observation of the node brings it back.
func (h *History) Forget(name string) {
	if i, ok := h.nodes.num[name]; ok {
		n := &h.node[i]
		n.gone, n.beat, n.gaps, n.ports = true, 0, nil, nil
		h.version++
	}
}

// isTime tells whether a time is one: after 1970, and before 2191, for nanoseconds count to 2262.
func isTime(t time.Time) bool { return t.Unix() > 0 && t.Unix() < 7e9 }

// Findings is all that is wrong as of now, worst first. It may be called as often as is
// wanted; what it answers changes with the observations and, for silence, with now.
func (h *History) Findings(now time.Time) []finding.Finding {
	list := slices.Concat(h.unreachable(now), h.portFindings(now))
	for _, by := range slices.Sorted(maps.Keys(h.tables)) {
		for _, f := range h.tables[by].findings() {
			if by != "" { // TCP was there first
				f.ID, f.Transport, f.Text = f.ID+"@"+by, by, "Over "+strings.ToUpper(by)+": "+f.Text
			}
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b finding.Finding) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(breadth(b.Kind), breadth(a.Kind)),
			cmp.Compare(a.Factor, b.Factor),
			cmp.Compare(a.ID, b.ID))
	})
	return relate(list)
}
