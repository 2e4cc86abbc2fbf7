package cluster

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/unit"
)

// LinkKind is what a link is made of.
type LinkKind uint8

// Link kinds inside a node.
const (
	LinkUnknown LinkKind = iota
	PCIe
	NVLink
	XGMI   // AMD Infinity Fabric between GPUs
	C2C    // NVLink chip-to-chip, Grace–Hopper
	SMP    // between NUMA domains: UPI, xGMI, X-bus
	OnDie  // root complex to its NUMA domain
	Gaudi  // RoCE links on Gaudi boards
	Direct // a named point-to-point link of another make
)

var linkNames = strings.Fields("unknown pcie nvlink xgmi c2c smp on-die gaudi-roce direct")

func (k LinkKind) String() string { return nameOf(linkNames, int(k)) }

// MarshalText writes the lower-case name.
func (k LinkKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name.
func (k *LinkKind) UnmarshalText(b []byte) error {
	return parseName(k, linkNames, b, "link kind")
}

// Link joins two devices of a node. It carries its rate in each direction
// unless OneWay.
type Link struct {
	// A and B are indexes into NodeType.Devices.
	A    int      `json:"a" yaml:"a" merge:"-"`
	B    int      `json:"b" yaml:"b" merge:"-"`
	Kind LinkKind `json:"kind" yaml:"kind"`
	// OneWay marks a link that describes A→B only; a link that differs by
	// direction (NVLink counts that disagree) is two of these.
	OneWay bool `json:"one_way,omitempty" yaml:"one_way,omitempty"`
	// Lanes is the number of bonded links (NVLink, xGMI) or of PCIe lanes, as
	// trained; 0 unknown. MaxLanes is what both ends could do.
	Lanes    int `json:"lanes,omitempty" yaml:"lanes,omitempty"`
	MaxLanes int `json:"max_lanes,omitempty" yaml:"max_lanes,omitempty"`
	// GTs is the PCIe transfer rate per lane in GT/s, as trained; MaxGTs is what
	// both ends could do. 0 unknown.
	GTs    float64 `json:"lane_GTps,omitempty" yaml:"gts,omitempty"`
	MaxGTs float64 `json:"max_lane_GTps,omitempty" yaml:"max_gts,omitempty"`
	// Rate is one direction, all lanes together.
	Rate Fact[unit.Rate] `json:"rate_GBps,omitzero" yaml:"rate,omitempty" merge:"rate"`
	// Duplex is the advertised both-directions figure, where the maker quotes
	// that; 0 when the maker quotes one direction. Nothing computes with it.
	Duplex  unit.Rate       `json:"duplex_GBps,omitempty" yaml:"duplex,omitempty"`
	Latency Fact[unit.Time] `json:"latency_s,omitzero" yaml:"latency,omitempty" merge:"latency"`
}

// Pair is what is known about two devices beyond the links between them: a
// measured rate, or whether the driver allows peer access.
type Pair struct {
	A       int             `json:"from" yaml:"from"` // from A to B
	B       int             `json:"to" yaml:"to"`
	Rate    Fact[unit.Rate] `json:"rate_GBps,omitzero" yaml:"rate,omitempty"`           // one direction, A to B
	Both    Fact[unit.Rate] `json:"both_ways_GBps,omitzero" yaml:"both_ways,omitempty"` // the sum of both directions at once
	Latency Fact[unit.Time] `json:"latency_s,omitzero" yaml:"latency,omitempty"`
	P2P     Tri             `json:"p2p,omitempty" yaml:"p2p,omitempty"`
	P2PFrom Origin          `json:"p2p_from,omitempty" yaml:"p2p_from,omitempty"` // who says P2P; unknown is a tool
	Why     string          `json:"why,omitempty" yaml:"why,omitempty"`           // when P2P is No: the driver's word (CNS = chipset not supported)
}

// NodeType is the inside of a node: devices and links. Many hosts share one.
type NodeType struct {
	Name   string
	Preset string // catalogue name it was made from
	Trays  int    // operating-system images; 0 and 1 mean one
	// Tree says how the PCIe tree is known: Read when a source showed it, Assumed
	// when it was built to fit a matrix of path classes, Unknown when there is none.
	Tree    Origin
	Devices []Device
	Links   []Link
	Pairs   []Pair
	// Said is the matrix of path classes as a tool printed it, if one did. Join
	// holds the joined graph against it and drops it.
	Said *Matrix
}

// Matrix is the table of path classes between devices, as nvidia-smi prints it.
type Matrix struct {
	Names []string   `json:"names" yaml:"names"`
	Class [][]string `json:"class" yaml:"class"`
}

// Add appends a device and returns its index. An empty name becomes the kind
// and the number of its kind so far (gpu0, gpu1, …), or its Index when that is
// free. Set Parent to -1 for a device at the top.
func (t *NodeType) Add(d Device) int {
	if d.Name == "" {
		n := t.Count(d.Kind)
		if d.Index >= 0 && t.ByName(d.Kind.String()+strconv.Itoa(d.Index)) < 0 {
			n = d.Index
		}
		for t.ByName(d.Kind.String()+strconv.Itoa(n)) >= 0 {
			n++
		}
		d.Name = d.Kind.String() + strconv.Itoa(n)
	}
	t.Devices = append(t.Devices, d)
	return len(t.Devices) - 1
}

// Connect appends a link and returns its index.
func (t *NodeType) Connect(l Link) int {
	t.Links = append(t.Links, l)
	return len(t.Links) - 1
}

// Tray is one host of a rack as a node of its own: its devices, counted anew, what joins them, and the NVSwitches that
// they hang on.
func (t *NodeType) Tray(num int) *NodeType {
	one := &NodeType{Name: t.Name + "-tray", Tree: t.Tree}
	own := func(d int) bool { return t.Devices[d].Tray == num && t.Devices[d].Kind != NVSwitch }
	kept := make([]bool, len(t.Devices))
	for _, l := range t.Links {
		kept[l.A], kept[l.B] = kept[l.A] || own(l.B), kept[l.B] || own(l.A)
	}
	at := map[int]int{-1: -1}
	for i, d := range t.Devices {
		if own(i) || kept[i] && d.Kind == NVSwitch {
			d.Name, d.Tray = "", 0
			at[i] = one.Add(d)
		}
	}
	for i := range one.Devices {
		parent, ok := at[one.Devices[i].Parent]
		if !ok {
			parent = -1
		}
		one.Devices[i].Parent = parent
	}
	for _, l := range t.Links {
		a, okA := at[l.A]
		b, okB := at[l.B]
		if okA && okB {
			l.A, l.B = a, b
			one.Connect(l)
		}
	}
	return one
}

// Count is the number of devices of a kind.
func (t *NodeType) Count(k Kind) int {
	n := 0
	for i := range t.Devices {
		if t.Devices[i].Kind == k {
			n++
		}
	}
	return n
}

// Of lists the devices of a kind, in order.
func (t *NodeType) Of(k Kind) []int {
	var ids []int
	for i := range t.Devices {
		if t.Devices[i].Kind == k {
			ids = append(ids, i)
		}
	}
	return ids
}

// ByName finds a device by its name, or -1.
func (t *NodeType) ByName(name string) int {
	for i := range t.Devices {
		if t.Devices[i].Name == name {
			return i
		}
	}
	return -1
}

// ByPCI finds a device by its PCI address, or -1.
func (t *NodeType) ByPCI(p PCI) int {
	if p == "" {
		return -1
	}
	for i := range t.Devices {
		if t.Devices[i].PCI == p {
			return i
		}
	}
	return -1
}

// Above returns the nearest ancestor of a kind (the device itself included), or -1.
func (t *NodeType) Above(d int, k Kind) int {
	for n := 0; d >= 0 && d < len(t.Devices) && n <= len(t.Devices); n++ {
		if t.Devices[d].Kind == k {
			return d
		}
		d = t.Devices[d].Parent
	}
	return -1
}

// Levels is how deep every device is in the tree: 1 at the top, 0 where its
// parents form a loop. It takes as long as there are devices, however deep they are.
func (t *NodeType) Levels() []int {
	below := make([][]int32, len(t.Devices))
	var at, next []int32
	for i := range t.Devices {
		if p := t.Devices[i].Parent; p >= 0 && p < len(below) {
			below[p] = append(below[p], int32(i))
		} else {
			at = append(at, int32(i))
		}
	}
	levels := make([]int, len(t.Devices))
	for n := 1; len(at) > 0; n++ {
		next = next[:0]
		for _, i := range at {
			levels[i] = n
			next = append(next, below[i]...)
		}
		at, next = next, at
	}
	return levels
}

// Check reports the first thing that makes the type unusable: an index out of
// range, a loop of parents or a tree deeper than any, two devices of one name, a
// link to itself.
func (t *NodeType) Check() error {
	seen := make(map[string]bool, len(t.Devices))
	for i := range t.Devices {
		d := &t.Devices[i]
		if d.Name == "" || seen[d.Name] {
			return fmt.Errorf("node type %s: device %d: name %q is empty or taken", t.Name, i, d.Name)
		}
		seen[d.Name] = true
		if d.Parent < -1 || d.Parent >= len(t.Devices) || d.Parent == i {
			return fmt.Errorf("node type %s: %s: parent %d is no other device", t.Name, d.Name, d.Parent)
		}
	}
	for i, n := range t.Levels() {
		switch {
		case n == 0:
			return fmt.Errorf("node type %s: %s: its parents form a loop", t.Name, t.Devices[i].Name)
		case n > maxChain:
			return fmt.Errorf("node type %s: %s has more than %d devices above it; no tree of devices has as many levels",
				t.Name, t.Devices[i].Name, maxChain)
		}
	}
	for i, l := range t.Links {
		if l.A < 0 || l.B < 0 || l.A >= len(t.Devices) || l.B >= len(t.Devices) || l.A == l.B {
			return fmt.Errorf("node type %s: link %d joins %d and %d of %d devices", t.Name, i, l.A, l.B, len(t.Devices))
		}
		if l.Rate.Value < 0 || l.Rate.Known() && l.Rate.Value == 0 {
			return fmt.Errorf("node type %s: link %s–%s: rate %v; expected more than zero", t.Name, t.Devices[l.A].Name,
				t.Devices[l.B].Name, l.Rate.Value)
		}
	}
	for i, p := range t.Pairs {
		if p.A < 0 || p.B < 0 || p.A >= len(t.Devices) || p.B >= len(t.Devices) {
			return fmt.Errorf("node type %s: pair %d joins %d and %d of %d devices", t.Name, i, p.A, p.B, len(t.Devices))
		}
	}
	return nil
}
