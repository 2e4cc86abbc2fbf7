package cluster

import (
	"cmp"
	"slices"
	"strconv"

	"busbar.dev/internal/natural"
)

// Children lists what hangs on each device, in order, and what hangs on nothing.
func (t *NodeType) Children() (of [][]int, top []int) {
	of = make([][]int, len(t.Devices))
	for i := range t.Devices {
		p := t.Devices[i].Parent
		if p < 0 || p >= len(t.Devices) {
			top = append(top, i)
			continue
		}
		of[p] = append(of[p], i)
	}
	return of, top
}

// Uplinks finds the link of each device to its parent, -1 where there is none.
func (t *NodeType) Uplinks() []int {
	up := slices.Repeat([]int{-1}, len(t.Devices))
	for i, l := range t.Links {
		switch {
		case t.Devices[l.B].Parent == l.A:
			up[l.B] = i
		case t.Devices[l.A].Parent == l.B:
			up[l.A] = i
		}
	}
	return up
}

// Titles is what people call each device. A system label that several
// devices of the node have (every tray its own mlx5_0) does not tell them apart;
// those go by their name.
func (t *NodeType) Titles() []string {
	used := make(map[string]int)
	for i := range t.Devices {
		used[t.Devices[i].Title()]++
	}
	titles := make([]string, len(t.Devices))
	for i := range t.Devices {
		if titles[i] = t.Devices[i].Title(); used[titles[i]] > 1 {
			titles[i] = t.Devices[i].Name
		}
	}
	return titles
}

// NUMAOf is the NUMA domain of a device: what the tree says, else what a tool
// read, else unknown (-1).
func (t *NodeType) NUMAOf(d int) int {
	if n := t.Above(d, NUMA); n >= 0 && t.Devices[n].Index >= 0 {
		return t.Devices[n].Index
	}
	dev := &t.Devices[d]
	if dev.GPU != nil && dev.GPU.NUMA.Known() {
		return dev.GPU.NUMA.Value
	}
	if dev.NIC != nil && dev.NIC.NUMA.Known() {
		return dev.NIC.NUMA.Value
	}
	return -1
}

// CoresOf is the cpulist that belongs to a device.
func (t *NodeType) CoresOf(d int) string {
	if g := t.Devices[d].GPU; g != nil && g.Cores != "" {
		return g.Cores
	}
	if n := t.Above(d, NUMA); n >= 0 && t.Devices[n].CPU != nil {
		return t.Devices[n].CPU.Cores
	}
	return ""
}

// TrayCount is the number of trays of a node; what a file claims is held against
// what it shows, so that a number alone makes nothing grow.
func (t *NodeType) TrayCount() int {
	last := 0
	for i := range t.Devices {
		last = max(last, t.Devices[i].Tray)
	}
	return min(t.Trays, last+1, len(t.Devices))
}

// FastSet is one set of point-to-point links among the GPUs of a node: all links
// of a kind to one NVSwitch, or all direct links of a kind.
type FastSet struct {
	Kind    LinkKind
	Via     int // the NVSwitch, -1 for direct links
	GPUs    []int
	Bundles []*Bundle // most lanes first
}

// Bundle is the links of a set that are alike.
type Bundle struct {
	Link        // the first of them
	Links []int // indexes into NodeType.Links
	GPUs  []int
}

// FastSets finds the NVLink, xGMI and other direct links of a node.
func (t *NodeType) FastSets() []*FastSet {
	var sets []*FastSet
	for i, l := range t.Links {
		a, b, via := t.Devices[l.A].Kind, t.Devices[l.B].Kind, -1
		switch {
		case a == GPU && b == GPU && l.Kind != PCIe:
		case a == GPU && b == NVSwitch:
			via = l.B
		case a == NVSwitch && b == GPU:
			via = l.A
		default:
			continue
		}
		at := slices.IndexFunc(sets, func(s *FastSet) bool { return s.Kind == l.Kind && s.Via == via })
		if at < 0 {
			at = len(sets)
			sets = append(sets, &FastSet{Kind: l.Kind, Via: via})
		}
		sets[at].addLink(t, i)
	}
	for _, s := range sets {
		slices.Sort(s.GPUs)
		slices.SortStableFunc(s.Bundles, func(a, b *Bundle) int {
			return cmp.Or(cmp.Compare(b.Lanes, a.Lanes), cmp.Compare(b.Rate.Value, a.Rate.Value))
		})
	}
	return sets
}

