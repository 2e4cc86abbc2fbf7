package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// typed is a node type and the title of the source that gave it.
type typed struct {
	t      *NodeType
	source string
}

// disagreement is a warning that two sources differ, and what those that say the same of other devices have in common.
type disagreement struct {
	Warning
	kind string
}

// merging is a base that further sources add to, one after the other.
type merging struct {
	base     *NodeType
	src, add string            // titles of the base's and the further source
	gave     map[string]string // by place and field: the source of what is not the base's; nil keeps none
	to       []int             // device of the further type → device of the base, -1 none yet
	warnings []disagreement
	slow     bool // the base's matrix denies the further one's fast links
	fast     bool // fast links between devices of the base were added
	stopped  func() bool
}

// mergeTypes merges the types that several sources give for one node. The one
// whose PCIe tree is best known is the base; the others add devices, facts and
// links. The result is a copy. names maps, per input, device names to merged ones.
// Everything of one is held against everything of the other, so that stopped is
// asked on the way: once it is true, the result is of no use.
func mergeTypes(types []typed, stopped func() bool) (*NodeType, []map[string]string, []disagreement) {
	best := 0
	for i, ty := range types {
		b := types[best].t
		if ty.t.Tree > b.Tree || ty.t.Tree == b.Tree && b.Tree == Unknown && len(ty.t.Devices) > len(b.Devices) {
			best = i
		}
	}
	m := merging{base: types[best].t.clone(), src: types[best].source, gave: map[string]string{}, stopped: stopped}
	to := make([][]int, len(types))
	var fast []string // sources that added fast links to what the base says
	for _, i := range mergeOrder(types) {
		if i == best {
			to[i] = identity(len(types[i].t.Devices))
			continue
		}
		m.add, m.fast = types[i].source, false
		m.merge(types[i].t)
		to[i] = m.to
		if m.fast {
			fast = append(fast, m.add)
		}
	}
	names := make([]map[string]string, len(types))
	for i, ty := range types {
		names[i] = make(map[string]string, len(ty.t.Devices))
		for d, at := range to[i] {
			if at >= 0 {
				names[i][ty.t.Devices[d].Name] = m.base.Devices[at].Name
			}
		}
		against := m.src
		if i == best {
			against = strings.Join(fast, ", ")
		}
		if ty.t.Said != nil && against != "" {
			m.compareMatrix(against, ty, to[i])
		}
	}
	m.base.Said = nil
	return m.base, names, m.warnings
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
	c.Devices = slices.Clone(t.Devices)
	for i := range c.Devices {
		c.Devices[i].unshare()
	}
	c.Links, c.Pairs = slices.Clone(t.Links), slices.Clone(t.Pairs)
	return &c
}

