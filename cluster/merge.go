package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// typed is a node type and the title of the source that gave it.
type typed struct {
	t      *NodeType
	source string
}

// merging is one merge of a further type into a base.
type merging struct {
	base     *NodeType
	src, add string // titles of the base's and the further source
	to       []int  // device of the further type → device of the base, -1 none yet
	warnings []Warning
	slow     bool // the base's matrix denies the further one's fast links
	fast     bool // fast links between devices of the base were added
	stopped  func() bool
}

// mergeTypes merges the types that several sources give for one node. The one
// whose PCIe tree is best known is the base; the others add devices, facts and
// links. The result is a copy. names maps, per input, device names to merged ones.
// Everything of one is held against everything of the other, so that stopped is
// asked on the way: once it is true, the result is of no use.
func mergeTypes(types []typed, stopped func() bool) (*NodeType, []map[string]string, []Warning) {
	best := 0
	for i, ty := range types {
		b := types[best].t
		if ty.t.Tree > b.Tree || ty.t.Tree == b.Tree && b.Tree == Unknown && len(ty.t.Devices) > len(b.Devices) {
			best = i
		}
	}
	base := types[best].t.clone()
	names := make([]map[string]string, len(types))
	var warnings []Warning
	source := types[best].source
	said := make([][]int, len(types))
	var fast []string // sources that added fast links to what the base says
	for _, i := range mergeOrder(types) {
		ty := types[i]
		m := merging{base: base, src: source, add: ty.source, stopped: stopped}
		if i == best {
			m.to = identity(len(ty.t.Devices))
		} else {
			m.merge(ty.t)
			warnings = append(warnings, m.warnings...)
			if m.fast {
				fast = append(fast, ty.source)
			}
		}
		names[i] = make(map[string]string, len(ty.t.Devices))
		for d, to := range m.to {
			if to >= 0 {
				names[i][ty.t.Devices[d].Name] = base.Devices[to].Name
			}
		}
		said[i] = m.to
	}
	for i, ty := range types {
		against := source
		if i == best {
			against = strings.Join(fast, ", ")
		}
		if ty.t.Said != nil && against != "" {
			warnings = append(warnings, compareMatrices(base, against, ty, said[i])...)
		}
	}
	base.Said = nil
	return base, names, warnings
}

