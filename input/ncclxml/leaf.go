package ncclxml

import (
	"cmp"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
)

// leaf is a device at the end of the PCIe tree, or a NIC without one.
type leaf struct {
	el     *element
	nets   []*element
	kind   cluster.Kind
	tray   int
	parent int
	addr   cluster.PCI
	index  int // dev of the file, -1 when it has none
}

// place adds the leaves of a kind in the order of their numbers, or of their
// addresses when the file does not number them all.
func (b *builder) place(kind cluster.Kind) {
	var list []leaf
	numbered := true
	for _, l := range b.leaves {
		if l.kind == kind {
			list = append(list, l)
			numbered = numbered && l.index >= 0
		}
	}
	slices.SortStableFunc(list, func(x, y leaf) int {
		c := cmp.Compare(x.tray, y.tray)
		if c == 0 && numbered {
			c = cmp.Compare(x.index, y.index)
		} else if c == 0 {
			c = cmp.Compare(x.addr, y.addr)
		}
		return c
	})
	first := 0
	for i := range list {
		if i > 0 && list[i].tray != list[i-1].tray {
			first = i
		}
		switch kind {
		case cluster.GPU:
			b.addGPU(&list[i], i-first)
		case cluster.NIC:
			b.addNIC(&list[i], i)
		default:
			b.addLeaf(&list[i], cluster.Device{Kind: kind, Index: -1})
		}
	}
}

// addLeaf adds a device with what every pci element says, and its link up.
func (b *builder) addLeaf(l *leaf, d cluster.Device) {
	d.PCI, d.Parent, d.Tray = l.addr, l.parent, l.tray
	if l.el.Name == "pci" {
		d.PCIID = pciID(l.el)
	}
	id := b.t.Add(d)
	if l.addr != "" {
		b.at[place{l.tray, l.addr}] = id
	}
	b.uplink(l.el, id)
}

// uplink joins a device to what is above it.
func (b *builder) uplink(e *element, d int) {
	l := cluster.Link{A: b.t.Devices[d].Parent, B: d, Kind: cluster.PCIe}
	if e.Name == "pci" {
		l.GTs, l.Lanes = b.speed(e), board.ParseLanes(e.Get("link_width"))
	}
	b.t.Connect(l)
}
