package board

import (
	"cmp"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
)

// maxTree bounds the devices of one PCIe tree. Names are looked up one by one,
// so the bound also keeps time in check.
const maxTree = 4096

// maxDepth is how many bridges one behind another are followed; the PCI bus
// numbers of a domain end at 255.
const maxDepth = 256

// Func is a PCI function: a bridge with what is below it, or an end.
type Func struct {
	Addr   cluster.PCI
	ID     cluster.PCIID
	Bridge bool
	// Wire is what the function's own link registers say. For a root port or a
	// switch's downstream port that is the link below it, else the link above.
	Wire   Wire
	Device *cluster.Device // the GPU or NIC it is; nil for everything else
	Kids   []*Func
}

// Root is a PCIe host bridge.
type Root struct {
	Label string // pci0000:40
	Above int    // device of its NUMA domain (or socket), -1 unknown
	Kids  []*Func
}

// Grow adds the host bridges that have a GPU or NIC below them, the switches on
// the way, and the GPUs and NICs themselves. GPUs are numbered by Index where
// they have one, else by address; NICs with an RDMA device come first, by label.
//
// A PCIe switch is an upstream port and, behind it, downstream ports: two
// bridges on every way through it. Bridges below a host bridge are therefore
// root ports, upstream ports, downstream ports, upstream ports and so on. What
// becomes a PCISwitch:
//   - an upstream port with its downstream ports, as one;
//   - a root port that several functions share, for they share its link.
//
// What does not: any other port; and a switch right below the host bridge that
// leads to a single GPU or NIC or further switch (the one inside some GPUs), for
// no path class depends on it. Its link speeds still bound the way.
func (g *Host) Grow(roots []Root) {
	for _, r := range roots {
		kids := relevant(r.Kids, 0)
		if len(kids) == 0 || len(g.t.Devices) >= maxTree {
			g.Left += countEnds(kids)
			continue
		}
		at := g.t.Add(cluster.Device{Kind: cluster.RootComplex, Label: r.Label, Index: -1, Parent: r.Above})
		if r.Above >= 0 && g.t.Devices[r.Above].Kind == cluster.NUMA {
			g.t.Connect(cluster.Link{A: r.Above, B: at, Kind: cluster.OnDie})
		}
		if r.Above < 0 {
			g.adrift += countEnds(kids)
		}
		g.below(at, true, kids)
	}
	g.addEnds()
}

// Warn says what matters to a reader of the tree: where there is no GPU, nothing depends on where a NIC is.
func (g *Host) Warn(f *cluster.Fragment, host string) {
	if g.Left > 0 {
		f.Warnf(0, host, "%d sockets, NUMA nodes, GPUs or NICs more than any machine has; left out", g.Left)
	}
	if g.resting > 0 {
		f.Warnf(0, host, "the PCIe links of %d GPUs ran at first- or second-generation speed, as they do while a GPU "+
			"is idle; their rates are unknown until read under load", g.resting)
	}
	if g.adrift > 0 && g.t.Count(cluster.GPU) > 0 {
		f.Warnf(0, host, "%d GPUs and NICs are below host bridges that belong to no one NUMA node; their distance to the "+
			"others is unknown", g.adrift)
	}
}

// end is a GPU or NIC that waits for its number.
type end struct {
	dev    *cluster.Device
	parent int
	wire   Wire
}

// relevant keeps the functions that are, or lead to, a GPU or NIC.
func relevant(kids []*Func, depth int) []*Func {
	var out []*Func
	for _, k := range kids {
		if k.Bridge && depth < maxDepth {
			k.Kids = relevant(k.Kids, depth+1)
			if len(k.Kids) > 0 {
				out = append(out, k)
			}
		} else if k.Device != nil {
			k.Bridge = false
			out = append(out, k)
		}
	}
	return out
}

func countEnds(kids []*Func) int {
	n := 0
	for _, k := range kids {
		if k.Device != nil {
			n++
		}
		n += countEnds(k.Kids)
	}
	return n
}

