package cluster

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/unit"
)

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
		m.warn(where, "UUID %s in %s, %s in %s: two different parts, or two machines; kept the first", d.UUID, m.src, o.UUID, m.add)
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
	if o.PCIID != nil {
		if d.PCIID == nil {
			d.PCIID = &PCIID{}
		}
		fill(&d.PCIID.Class, o.PCIID.Class)
		fill(&d.PCIID.Vendor, o.PCIID.Vendor)
		fill(&d.PCIID.Device, o.PCIID.Device)
		fill(&d.PCIID.SubVendor, o.PCIID.SubVendor)
		fill(&d.PCIID.SubDevice, o.PCIID.SubDevice)
	}
	m.mergeCPU(d, o)
	m.mergeGPU(d, o)
	m.mergeNIC(d, o)
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
	m.warn(where, "%s is %v in %s, %v in %s; kept %v", what, a.Value, m.src, b.Value, m.add, kept.Value)
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
	fill(&d.CPU.Arch, o.CPU.Arch)
	fill(&d.CPU.Vendor, o.CPU.Vendor)
	fill(&d.CPU.Family, o.CPU.Family)
	fill(&d.CPU.Model, o.CPU.Model)
	if d.CPU.Cores != "" && o.CPU.Cores != "" && d.CPU.Cores != o.CPU.Cores {
		m.warn(d.Name, "cores %s in %s, %s in %s; kept %s", d.CPU.Cores, m.src, o.CPU.Cores, m.add, d.CPU.Cores)
	}
	fill(&d.CPU.Cores, o.CPU.Cores)
	d.CPU.Memory = mergeFact(m, d.Name, "memory", d.CPU.Memory, o.CPU.Memory, sameBytes)
}

func (m *merging) mergeGPU(d, o *Device) {
	if o.GPU == nil {
		return
	}
	if d.GPU == nil {
		d.GPU = &GPUInfo{}
	}
	g, h := d.GPU, o.GPU
	fill(&g.Vendor, h.Vendor)
	fill(&g.Arch, h.Arch)
	fill(&g.Cores, h.Cores)
	if g.SM != 0 && h.SM != 0 && g.SM != h.SM {
		m.warn(d.Name, "compute capability %d in %s, %d in %s; kept %d", g.SM, m.src, h.SM, m.add, g.SM)
	}
	fill(&g.SM, h.SM)
	fill(&g.Links, h.Links)
	fill(&g.GDR, h.GDR)
	g.Memory = mergeFact(m, d.Name, "memory", g.Memory, h.Memory, sameBytes)
	g.HBM = mergeFact(m, d.Name, "memory bandwidth", g.HBM, h.HBM, sameRate)
	g.NUMA = mergeFact(m, d.Name, "NUMA affinity", g.NUMA, h.NUMA, sameInt)
	if len(g.Slices) == 0 {
		g.Slices = h.Slices
	}
	if g.Peak == nil {
		g.Peak = h.Peak
	}
}

func (m *merging) mergeNIC(d, o *Device) {
	if o.NIC == nil {
		return
	}
	if d.NIC == nil {
		d.NIC = &NICInfo{}
	}
	n, k := d.NIC, o.NIC
	if n.Kind == "" || n.Kind == Ethernet && k.Kind == RoCE {
		n.Kind = k.Kind
	}
	fill(&n.GDR, k.GDR)
	fill(&n.Reduction, k.Reduction)
	fill(&n.Driver, k.Driver)
	fill(&n.Firmware, k.Firmware)
	if n.Off == nil {
		n.Off = k.Off
	}
	if n.RxRing == 0 {
		n.RxRing, n.RxRingMax = k.RxRing, k.RxRingMax
	}
	n.NUMA = mergeFact(m, d.Title(), "NUMA affinity", n.NUMA, k.NUMA, sameInt)
	for _, p := range k.Ports {
		m.mergePort(d, p)
	}
}

func (m *merging) mergePort(d *Device, p Port) {
	n := d.NIC
	at := -1
	for i := range n.Ports {
		q := &n.Ports[i]
		if p.Label != "" && p.Label == q.Label || at < 0 && (p.Num == q.Num || p.Num == 0 && i == 0 || q.Num == 0 && len(n.Ports) == 1) {
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
	fill(&q.Label, p.Label)
	fill(&q.Layer, p.Layer)
	fill(&q.Speed, p.Speed)
	fill(&q.GUID, p.GUID)
	fill(&q.LID, p.LID)
	if q.State == StateUnknown {
		q.State = p.State
	} else if p.State != StateUnknown && p.State != q.State {
		m.warn(where, "port %d is %v in %s, %v in %s; kept %v", q.Num, q.State, m.src, p.State, m.add, q.State)
	}
	q.Rate = mergeFact(m, where, "port rate", q.Rate, p.Rate, sameRate)
	q.Max = mergeFact(m, where, "largest port rate", q.Max, p.Max, sameRate)
	q.MTU = mergeFact(m, where, "MTU", q.MTU, p.MTU, sameInt)
	q.Counters = mergeCounters(q.Counters, p.Counters)
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
		return slices.ContainsFunc(m.base.Links, func(k Link) bool { return k.Kind == l.Kind && (k.A == a || k.B == a) && d[a].Kind == GPU })
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
		if k.Kind == PCIe && (k.A == at && k.B == m.base.Devices[at].Parent || k.B == at && k.A == m.base.Devices[at].Parent) {
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
		if !k.Rate.Known() {
			k.Rate = p.Rate
		}
		if !k.Both.Known() {
			k.Both = p.Both
		}
		if !k.Latency.Known() {
			k.Latency = p.Latency
		}
		fill(&k.P2P, p.P2P)
		fill(&k.Why, p.Why)
		return
	}
	m.base.Pairs = append(m.base.Pairs, p)
}

// mergeModel keeps the name of a device that says more: of "h100", as a scheduler calls it, and "NVIDIA H100 80GB HBM3" the
// second.
func mergeModel(m *merging, where string, a, b Fact[string]) Fact[string] {
	kept := mergeFact(m, where, "model", a, b, sameModel)
	for _, f := range []Fact[string]{a, b} {
		if f.Known() && f.Value != kept.Value && f.Origin > Assumed && (namesModel(f.Value, kept.Value) || isPartNumber(kept.Value)) && !isPartNumber(f.Value) && sameModel(f.Value, kept.Value) {
			kept = f
		}
	}
	return kept
}

// sameModel compares two names of a device. The part number by which InfiniBand tools call an adapter (MT4129) contradicts
// no product's name.
func sameModel(a, b string) bool {
	return a == b || isPartNumber(a) != isPartNumber(b) || namesModel(a, b) || namesModel(b, a)
}

// namesModel reports whether all words of the shorter name are in the longer, whatever stands between them.
func namesModel(long, short string) bool {
	words := modelWords(short)
	have := modelWords(long)
	return len(words) > 0 && len(have) >= len(words) && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(have, w) })
}

func modelWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) })
}

func isPartNumber(s string) bool {
	digits, ok := strings.CutPrefix(s, "MT")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
