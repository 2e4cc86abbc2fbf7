package sysfs

import (
	"maps"
	"path"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
)

// function is one PCI function as /sys describes it.
type function struct {
	board.Func
	dir    string // its folder
	root   string // pci0000:40; empty when unknown
	top    bool   // no bridge is above it
	numa   int    // -1 unknown
	cpus   string // local_cpulist
	driver string
	shadow bool // a virtual function
}

// bus is all PCI functions of a machine.
type bus struct {
	byAddr map[string]*function // by the name in /sys
	order  []*function
	mute   int // functions whose class cannot be read
}

// bus reads /sys/bus/pci/devices. Each entry is a link whose path is the way
// through the tree: devices/pci0000:40/0000:40:03.0/0000:43:00.0.
func (m *machine) bus() *bus {
	b := &bus{byAddr: map[string]*function{}}
	dir := path.Join(m.sys, "bus/pci/devices")
	places := map[*function]place{}
	for _, name := range m.list(dir) {
		if !addressName.MatchString(name) {
			continue
		}
		fn := m.function(path.Join(dir, name), name)
		b.addFunction(name, fn)
		if fn.ID.Class == "" {
			b.mute++
		}
		target, ok := m.target(dir, name)
		if p := placeOf(target); ok && p.root != "" && len(p.pci) > 0 && p.pci[len(p.pci)-1] == name {
			places[fn] = p
		}
	}
	for _, fn := range slices.Clone(b.order) {
		if p, ok := places[fn]; ok {
			b.hang(fn, p)
		}
	}
	return b
}

func (b *bus) addFunction(name string, fn *function) {
	b.byAddr[name] = fn
	b.order = append(b.order, fn)
}

// hang puts a function in its place, with the bridges above it. A snapshot may
// lack some of those; the path still names them.
func (b *bus) hang(fn *function, p place) {
	for i := len(p.pci) - 1; fn.root == ""; i-- {
		fn.root = p.root
		if fn.top = i == 0; fn.top {
			return
		}
		up := b.byAddr[p.pci[i-1]]
		if up == nil {
			if len(b.order) >= 2*maxEntries {
				fn.top = true
				return
			}
			up = &function{numa: -1}
			up.Addr = cluster.PCI(p.pci[i-1])
			b.addFunction(p.pci[i-1], up)
		}
		up.Bridge = true
		up.Kids = append(up.Kids, &fn.Func)
		fn = up
	}
}

func (m *machine) function(dir, name string) *function {
	hex := func(attr string) string { return strings.TrimPrefix(m.word(dir, attr), "0x") }
	fn := &function{dir: dir, numa: -1, cpus: m.word(dir, "local_cpulist"), driver: m.driver(dir)}
	fn.Addr = cluster.PCI(name)
	fn.ID = cluster.PCIID{
		Class: hex("class"), Vendor: hex("vendor"), Device: hex("device"),
		SubVendor: hex("subsystem_vendor"), SubDevice: hex("subsystem_device"),
	}
	if n, ok := m.number(dir, "numa_node"); ok && n >= 0 {
		fn.numa = n
	}
	fn.Bridge = board.IsBridge(fn.ID)
	fn.Wire = board.Wire{
		Lanes:    board.ParseLanes(m.word(dir, "current_link_width")),
		MaxLanes: board.ParseLanes(m.word(dir, "max_link_width")),
		GTs:      board.ParseGTs(m.word(dir, "current_link_speed")),
		MaxGTs:   board.ParseGTs(m.word(dir, "max_link_speed")),
	}
	_, fn.shadow = m.target(dir, "physfn")
	return fn
}

// roots gathers the functions under their host bridges. Functions of which the
// place is unknown come under a host bridge without a name.
func (b *bus) roots(h *board.Host) []board.Root {
	members := map[string][]*function{}
	for _, fn := range b.order {
		members[fn.root] = append(members[fn.root], fn)
	}
	var list []board.Root
	for _, name := range slices.Sorted(maps.Keys(members)) {
		r := board.Root{Label: name, Above: above(members[name], h)}
		for _, fn := range members[name] {
			if name == "" || fn.top {
				r.Kids = append(r.Kids, &fn.Func)
			}
		}
		list = append(list, r)
	}
	return list
}

// above finds the NUMA domain of a host bridge: the one that all functions below
// it name, else the one of the CPUs that those at the top call local. Firmware
// often answers -1 for some of them.
func above(fns []*function, h *board.Host) int {
	if at := h.Only(); at >= 0 {
		return at
	}
	numa := -1
	for _, fn := range fns {
		if fn.numa < 0 {
			continue
		}
		if numa >= 0 && numa != fn.numa {
			return -1
		}
		numa = fn.numa
	}
	if numa >= 0 {
		return h.Domain(numa)
	}
	for _, fn := range fns {
		if set, err := board.ParseList(fn.cpus); fn.top && err == nil && !set.Empty() {
			return h.Near(set)
		}
	}
	return -1
}

// affinity is the NUMA domain of one function: its own word, or the only one.
func (m *machine) affinity(fn *function) cluster.Fact[int] {
	if fn != nil && fn.numa >= 0 {
		return cluster.FromRead(fn.numa, source+" numa_node")
	}
	return m.board.NUMA(m.board.Only())
}
