package cluster

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/unit"
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

// merging is one merge of a further type into a base.
type merging struct {
	base     *NodeType
	src, add string  // titles of the base's and the further source
	before   []typed // that were merged already
	to       []int   // device of the further type → device of the base, -1 none yet
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
	base := types[best].t.clone()
	names := make([]map[string]string, len(types))
	var warnings []disagreement
	source := types[best].source
	said := make([][]int, len(types))
	var fast []string // sources that added fast links to what the base says
	var before []typed
	for _, i := range mergeOrder(types) {
		ty := types[i]
		m := merging{base: base, src: source, add: ty.source, before: before, stopped: stopped}
		if i == best {
			m.to = identity(len(ty.t.Devices))
		} else {
			m.merge(ty.t)
			warnings = append(warnings, m.warnings...)
			if m.fast {
				fast = append(fast, ty.source)
			}
			before = append(before, ty)
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
			for _, w := range compareMatrices(base, against, ty, said[i]) {
				warnings = append(warnings, disagreement{Warning: w})
			}
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
	c.Devices = slices.Clone(t.Devices)
	for i := range c.Devices {
		d := &c.Devices[i]
		d.PCIID, d.CPU, d.GPU, d.NIC = copied(d.PCIID), copied(d.CPU), copied(d.GPU), copied(d.NIC)
		if d.GPU != nil {
			d.GPU.Slices = slices.Clone(d.GPU.Slices)
		}
		if d.NIC != nil {
			d.NIC.Ports = slices.Clone(d.NIC.Ports)
		}
	}
	c.Links, c.Pairs = slices.Clone(t.Links), slices.Clone(t.Pairs)
	return &c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func (m *merging) warn(where, format string, args ...any) {
	w := Warning{Where: where, Text: fmt.Sprintf(format, args...)}
	m.warnings = append(m.warnings, disagreement{w, format + m.add})
}

// giver is the title of the source that gave what is there already: one that was merged into the base, else the base's.
func (m *merging) giver(gave func(typed) bool) string {
	if i := slices.IndexFunc(m.before, gave); i >= 0 {
		return m.before[i].source
	}
	return m.src
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
	m.pairInOrder(t, ours, theirs, taken)
	m.warn("", "%s and %s name the %d GPUs differently (by number, by address); taken as the same, in the order of "+
		"their addresses", m.src, m.add, len(ours))
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
	where := d.Name
	if d.Kind == KindUnknown {
		d.Kind = o.Kind
	}
	d.PCI = cmp.Or(d.PCI, o.PCI)
	if d.UUID == "" {
		d.UUID = o.UUID
	} else if o.UUID != "" && o.UUID != d.UUID {
		from := m.giver(func(x typed) bool {
			return slices.ContainsFunc(x.t.Devices, func(its Device) bool { return its.UUID == d.UUID })
		})
		m.warn(where, "UUID %s in %s, %s in %s: two different parts, or two machines; kept the first", d.UUID, from, o.UUID,
			m.add)
	}
	switch {
	case d.Index < 0:
		d.Index = o.Index
	case o.Index >= 0 && o.Index != d.Index && d.Kind == GPU:
		m.warn(where, "index %d in %s, %d in %s (same PCI address or UUID); kept %d", d.Index, m.src, o.Index, m.add, d.Index)
	}
	d.Label = cmp.Or(d.Label, o.Label)
	d.Tray = cmp.Or(d.Tray, o.Tray)
	d.Model = mergeModel(m, where, d.Model, o.Model)
	if d.PCIID == nil {
		d.PCIID = copied(o.PCIID)
	} else if o.PCIID != nil {
		fillFields(d.PCIID, o.PCIID)
	}
	m.mergeCPU(d, o)
	m.mergeGPU(d, o)
	m.mergeNIC(d, o)
}

// fillFields sets every field of a struct that is unknown yet, which zero says.
func fillFields[T any](to, from *T) {
	a, b := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range a.NumField() {
		if a.Field(i).IsZero() {
			a.Field(i).Set(b.Field(i))
		}
	}
}

// fill sets what is unknown yet.
func fill[T comparable](to *T, from T) {
	*to = cmp.Or(*to, from)
}

// mergeFact keeps the better of two facts and warns when equals differ.
func mergeFact[T any](m *merging, where, what string, a, b Fact[T], same func(a, b T) bool) Fact[T] {
	switch {
	case !b.Known():
		return a
	case !a.Known():
		return b
	case same(a.Value, b.Value):
		if b.Origin > a.Origin {
			return b
		}
		return a
	case a.Origin == Assumed && b.Origin > Assumed:
		return b
	case b.Origin == Assumed && a.Origin > Assumed:
		return a
	}
	kept := a
	if b.Origin > a.Origin {
		kept = b
	}
	from := m.giver(func(x typed) bool { return a.Source != "" && strings.Contains(x.source, a.Source) })
	m.warn(where, what+" is %v in %s, %v in %s; kept %v", a.Value, from, b.Value, m.add, kept.Value)
	return kept
}

// sameRate allows for figures rounded by the tool that printed them, and for
// tools that quote an 8b/10b link (InfiniBand to QDR) before its coding: 40 for 32.
func sameRate(a, b unit.Rate) bool {
	low, high := min(float64(a), float64(b)), max(float64(a), float64(b))
	return high-low <= 0.03*high || math.Abs(low/high-0.8) < 0.005
}

// sameBytes allows for the part of a GPU's memory that the driver keeps.
func sameBytes(a, b unit.Bytes) bool {
	return math.Abs(float64(a-b)) <= 0.1*math.Max(float64(a), float64(b))
}

func sameInt(a, b int) bool { return a == b }

func (m *merging) mergeCPU(d, o *Device) {
	if o.CPU == nil {
		return
	}
	if d.CPU == nil {
		d.CPU = &CPUInfo{}
	}
	if d.CPU.Cores != "" && o.CPU.Cores != "" && d.CPU.Cores != o.CPU.Cores {
		m.warn(d.Name, "cores %s in %s, %s in %s; kept %s", d.CPU.Cores, m.src, o.CPU.Cores, m.add, d.CPU.Cores)
	}
	d.CPU.Memory = mergeFact(m, d.Name, "memory", d.CPU.Memory, o.CPU.Memory, sameBytes)
	fillFields(d.CPU, o.CPU)
}

func (m *merging) mergeGPU(d, o *Device) {
	if o.GPU == nil {
		return
	}
	if d.GPU == nil {
		d.GPU = &GPUInfo{}
	}
	g, h := d.GPU, o.GPU
	if g.SM != 0 && h.SM != 0 && g.SM != h.SM {
		m.warn(d.Name, "compute capability %d in %s, %d in %s; kept %d", g.SM, m.src, h.SM, m.add, g.SM)
	}
	g.Memory = mergeFact(m, d.Name, "memory", g.Memory, h.Memory, sameBytes)
	g.HBM = mergeFact(m, d.Name, "memory bandwidth", g.HBM, h.HBM, sameRate)
	g.NUMA = mergeFact(m, d.Name, "NUMA affinity", g.NUMA, h.NUMA, sameInt)
	fillFields(g, h)
}

func (m *merging) mergeNIC(d, o *Device) {
	if o.NIC == nil {
		return
	}
	if d.NIC == nil {
		d.NIC = &NICInfo{}
	}
	n, k := d.NIC, o.NIC
	if n.Kind == Ethernet && k.Kind == RoCE {
		n.Kind = RoCE
	}
	n.NUMA = mergeFact(m, d.Title(), "NUMA affinity", n.NUMA, k.NUMA, sameInt)
	for _, p := range k.Ports {
		m.mergePort(d, p)
	}
	fillFields(n, k)
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
	q := &n.Ports[at]
	where := d.Title()
	fill(&q.Num, p.Num)
	if q.State != StateUnknown && p.State != StateUnknown && p.State != q.State {
		m.warn(where, "port %d is %v in %s, %v in %s; kept %v", q.Num, q.State, m.src, p.State, m.add, q.State)
	}
	q.Rate = mergeFact(m, where, "port rate", q.Rate, p.Rate, sameRate)
	q.Max = mergeFact(m, where, "largest port rate", q.Max, p.Max, sameRate)
	q.MTU = mergeFact(m, where, "MTU", q.MTU, p.MTU, sameInt)
	q.Counters = mergeCounters(q.Counters, p.Counters)
	fillFields(q, &p)
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
	if l.Kind != PCIe {
		return -1
	}
	child := l.B
	if t.Devices[l.A].Parent == l.B {
		child = l.A
	}
	at := m.to[child]
	if at < 0 || m.base.Devices[at].Parent < 0 {
		return -1
	}
	for i, k := range m.base.Links {
		if k.Kind == PCIe &&
			(k.A == at && k.B == m.base.Devices[at].Parent || k.B == at && k.A == m.base.Devices[at].Parent) {
			return i
		}
	}
	return -1
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
	fill(&k.Lanes, l.Lanes)
	k.GTs = cmp.Or(k.GTs, l.GTs)
	k.Duplex = cmp.Or(k.Duplex, l.Duplex)
	k.Rate = mergeFact(m, where, "rate", k.Rate, l.Rate, sameRate)
	k.Latency = mergeFact(m, where, "latency", k.Latency, l.Latency, func(a, b unit.Time) bool { return a == b })
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
		fillFields(k, &p)
		return
	}
	m.base.Pairs = append(m.base.Pairs, p)
}

// mergeModel keeps the name of a device that says more: of "h100", as a scheduler calls it, and "NVIDIA H100 80GB HBM3"
// the second.
func mergeModel(m *merging, where string, a, b Fact[string]) Fact[string] {
	kept := mergeFact(m, where, "model", a, b, sameModel)
	for _, f := range []Fact[string]{a, b} {
		if f.Known() && f.Value != kept.Value && f.Origin > Assumed &&
			(namesModel(f.Value, kept.Value) || isPartNumber(kept.Value)) && !isPartNumber(f.Value) &&
			sameModel(f.Value, kept.Value) {
			kept = f
		}
	}
	return kept
}

// sameModel compares two names of a device. The part number by which InfiniBand tools call an adapter (MT4129)
// contradicts no product's name.
func sameModel(a, b string) bool {
	return a == b || isPartNumber(a) != isPartNumber(b) || namesModel(a, b) || namesModel(b, a)
}

// namesModel reports whether all words of the shorter name are in the longer, whatever stands between them.
func namesModel(long, short string) bool {
	words := modelWords(short)
	have := modelWords(long)
	return len(words) > 0 && len(have) >= len(words) &&
		!slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(have, w) })
}

func modelWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) })
}

func isPartNumber(s string) bool {
	digits, ok := strings.CutPrefix(s, "MT")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
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

// compareMatrices holds the merged graph against the matrix another tool printed.
func compareMatrices(base *NodeType, source string, ty typed, to []int) []Warning {
	have := base.Matrix()
	at := make(map[string]int, len(have.Names))
	for i, n := range have.Names {
		at[n] = i
	}
	pos := make([]int, len(ty.t.Said.Names))
	for i, n := range ty.t.Said.Names {
		pos[i] = -1
		if d := ty.t.ByName(n); d >= 0 && d < len(to) && to[d] >= 0 {
			if k, ok := at[base.Devices[to[d]].Name]; ok {
				pos[i] = k
			}
		}
	}
	var differ []string
	for i := range ty.t.Said.Class {
		for k := i + 1; k < len(ty.t.Said.Class[i]) && k < len(pos); k++ {
			if pos[i] < 0 || pos[k] < 0 {
				continue
			}
			said, is := ty.t.Said.Class[i][k], have.Class[pos[i]][pos[k]]
			if c, ok := ParseClass(said); ok && is != "?" && c.String() != is && !sameClass(c.String(), is) {
				differ = append(differ, fmt.Sprintf("%s–%s is %s there, %s here", ty.t.Said.Names[i], ty.t.Said.Names[k], c, is))
			}
		}
	}
	if len(differ) == 0 {
		return nil
	}
	more := ""
	if len(differ) > 3 {
		more = fmt.Sprintf("; and %d more", len(differ)-3)
		differ = differ[:3]
	}
	return []Warning{{Text: fmt.Sprintf("%s contradicts %s, which is kept: %s%s", ty.source, source,
		strings.Join(differ, "; "), more)}}
}

// sameClass forgives PHB against NODE: NCCL's XML does not tell host bridges apart.
func sameClass(a, b string) bool {
	return (a == "PHB" || a == "NODE") && (b == "PHB" || b == "NODE")
}

// differentMachines deals with two sources whose GPUs all have addresses and share none.
// A preset's addresses are those of a usual machine of its kind and give way to
// the ones that were read. GPUs of other models, or two presets, are two machines
// under one name: nothing of the further one is taken. Otherwise each source may
// have seen a part of the node, and all are kept. It reports whether to go on.
func (m *merging) differentMachines(t *NodeType, taken map[int]bool) bool {
	if a, b := m.base.Preset, t.Preset; a != "" && b != "" && a != b {
		return m.refuse(t)
	}
	ours, theirs := m.base.Of(GPU), t.Of(GPU)
	if len(ours) == 0 || len(theirs) == 0 || !allAddressed(m.base, ours) || !allAddressed(t, theirs) {
		return true
	}
	for _, i := range theirs {
		if m.to[i] >= 0 {
			return true
		}
	}
	a, b := modelOf(m.base, ours), modelOf(t, theirs)
	switch {
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

func allAddressed(t *NodeType, ids []int) bool {
	return !slices.ContainsFunc(ids, func(i int) bool { return t.Devices[i].PCI == "" })
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
		if model := modelOf(t, ids); model != "" {
			what = append(what, model)
		}
	}
	if t.Preset != "" {
		what = append(what, t.Preset)
	}
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
