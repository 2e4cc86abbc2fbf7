package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Fact is one thing that a file says of how it was measured or set up. What a side does not say is unknown, and no
// difference.
type Fact struct {
	What, Value string
	Figure      float64 // of facts that are compared as figures
}

// Difference is a fact in which the sides differ, and what it has to do with the change.
type Difference struct {
	What  string `json:"what"`
	Old   string `json:"old"`
	New   string `json:"new"`
	Means string `json:"means,omitempty"` // what the slower of the two means
	// AtMost is how many times as long a transfer takes by it at most, 0 unknown.
	AtMost   float64  `json:"at_most,omitempty"`
	Explains Explains `json:"explains,omitempty"` // "" where no time was given
	Slower   string   `json:"slower,omitempty"`   // the side that is the slower by it: old, new
}

// Explains is what a difference has to do with the change.
type Explains string

// What differences explain.
const (
	Yes     Explains = "yes"
	InPart  Explains = "in part" // it cannot make up for all of it
	May     Explains = "may"     // it can work either way
	No      Explains = "no"      // it works the other way
	Nothing Explains = "nothing changed"
)

// Setting is a fact's name that begins so where it is a setting.
const Setting = "setting "

// rule is how much a fact tells about time.
type rule struct {
	what  string
	order []string // values, the fastest first
	more  int      // of figures: 1 where more is faster, -1 where more is slower
	bound bool     // time grows with the figure at most
	means string
}

// rules are in the order in which differences are told: what is specific before what is general.
var rules = []rule{
	{what: GPUDirect, order: []string{"used", "used in part", "not used"}, means: "inter-node traffic is staged through " +
		"host memory"},
	{what: BetweenNodes, order: []string{"RDMA", "TCP sockets"}, means: "over TCP sockets processors copy every byte"},
	{
		what: WithinNode, order: []string{"P2P", "SHM", "NET"},
		means: "the GPUs of a node do not reach each other directly: " +
			"bytes go through host memory or the network",
	},
	{what: PathOfGPUs, more: -1, means: "the GPUs are farther from each other, or joined by fewer links"},
	{what: PathToNIC, more: -1, means: "the NIC is farther from its GPU"},
	{what: NICLoad, more: -1, bound: true, means: "more of each byte passes the busiest NIC"},
	{what: Sharing, more: -1, bound: true, means: "GPUs share a NIC and the host memory behind it"},
	{what: NICs, more: 1, bound: true, means: "fewer NICs carry the same bytes"},
	{what: NICRate, more: 1, bound: true, means: "a NIC carries less"},
	{what: Racks, more: -1, means: "the job crosses racks: its bytes share their uplinks"},
	{what: Nodes, more: -1, means: "more of the bytes leave a node"},
	{what: Ranks, more: -1, means: "more ranks take part"},
	{what: Layout},
	{what: GPU},
	{what: Algorithm},
	{what: Channels, more: 1, means: "fewer channels move the bytes"},
	{what: Release},
	{what: Transport},
	{what: Compression},
	{what: Hosts},
	{what: Tool},
	{what: CPU},
}

// The facts that have a rule; settings have none.
const (
	GPUDirect    = "GPUDirect RDMA"
	BetweenNodes = "between nodes"
	WithinNode   = "within a node"
	PathOfGPUs   = "path between GPUs"
	PathToNIC    = "path to the NIC"
	NICLoad      = "load of the busiest NIC"
	Sharing      = "GPUs on a NIC"
	NICs         = "NICs"
	NICRate      = "rate of a NIC"
	Racks        = "racks"
	Nodes        = "nodes"
	Ranks        = "ranks"
	Layout       = "layout"
	GPU          = "GPU"
	Algorithm    = "algorithm"
	Channels     = "channels"
	Release      = "release"
	Transport    = "transport"
	Compression  = "compression"
	Hosts        = "hosts"
	Tool         = "tool"
	CPU          = "CPU"
)

// Differences are the facts in which two sides differ, in the order of their rules.
func Differences(old, now []Fact) []Difference {
	list := []Difference{}
	place := func(d Difference) int {
		if i := slices.IndexFunc(rules, func(r rule) bool { return r.what == d.What }); i >= 0 {
			return i
		}
		return len(rules)
	}
	for _, a := range old {
		i := slices.IndexFunc(now, func(b Fact) bool { return b.What == a.What })
		if i < 0 || now[i].Value == a.Value {
			continue
		}
		d := Difference{What: a.What, Old: a.Value, New: now[i].Value}
		if p := place(d); p < len(rules) {
			rules[p].weigh(&d, a, now[i])
		}
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b Difference) int {
		return cmp.Or(place(a)-place(b), cmp.Compare(a.What, b.What))
	})
	return list
}

// weigh says which side is the slower by a difference, and by how much at most.
func (r *rule) weigh(d *Difference, old, now Fact) {
	slower := 0
	switch a, b := slices.Index(r.order, old.Value), slices.Index(r.order, now.Value); {
	case r.more != 0:
		slower = cmp.Compare(old.Figure, now.Figure) * r.more
	case a >= 0 && b >= 0:
		slower = cmp.Compare(b, a)
	}
	if slower != 0 {
		d.Means, d.Slower = r.means, "new"
	}
	if slower < 0 {
		d.Slower = "old"
	}
	if r.bound && min(old.Figure, now.Figure) > 0 {
		d.AtMost = max(old.Figure, now.Figure) / min(old.Figure, now.Figure)
	}
}

// Worth is how many times as long a side must take for its cause to be asked for.
const Worth = 1.3

// Explain says of differences what they have to do with a time that is ratio times as long on the new side.
func Explain(list []Difference, ratio float64) {
	for i := range list {
		d := &list[i]
		switch {
		case ratio <= 0:
		case math.Abs(math.Log(ratio)) < math.Log1p(Least):
			d.Explains = Nothing
		case d.Slower == "":
			d.Explains = May
		case (d.Slower == "new") != (ratio > 1):
			d.Explains = No
		case d.AtMost > 0 && max(ratio, 1/ratio) > 1.1*d.AtMost:
			d.Explains = InPart
		default:
			d.Explains = Yes
		}
	}
}

// Cause is the first difference that explains most.
func Cause(list []Difference) (Difference, bool) {
	for _, e := range []Explains{Yes, InPart, May} {
		if i := slices.IndexFunc(list, func(d Difference) bool { return d.Explains == e }); i >= 0 {
			return list[i], true
		}
	}
	return Difference{}, false
}

// String is the difference in words, with what it means.
func (d Difference) String() string {
	text := fmt.Sprintf("%s: %s, then %s", d.What, d.Old, d.New)
	if d.Means != "" {
		text += ": on the " + d.Slower + " side, " + d.Means
	}
	return text
}
