package health

import (
	"time"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// Options bound what a History keeps. The zero value is usual: a thousand nodes and all
// their pairs in some 200 MB.
type Options struct {
	Samples int        // most of one pair and direction; 0 is 512
	Memory  unit.Bytes // for the samples of all pairs together; 0 is 128 MiB
	Series  int        // most pairs, by direction and rail; 0 is 1,050,000
	Nodes   int        // most nodes; 0 is 16,384
	Sweeps  int        // most sweeps; 0 is 4096
	// Unreachable is after how long without a heartbeat a node is unreachable; 0 is three times the
	// usual distance of its heartbeats and 15 s at least.
	Unreachable time.Duration
}

func (o Options) filled() Options {
	set := func(v *int, usual int) {
		if *v <= 0 {
			*v = usual
		}
	}
	set(&o.Samples, 512)
	set(&o.Series, 1_050_000)
	set(&o.Nodes, 16384)
	set(&o.Sweeps, 4096)
	if o.Memory <= 0 {
		o.Memory = 128 * unit.MiB
	}
	o.Samples = max(o.Samples, least)
	return o
}

// Place says which nodes are peers. Empty names are unknown, and equal to each other.
type Place struct {
	Leaf string `json:"leaf,omitempty"` // the switch or rack that the node hangs on
	Type string `json:"type,omitempty"` // nodes of one type are built alike
}

// History is what is known of a fleet. Make one with New.
type History struct {
	opt    Options
	nodes  names
	leaves names
	types  names
	rails  names

	node   []node // by number of nodes
	series []series
	index  map[pairKey]int32
	errors map[int32]string // the last error of a series
	sweeps sweeps
	others map[string]*History // of pairs over other transports than TCP, with nothing but pairs

	jobs   jobs
	active map[string]*raised
	whole  *finding.Finding // that the fleet became slower, as of the last answer
	daily  dailies
	stale  bool       // something about pairs came since the last answer
	refuse int        // observations that found no room or made no sense
	deaf   [][2]int64 // times in which heartbeats were lost, ns, the oldest first
}

// node is what is known of one node apart from its pairs.
type node struct {
	leaf, kind int32
	gone       bool
	beats      beats
	ports      map[string]*port
}

// pairKey is a pair in one direction over one rail.
type pairKey struct {
	from, to int32
	rail     int32
}

// New is an empty history.
func New(o Options) *History {
	return &History{
		opt: o.filled(), index: map[pairKey]int32{}, errors: map[int32]string{}, active: map[string]*raised{},
		sweeps: sweeps{byID: map[string]uint32{}},
		jobs:   jobs{byID: map[string]*job{}},
	}
}

// no counts an observation that was not taken.
func (h *History) no() bool {
	h.refuse++
	return false
}

// names numbers names in the order of their coming.
type names struct {
	list []string
	num  map[string]int32
}

// of is the number of a name, -1 when there are already most.
func (n *names) of(name string, most int) int32 {
	if i, ok := n.num[name]; ok {
		return i
	}
	if len(n.list) >= most {
		return -1
	}
	if n.num == nil {
		n.num = map[string]int32{}
	}
	i := int32(len(n.list))
	n.num[name], n.list = i, append(n.list, name)
	return i
}

// longest bounds names: of nodes, ports, counters, rails, sweeps.
const longest = 256

// nodeOf is the number of a node, which is made where it is new.
func (h *History) nodeOf(name string) (int32, bool) {
	if name == "" || len(name) > longest {
		return -1, false
	}
	i := h.nodes.of(name, h.opt.Nodes)
	if i < 0 {
		return -1, false
	}
	if int(i) == len(h.node) {
		h.node = append(h.node, node{leaf: -1, kind: -1})
	}
	if h.node[i].gone {
		h.node[i].gone, h.stale = false, true
	}
	return i, true
}

// SetPlace says where a node is. A later call replaces an earlier one.
func (h *History) SetPlace(name string, p Place) bool {
	i, ok := h.nodeOf(name)
	if !ok || len(p.Leaf) > longest || len(p.Type) > longest {
		return h.no()
	}
	leaf, kind := int32(-1), int32(-1)
	if p.Leaf != "" {
		leaf = h.leaves.of(p.Leaf, h.opt.Nodes)
	}
	if p.Type != "" {
		kind = h.types.of(p.Type, mostTypes)
	}
	if h.node[i].leaf != leaf || h.node[i].kind != kind {
		h.node[i].leaf, h.node[i].kind = leaf, kind
		h.sweeps.touch()
		h.stale = true
	}
	for _, o := range h.others {
		o.SetPlace(name, p)
	}
	return true
}

// mostTypes bounds the types of nodes, for classes are pairs of them; further ones are unknown.
const mostTypes = 30

// Forget takes a node out: it was removed on purpose, and is neither silent nor slow.
// What its pairs showed stays until it is pushed out, but is not looked at. Any new
// observation of the node brings it back.
func (h *History) Forget(name string) {
	if i, ok := h.nodes.num[name]; ok {
		n := &h.node[i]
		n.gone, n.beats, n.ports = true, beats{}, nil
		h.stale = true
	}
	for _, o := range h.others {
		o.Forget(name)
	}
}

// known tells whether a time is one: after 1970, and before 2191, for nanoseconds count to 2262.
func known(t time.Time) bool { return t.Unix() > 0 && t.Unix() < 7e9 }