// unshare gives a copy of a device its own parts.
func (d *Device) unshare() {
	d.PCIID, d.CPU, d.GPU, d.NIC = copied(d.PCIID), copied(d.CPU), copied(d.GPU), copied(d.NIC)
	if d.NIC != nil {
		d.NIC.Ports = slices.Clone(d.NIC.Ports)
	}
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

func (m *merging) warn(where, format string, args ...any) {
	w := Warning{Where: where, Text: fmt.Sprintf(format, args...)}
	m.warnings = append(m.warnings, disagreement{w, format + m.add})
}

func (m *merging) merge(t *NodeType) {
	m.slow = m.matrixLacksLinks(t)
	m.to = slices.Repeat([]int{-1}, len(t.Devices))
	taken := make(map[int]bool)
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
	m.nicsInOrder(t, taken)
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

// nicsInOrder pairs the NICs for RDMA that one source names and the other has by address, as lspci has.
func (m *merging) nicsInOrder(t *NodeType, taken map[int]bool) {
	named := func(d *Device) bool { return d.Label != "" && d.PCI == "" }
	placed := func(d *Device) bool { return d.Label == "" && d.PCI != "" && d.NIC != nil && d.NIC.Kind != Ethernet }
	for _, is := range [][2]func(d *Device) bool{{named, placed}, {placed, named}} {
		ours := slices.DeleteFunc(m.base.Of(NIC), func(k int) bool { return taken[k] || !is[0](&m.base.Devices[k]) })
		theirs := slices.DeleteFunc(t.Of(NIC), func(i int) bool { return m.to[i] >= 0 || !is[1](&t.Devices[i]) })
		switch {
		case len(ours) == 0 || len(theirs) == 0:
		case len(ours) == len(theirs):
			m.pairInOrder(t, ours, theirs, taken)
			m.warn("", "%s and %s name the %d NICs differently (by name, by address); taken as the same, in the order of their "+
				"addresses", m.src, m.add, len(ours))
		default:
			m.warn("", "%s has %d NICs and %s has %d, some by name, some by address; kept all, so that some are counted twice; "+
				"give ethtool -i of each, or map the node itself", m.src, len(ours), m.add, len(theirs))
		}
	}
}

// pairInOrder takes as many devices of both as the same, in the order of their addresses.
func (m *merging) pairInOrder(t *NodeType, ours, theirs []int, taken map[int]bool) {
	byAddress(m.base, ours)
	byAddress(t, theirs)
	for i := range ours {
		m.to[theirs[i]], taken[ours[i]] = ours[i], true
	}
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

// wanted tells which kinds of devices that only the further source has are added: GPUs, NICs and NVSwitches always;
// NUMA domains and sockets when the base has none; PCIe switches and root complexes never, since the base's tree is
// better known.
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

// containNUMA puts NUMA domains into the sockets that another source knew of, where there is one way to do it: all into
// the only socket, or one into each, by number.
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
	d.unshare()
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

// mergeDevice adds what o says to d.
func (m *merging) mergeDevice(d, o *Device) {
	d.Label = cmp.Or(d.Label, o.Label)
	where := d.Title()
	switch {
	case d.Index < 0:
		d.Index = o.Index
	case o.Index >= 0 && o.Index != d.Index && d.Kind == GPU:
		m.warnDiffer(where, "index", d.Index, o.Index, d.Index)
	}
	if d.NIC != nil && o.NIC != nil && d.NIC.Kind == Ethernet && o.NIC.Kind == RoCE {
		d.NIC.Kind = RoCE
	}
	m.joinFields(where, d, o)
	if o.NIC != nil {
		for _, p := range o.NIC.Ports {
			m.mergePort(d, p)
		}
	}
}

func (m *merging) mergePort(d *Device, p Port) {
	n := d.NIC
	at := -1
	for i := range n.Ports {
		q := &n.Ports[i]
		if p.Label != "" && p.Label == q.Label ||
			at < 0 && (p.Num == q.Num || p.Num == 0 && i == 0 || q.Num == 0 && len(n.Ports) == 1) {
			at = i
		}
	}
	if at < 0 {
		n.Ports = append(n.Ports, p)
		return
	}
	m.joinFields(d.Title(), &n.Ports[at], &p)
}

// mergeLink adds a link of the further source, or fills what the base's lacks.
func (m *merging) mergeLink(t *NodeType, l Link) {
	a, b := m.to[l.A], m.to[l.B]
	if a < 0 || b < 0 {
		if child := m.uplinkOf(t, l); child >= 0 {
			m.fillLink(child, l)
		}
		return
	}
	for i := range m.base.Links {
		k := &m.base.Links[i]
		if k.Kind != l.Kind || k.OneWay != l.OneWay {
			continue
		}
		if k.A == a && k.B == b || !l.OneWay && k.A == b && k.B == a {
			m.fillLink(i, l)
			return
		}
	}
	if m.contradicts(l, a, b) {
		return
	}
	m.fast = m.fast || l.Kind == NVLink || l.Kind == XGMI
	l.A, l.B = a, b
	m.base.Connect(l)
}

// contradicts reports a link that the base's own links already answer for: a
// second view of NVLink between GPUs that have it, or a second PCIe parent.
func (m *merging) contradicts(l Link, a, b int) bool {
	d := m.base.Devices
	switch l.Kind {
	case NVLink, XGMI:
		if m.slow {
			return true
		}
		return slices.ContainsFunc(m.base.Links,
			func(k Link) bool { return k.Kind == l.Kind && (k.A == a || k.B == a) && d[a].Kind == GPU })
	case SMP:
		return false
	}
	return d[b].Parent != a && d[a].Parent != b
}

// uplinkOf finds the base's link that carries the same device's uplink as l.
func (m *merging) uplinkOf(t *NodeType, l Link) int {
	child := l.B
	if t.Devices[l.A].Parent == l.B {
		child = l.A
	}
	at := m.to[child]
	if l.Kind != PCIe || at < 0 {
		return -1
	}
	return slices.IndexFunc(m.base.Links, func(k Link) bool {
		up := m.base.Devices[at].Parent
		return up >= 0 && k.Kind == PCIe && (k.A == at && k.B == up || k.B == at && k.A == up)
	})
}

func (m *merging) fillLink(i int, l Link) {
	k := &m.base.Links[i]
	where := m.base.Devices[k.A].Name + "–" + m.base.Devices[k.B].Name
	if k.Lanes != 0 && l.Lanes != 0 && k.Lanes != l.Lanes && k.Lanes != l.MaxLanes && l.Lanes != k.MaxLanes {
		m.warn(where, "%d %s lanes or links in %s, %d in %s; kept %d", k.Lanes, k.Kind, m.src, l.Lanes, m.add, k.Lanes)
	}
	// A source that knows the maximum too has seen the trained state; prefer its word.
	if l.MaxLanes != 0 && k.MaxLanes == 0 {
		k.MaxLanes, k.Lanes = l.MaxLanes, l.Lanes
	}
	if l.MaxGTs != 0 && k.MaxGTs == 0 {
		k.MaxGTs, k.GTs = l.MaxGTs, l.GTs
	}
	m.joinFields(where, k, &l)
}

func (m *merging) mergePair(p Pair) {
	p.A, p.B = m.to[p.A], m.to[p.B]
	if p.A < 0 || p.B < 0 {
		return
	}
	for i := range m.base.Pairs {
		k := &m.base.Pairs[i]
		if k.A != p.A || k.B != p.B {
			continue
		}
		m.joinFields("", k, &p)
		return
	}
	m.base.Pairs = append(m.base.Pairs, p)
}

// matrixLacksLinks reports whether the base's tool and the further one both printed a
// matrix, and the base's has none of the links that the further one has: then the
// base's word stands, and compareSaid tells of the other.
func (m *merging) matrixLacksLinks(t *NodeType) bool {
	if m.base.Said == nil || t.Said == nil {
		return false
	}
	pairs := 0
	for i, row := range m.base.Said.Class {
		for k, text := range row {
			c, ok := ParseClass(text)
			if i == k || !ok {
				continue
			}
			if pairs++; c.Type.fast() {
				return false
			}
		}
	}
	return pairs > 0
}

// fast reports a class that links between GPUs give, and PCIe does not.
func (t ClassType) fast() bool { return t == NV || t == XG || t == LK }

// compareMatrix holds the merged graph against the matrix that a tool printed.
func (m *merging) compareMatrix(source string, ty typed, to []int) {
	routes, said := newNodeRoutes(m.base), ty.t.Said
	dev := slices.Repeat([]int{-1}, len(said.Names))
	for i, n := range said.Names {
		if d := ty.t.ByName(n); d >= 0 && d < len(to) {
			dev[i] = to[d]
		}
	}
	var differ []string
	for i, row := range said.Class {
		for k := i + 1; k < min(len(row), len(dev)); k++ {
			if dev[i] < 0 || dev[k] < 0 {
				continue
			}
			_, is := routes.path(dev[i], dev[k])
			if c, ok := ParseClass(row[k]); ok && is.Type != Apart && c.String() != is.String() && !bothHost(c, is) {
				differ = append(differ, fmt.Sprintf("%s–%s is %s there, %s here", said.Names[i], said.Names[k], c, is))
			}
		}
	}
	if len(differ) == 0 {
		return
	}
	more := ""
	if len(differ) > 3 {
		more = fmt.Sprintf("; and %d more", len(differ)-3)
		differ = differ[:3]
	}
	m.warnings = append(m.warnings, disagreement{Warning: Warning{Text: fmt.Sprintf(
		"%s contradicts %s, which is kept: %s%s", ty.source, source, strings.Join(differ, "; "), more)}})
}

// bothHost forgives PHB against NODE: NCCL's XML does not tell host bridges apart.
func bothHost(a, b Class) bool {
	return (a.Type == PHB || a.Type == NODE) && (b.Type == PHB || b.Type == NODE)
}

// differentMachines deals with two sources that have no GPU in common. Where one numbers them and the other has
// addresses, and they have as many, they are the same: tools number equal GPUs in the order of their addresses.
// A preset's addresses are those of a usual machine of its kind and give way to
// the ones that were read. GPUs of other models, or two presets, are two machines
// under one name: nothing of the further one is taken. Otherwise each source may
// have seen a part of the node, and all are kept. It reports whether to go on.
func (m *merging) differentMachines(t *NodeType, taken map[int]bool) bool {
	if a, b := m.base.Preset, t.Preset; a != "" && b != "" && a != b {
		return m.refuse(t)
	}
	ours, theirs := m.base.Of(GPU), t.Of(GPU)
	if len(ours) == 0 || len(theirs) == 0 {
		return true
	}
	for _, i := range theirs {
		if m.to[i] >= 0 {
			return true
		}
	}
	address := func(d *Device) bool { return d.PCI != "" }
	addressOnly := func(d *Device) bool { return d.PCI != "" && d.Index < 0 }
	numberOnly := func(d *Device) bool { return d.PCI == "" && d.Index >= 0 }
	a, b := modelOf(m.base, ours), modelOf(t, theirs)
	switch {
	case len(ours) == len(theirs) && (all(m.base, ours, addressOnly) && all(t, theirs, numberOnly) ||
		all(m.base, ours, numberOnly) && all(t, theirs, addressOnly)):
		m.pairInOrder(t, ours, theirs, taken)
		m.warn("", "%s and %s name the %d GPUs differently (by number, by address); taken as the same, in the order of "+
			"their addresses", m.src, m.add, len(ours))
	case !all(m.base, ours, address) || !all(t, theirs, address):
	case a != "" && b != "" && a != b && (m.base.Preset == "") == (t.Preset == ""):
		return m.refuse(t)
	case len(ours) == len(theirs) && (m.base.Preset == "") != (t.Preset == ""):
		m.pairInOrder(t, ours, theirs, taken)
		m.warn("", "the %d GPUs have other addresses in %s than in %s; taken as the same, in the order of their addresses",
			len(ours), m.src, m.add)
	default:
		m.warn("", "%s has %d GPUs and %s has %d, and no address in common; kept all, as parts of one node; if these are "+
			"two machines, name them with HOST=FILE", m.src, len(ours), m.add, len(theirs))
	}
	return true
}

// refuse leaves the further source out.
func (m *merging) refuse(t *NodeType) bool {
	for i := range m.to {
		m.to[i] = -1
	}
	m.warn("", "%s has %s, %s has %s: two different machines under one name; kept the first", m.src, inventory(m.base),
		m.add, inventory(t))
	return false
}

func all(t *NodeType, ids []int, is func(d *Device) bool) bool {
	return !slices.ContainsFunc(ids, func(i int) bool { return !is(&t.Devices[i]) })
}

// modelOf is the model of the devices when they have one and the same.
func modelOf(t *NodeType, ids []int) string {
	model := t.Devices[ids[0]].Model.Value
	for _, i := range ids {
		if t.Devices[i].Model.Value != model {
			return ""
		}
	}
	return model
}

// inventory says what a machine is: "8 GPUs (NVIDIA H100, dgx-h100)".
func inventory(t *NodeType) string {
	ids := t.Of(GPU)
	var what []string
	if len(ids) > 0 {
		what = append(what, modelOf(t, ids))
	}
	what = slices.DeleteFunc(append(what, t.Preset), func(s string) bool { return s == "" })
	s := fmt.Sprintf("%d GPUs", len(ids))
	if len(what) > 0 {
		s += " (" + strings.Join(what, ", ") + ")"
	}
	return s
}

// byAddress sorts devices by address, and those without one by number.
func byAddress(t *NodeType, ids []int) {
	slices.SortStableFunc(ids, func(i, k int) int {
		return cmp.Or(cmp.Compare(t.Devices[i].PCI, t.Devices[k].PCI), t.Devices[i].Index-t.Devices[k].Index)
	})
}
