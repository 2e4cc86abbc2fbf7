package hwloc

import (
	"cmp"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lazyre"
)

// roots builds the PCI trees below the host bridges.
func (m *machine) roots() []board.Root {
	var list []board.Root
	for _, o := range m.top.of("Bridge") {
		if !strings.HasPrefix(o.Get("bridge_type"), "0-") {
			continue
		}
		r, bus := board.Root{Above: m.near(o)}, ""
		if of := buses.FindStringSubmatch(o.Get("bridge_pci")); of != nil {
			bus = of[2]
			r.Label = "pci" + of[1] + ":" + bus
		}
		for _, k := range o.Kids {
			if fn := m.function(k, o, bus); fn != nil {
				r.Kids = append(r.Kids, fn)
			}
		}
		r.Kids = m.restore(o, r, bus)
		list = append(list, r)
	}
	return list
}

// buses is "0004:[00-0a]": the domain and the first bus below a bridge.
var buses = lazyre.New(`^([[:xdigit:]]{1,8}):\[([[:xdigit:]]{1,2})-`)

// restore puts back what was left out of a document without PCI bridges: a
// function that is right below the host bridge but not on its bus has a port
// above it, and functions of one bus share that port. How the ports are joined
// is lost.
func (m *machine) restore(o *object, r board.Root, bus string) []*board.Func {
	if bus == "" {
		return r.Kids
	}
	ports := map[string]*board.Func{}
	var out []*board.Func
	ends := 0
	for _, k := range r.Kids {
		on := busOf(k.Addr)
		if k.Bridge || on == "" || on == bus {
			out = append(out, k)
			continue
		}
		p := ports[on]
		if p == nil {
			p = &board.Func{Bridge: true}
			ports[on] = p
			out = append(out, p)
		}
		if k.Device != nil && len(p.Kids) == 0 {
			ends++
		}
		if k.Device != nil {
			p.Kids = append(p.Kids, k)
		}
	}
	if ends > 1 {
		m.f.Warnf(o.Line, m.host, "the PCI bridges below %s are missing from this topology, so devices there may share a "+
			"switch that is not shown; write it with lstopo --whole-io", r.Label)
	}
	return out
}

// busOf is the bus number in an address.
func busOf(p cluster.PCI) string {
	_, rest, _ := strings.Cut(string(p), ":")
	bus, _, _ := strings.Cut(rest, ":")
	return bus
}

// function turns a bridge or PCI device and what is below it into a board.Func.
// up is the bridge above; bus is the number of the host bridge's bus.
func (m *machine) function(o, up *object, bus string) *board.Func {
	kind := kindOf(o)
	if kind != "Bridge" && kind != "PCIDev" {
		return nil
	}
	addr, err := cluster.ParsePCI(o.Get("pci_busid"))
	if err != nil {
		m.f.Warnf(o.Line, m.host, "%s: %v; left out with what is below it", strings.ToLower(kind), err)
		return nil
	}
	fn := &board.Func{Addr: addr, ID: pciID(o.Get("pci_type")), Bridge: kind == "Bridge"}
	// With NVML hwloc writes the most that a GPU can do, not what its link trained
	// to. The port above has that, and the smaller of the two is kept.
	fn.Wire.Rate = speed(o)
	if fn.Bridge {
		for _, k := range o.Kids {
			if c := m.function(k, o, bus); c != nil {
				fn.Kids = append(fn.Kids, c)
			}
		}
		return fn
	}
	if m.seen[addr] {
		m.f.Warnf(o.Line, m.host, "PCI address %s occurs twice; the second is left out", addr)
		return nil
	}
	m.seen[addr] = true
	onRoot := kindOf(up) == "Bridge" && up.Get("pci_busid") == "" && busOf(addr) == bus
	if fn.Device = m.device(o, fn, onRoot); fn.Device != nil {
		m.devs[o] = addr
	}
	return fn
}

// pciType is "0302 [10de:15f9] [10de:116b] a1 00": class, vendor and device, those of the board, revision and, since
// hwloc 3, the programming interface.
var pciType = lazyre.New(`^([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\](?: \[([0-9a-f]{4}):([0-9a-f]{4})\])?` +
	`(?: [0-9a-f]{2}(?: ([0-9a-f]{2}))?)?$`)

func pciID(s string) (id cluster.PCIID) {
	if m := pciType.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s))); m != nil {
		id = cluster.PCIID{Class: m[1] + cmp.Or(m[6], "00"), Vendor: m[2], Device: m[3]}
		if m[4]+m[5] != "00000000" {
			id.SubVendor, id.SubDevice = m[4], m[5]
		}
	}
	return id
}