// below hangs functions of a host bridge's or switch's own bus: ports, and ends
// built into it.
func (g *Host) below(parent int, top bool, kids []*Func) {
	for _, k := range kids {
		switch {
		case !k.Bridge:
			g.hang(parent, top, k, k.Wire)
		case top && len(k.Kids) > 1:
			wire := k.Wire
			for _, c := range k.Kids {
				wire = wire.With(c.Wire)
			}
			hub := g.addSwitch(parent, k, wire, "shared root port")
			for _, c := range k.Kids {
				g.hang(hub, false, c, c.Wire)
			}
		default:
			for _, c := range k.Kids {
				g.hang(parent, top, c, k.Wire.With(c.Wire))
			}
		}
	}
}

// hang places what is at the far end of a link: a GPU or NIC, or the upstream
// port of a switch.
func (g *Host) hang(parent int, top bool, f *Func, wire Wire) {
	if !f.Bridge {
		g.ends = append(g.ends, end{f.Device, parent, wire})
		return
	}
	if next, through := onlyWay(f); top && next != nil {
		g.hang(parent, true, next, wire.With(through))
		return
	}
	g.below(g.addSwitch(parent, f, wire, ""), false, f.Kids)
}

// onlyWay returns what a switch leads to when that is one thing, and the link
// to it.
func onlyWay(f *Func) (*Func, Wire) {
	if len(f.Kids) != 1 {
		return nil, Wire{}
	}
	k := f.Kids[0]
	if !k.Bridge {
		return k, k.Wire
	}
	if len(k.Kids) != 1 {
		return nil, Wire{}
	}
	return k.Kids[0], k.Wire.With(k.Kids[0].Wire)
}

func (g *Host) addSwitch(parent int, f *Func, wire Wire, label string) int {
	if len(g.t.Devices) >= maxTree {
		return parent
	}
	d := cluster.Device{Kind: cluster.PCISwitch, Index: -1, Label: label, PCI: f.Addr, Parent: parent}
	if f.ID != (cluster.PCIID{}) {
		id := f.ID
		d.PCIID = &id
	}
	at := g.t.Add(d)
	g.t.Connect(wire.link(parent, at, g.source))
	return at
}

// addEnds adds GPUs and NICs in the order that gives them their numbers.
func (g *Host) addEnds() {
	slices.SortStableFunc(g.ends, func(a, b end) int { return order(a.dev, b.dev) })
	for _, e := range g.ends {
		if len(g.t.Devices) >= maxTree {
			g.Left++
			continue
		}
		if e.dev.Kind == cluster.GPU && e.wire.resting() {
			g.resting++
			e.wire.Rate = 0
		}
		e.dev.Parent = e.parent
		at := g.t.Add(*e.dev)
		g.t.Connect(e.wire.link(e.parent, at, g.source))
	}
}

// order puts GPUs before NICs, GPUs by index and address, NICs with an RDMA
// device first and then by label.
func order(a, b *cluster.Device) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind)
	}
	if a.Kind == cluster.NIC {
		if x, y := plain(a), plain(b); x != y {
			return cmp.Compare(x, y)
		}
		if c := natural.Compare(a.Label, b.Label); c != 0 {
			return c
		}
	}
	// As an unsigned number -1, no index, comes last.
	return cmp.Or(cmp.Compare(uint(a.Index), uint(b.Index)), cmp.Compare(a.PCI, b.PCI))
}

// plain is 1 for a NIC that only has an Ethernet interface.
func plain(d *cluster.Device) int {
	if d.NIC == nil || d.NIC.Kind == cluster.Ethernet {
		return 1
	}
	return 0
}

// AddNIC adds a NIC that is not on PCI, or of which the place is unknown, below the only NUMA domain or, where there
// are several, at the top.
func (g *Host) AddNIC(d cluster.Device) {
	d.Parent = g.Only()
	if at := g.t.Add(d); d.Parent >= 0 {
		g.t.Connect(cluster.Link{A: d.Parent, B: at, Kind: cluster.PCIe})
	}
}