// mergeOrder puts the sources that know devices by several names first: one that
// has address and index ties one that has only the address to one that has only
// the index.
func mergeOrder(types []typed) []int {
	order := identity(len(types))
	names := make([]int, len(types))
	for i, ty := range types {
		for k := range ty.t.Devices {
			d := &ty.t.Devices[k]
			n := 0
			for _, known := range []bool{d.PCI != "", d.UUID != "", d.Index >= 0, d.Label != ""} {
				if known {
					n++
				}
			}
			if d.Kind == GPU || d.Kind == NIC {
				names[i] = max(names[i], n)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return names[b] - names[a] })
	return order
}

func identity(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// clone copies a type deeply enough that a merge can change it.
func (t *NodeType) clone() *NodeType {
	c := *t
	c.Devices = append([]Device(nil), t.Devices...)
	for i := range c.Devices {
		d := &c.Devices[i]
		if d.PCIID != nil {
			v := *d.PCIID
			d.PCIID = &v
		}
		if d.CPU != nil {
			v := *d.CPU
			d.CPU = &v
		}
		if d.GPU != nil {
			v := *d.GPU
			v.Slices = append([]Slice(nil), v.Slices...)
			d.GPU = &v
		}
		if d.NIC != nil {
			v := *d.NIC
			v.Ports = append([]Port(nil), v.Ports...)
			d.NIC = &v
		}
	}
	c.Links = append([]Link(nil), t.Links...)
	c.Pairs = append([]Pair(nil), t.Pairs...)
	return &c
}

func (m *merging) warn(where, format string, args ...any) {
	m.warnings = append(m.warnings, Warning{Where: where, Text: fmt.Sprintf(format, args...)})
}

func (m *merging) merge(t *NodeType) {
	m.slow = m.matrixLacksLinks(t)
	m.to = make([]int, len(t.Devices))
	taken := make(map[int]bool)
	for i := range m.to {
		m.to[i] = -1
	}
	for _, match := range []func(a, b *Device) bool{samePCI, sameUUID, sameLabel, sameIndex} {
		for i := range t.Devices {
			if m.to[i] >= 0 {
				continue
			}
			if m.stopped() {
				return
			}
			for k := range m.base.Devices {
				if !taken[k] && match(&m.base.Devices[k], &t.Devices[i]) {
					m.to[i], taken[k] = k, true
					break
				}
			}
		}
	}
	if !m.differentMachines(t, taken) {
		return
	}
	m.pairByOrder(t, taken)
	m.countsDiffer(t)
	for i := range t.Devices {
		if m.to[i] >= 0 {
			m.mergeDevice(&m.base.Devices[m.to[i]], &t.Devices[i])
		}
	}
	wanted := m.wanted(t) // asked before any is added: the second socket would not be wanted beside the first
	for i := range t.Devices {
		if m.to[i] < 0 && wanted[t.Devices[i].Kind] {
			if m.stopped() {
				return
			}
			m.addDevice(t, i)
		}
	}
	m.base.containNUMA()
	for _, l := range t.Links {
		if m.stopped() {
			return
		}
		m.mergeLink(t, l)
	}
	for _, p := range t.Pairs {
		if m.stopped() {
			return
		}
		m.mergePair(p)
	}
}

// pairByOrder is the last resort: one source numbers its GPUs and has no
// addresses, the other has addresses and no numbers, and there are as many. Tools
// number equal GPUs in the order of their addresses, so they are taken as the
// same, with a warning.
func (m *merging) pairByOrder(t *NodeType, taken map[int]bool) {
	ours, theirs := m.base.Of(GPU), t.Of(GPU)
	if len(ours) == 0 || len(ours) != len(theirs) {
		return
	}
	named := func(x *NodeType, ids []int) (addressed, numbered bool) {
		addressed, numbered = true, true
		for _, i := range ids {
			addressed = addressed && x.Devices[i].PCI != "" && x.Devices[i].Index < 0
			numbered = numbered && x.Devices[i].PCI == "" && x.Devices[i].Index >= 0
		}
		return addressed, numbered
	}
	addrA, numA := named(m.base, ours)
	addrB, numB := named(t, theirs)
	if !(addrA && numB || numA && addrB) {
		return
	}
	byAddress(m.base, ours)
	byAddress(t, theirs)
	for i := range ours {
		m.to[theirs[i]], taken[ours[i]] = ours[i], true
	}
	m.warn("", "%s and %s name the %d GPUs differently (by number, by address); taken as the same, in the order of their addresses", m.src, m.add, len(ours))
}

func samePCI(a, b *Device) bool {
	return a.PCI != "" && a.PCI == b.PCI && (a.Kind == b.Kind || a.Kind == KindUnknown || b.Kind == KindUnknown)
}

func sameUUID(a, b *Device) bool { return a.Kind == b.Kind && a.UUID != "" && a.UUID == b.UUID }

func sameLabel(a, b *Device) bool {
	if a.Kind != NIC || b.Kind != NIC || bothPCI(a, b) {
		return false
	}
	if a.Label != "" && a.Label == b.Label {
		return true
	}
	return a.hasPort(b.Label) || b.hasPort(a.Label)
}

func (d *Device) hasPort(label string) bool {
	if label == "" || d.NIC == nil {
		return false
	}
	return slices.ContainsFunc(d.NIC.Ports, func(p Port) bool { return p.Label == label })
}

// sameIndex matches by the tool's own number, the weakest evidence: only for
// kinds that tools number alike, and never where both sides have an address.
func sameIndex(a, b *Device) bool {
	if a.Kind != b.Kind || bothPCI(a, b) {
		return false
	}
	switch a.Kind {
	case GPU, NUMA, Socket:
		return a.Index >= 0 && a.Index == b.Index
	case NIC:
		return a.Index >= 0 && a.Index == b.Index && (a.Label == "" || b.Label == "")
	case NVSwitch:
		return true
	}
	return false
}

// bothPCI reports two known, different addresses.
func bothPCI(a, b *Device) bool { return a.PCI != "" && b.PCI != "" && a.PCI != b.PCI }

// countsDiffer warns when both sources list devices of a kind but not as many.
func (m *merging) countsDiffer(t *NodeType) {
	for _, k := range []Kind{GPU, NUMA, Socket} {
		a, b := m.base.Count(k), t.Count(k)
		if a > 0 && b > 0 && a != b {
			m.warn("", "%s has %d %s devices, %s has %d; kept all that either names", m.src, a, k, m.add, b)
		}
	}
}

// wanted tells which kinds of devices that only the further source has are added: GPUs, NICs and NVSwitches always; NUMA
// domains and sockets when the base has none; PCIe switches and root complexes never, since the base's tree is better known.
func (m *merging) wanted(t *NodeType) map[Kind]bool {
	wanted := map[Kind]bool{}
	for i := range t.Devices {
		switch k := t.Devices[i].Kind; k {
		case GPU, NIC:
			wanted[k] = true
		case NVSwitch:
			wanted[k] = !m.baseHasFast() && !m.slow
		case NUMA, Socket:
			wanted[k] = m.base.Count(k) == 0
		default:
			wanted[k] = m.base.Tree == Unknown
		}
	}
	return wanted
}

// containNUMA puts NUMA domains into the sockets that another source knew of, where there is one way to do it: all into the only
// socket, or one into each, by number.
func (t *NodeType) containNUMA() {
	sockets, domains := t.Of(Socket), t.Of(NUMA)
	if len(sockets) == 0 || len(sockets) > 1 && len(sockets) != len(domains) ||
		slices.ContainsFunc(domains, func(d int) bool { return t.Devices[d].Parent >= 0 || t.Devices[d].Index < 0 }) ||
		slices.ContainsFunc(t.Devices, func(d Device) bool { return d.Parent >= 0 && slices.Contains(sockets, d.Parent) }) {
		return
	}
	byIndex := func(a, b int) int { return t.Devices[a].Index - t.Devices[b].Index }
	slices.SortStableFunc(sockets, byIndex)
	slices.SortStableFunc(domains, byIndex)
	for i, d := range domains {
		t.Devices[d].Parent = sockets[min(i, len(sockets)-1)]
	}
}

func (m *merging) baseHasFast() bool {
	return slices.ContainsFunc(m.base.Links, func(l Link) bool { return l.Kind == NVLink || l.Kind == XGMI })
}

// addDevice copies a device under the nearest of its ancestors that the base has.
func (m *merging) addDevice(t *NodeType, i int) {
	d := t.Devices[i]
	var up Link
	for _, l := range t.Links {
		if l.A == d.Parent && l.B == i || l.B == d.Parent && l.A == i {
			up = l
		}
	}
	parent := -1
	for p, n := d.Parent, 0; p >= 0 && n <= len(t.Devices); p, n = t.Devices[p].Parent, n+1 {
		if m.to[p] >= 0 {
			parent = m.to[p]
			break
		}
	}
	direct := d.Parent >= 0 && m.to[d.Parent] == parent
	d.Parent = parent
	if m.base.ByName(d.Name) >= 0 {
		d.Name = ""
	}
	at := m.base.Add(d)
	m.to[i] = at
	if parent < 0 || m.base.Devices[parent].Kind == Socket || direct {
		return // mergeLink copies a direct link
	}
	up.A, up.B = parent, at
	if up.Kind == LinkUnknown {
		up.Kind = PCIe
	}
	m.base.Connect(up)
}