// SwitchLinks are the links between NVSwitches: those to a second level.
func (t *NodeType) SwitchLinks() []int {
	var list []int
	for i, l := range t.Links {
		if t.Devices[l.A].Kind == NVSwitch && t.Devices[l.B].Kind == NVSwitch {
			list = append(list, i)
		}
	}
	return list
}

func (s *FastSet) addLink(t *NodeType, i int) {
	l := &t.Links[i]
	at := slices.IndexFunc(s.Bundles, func(b *Bundle) bool {
		return b.Lanes == l.Lanes && b.Rate.Value == l.Rate.Value && b.Rate.Origin == l.Rate.Origin && b.OneWay == l.OneWay
	})
	if at < 0 {
		at = len(s.Bundles)
		s.Bundles = append(s.Bundles, &Bundle{Link: *l})
	}
	b := s.Bundles[at]
	b.Links = append(b.Links, i)
	for _, d := range []int{l.A, l.B} {
		for _, gpus := range []*[]int{&b.GPUs, &s.GPUs} {
			if t.Devices[d].Kind == GPU && !slices.Contains(*gpus, d) {
				*gpus = append(*gpus, d)
			}
		}
	}
}

// GPUEnd is the GPU of a link to a switch.
func (t *NodeType) GPUEnd(l *Link) int {
	if t.Devices[l.A].Kind == GPU {
		return l.A
	}
	return l.B
}

// Pairs is the number of GPU pairs that the direct links join.
func (s *FastSet) Pairs(t *NodeType) int {
	seen := make(map[[2]int]bool)
	for _, b := range s.Bundles {
		for _, i := range b.Links {
			l := &t.Links[i]
			seen[[2]int{min(l.A, l.B), max(l.A, l.B)}] = true
		}
	}
	return len(seen)
}

// Full reports whether every pair of the node's GPUs has the same direct link.
func (s *FastSet) Full(t *NodeType) bool {
	n := t.Count(GPU)
	return s.Via < 0 && len(s.Bundles) == 1 && !s.Bundles[0].OneWay && s.Pairs(t) == n*(n-1)/2
}

// DomainTitle is NUMA 1, and for a domain whose number no source says NUMA ?, with
// a letter where there are several of those.
func (t *NodeType) DomainTitle(numa int) string {
	if i := t.Devices[numa].Index; i >= 0 {
		return "NUMA " + strconv.Itoa(i)
	}
	var all []int
	for _, d := range t.Of(NUMA) {
		if unnumbered(&t.Devices[d]) {
			all = append(all, d)
		}
	}
	if len(all) < 2 {
		return "NUMA ?"
	}
	return "NUMA ?" + string(rune('a'+min(slices.Index(all, numa), 'z'-'a')))
}

// unnumbered reports a NUMA domain whose number no source says: it was put there
// to fit what the sources say, and its name would pass for a number.
func unnumbered(dev *Device) bool { return dev.Kind == NUMA && dev.Index < 0 }

// NameOf is the name of a device in the model, or DomainTitle.
func (t *NodeType) NameOf(d int) string {
	if unnumbered(&t.Devices[d]) {
		return t.DomainTitle(d)
	}
	return t.Devices[d].Name
}

// NamesOf lists the names of hosts in the order people count them; the order of
// a file is that of a log or of a cabling plan.
func (c *Cluster) NamesOf(hosts []int) []string {
	var names []string
	for _, h := range hosts {
		if n := c.Hosts[h].Name; n != "" {
			names = append(names, n)
		}
	}
	return natural.Sort(names)
}

// ByType sorts the hosts by type, in the order of the types. Types without a host
// are kept, so that a bare node can be shown. Hosts without a type come last.
func (c *Cluster) ByType() []Alike {
	all := make([]Alike, len(c.Types)+1)
	for i, t := range c.Types {
		all[i].Type = t
	}
	for i, h := range c.Hosts {
		at := h.Type
		if c.TypeOf(i) == nil {
			at = len(c.Types)
		}
		all[at].Hosts = append(all[at].Hosts, i)
	}
	if all[len(c.Types)].Hosts == nil {
		return all[:len(c.Types)]
	}
	return all
}

// Alike is the hosts of one node type; Type is nil for hosts whose inside nobody
// described.
type Alike struct {
	Type  *NodeType
	Hosts []int // indexes into Cluster.Hosts, in order
}
