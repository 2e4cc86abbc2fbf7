package ncclxml

import (
	"strconv"

	"busbar.dev/cluster"
)

// remember fills the note with what the elements cannot say.
func (p *printer) remember() {
	n := &p.note
	n.sockets = map[int]string{}
	n.unknown = map[int]bool{}
	n.direct = map[cluster.PCI]string{}
	n.model = map[cluster.PCI]string{}
	n.kind = map[cluster.PCI]string{}
	sockets := 0 // counted anew: a tray's are not the first of its rack
	number := map[int]int{}
	for i := range p.t.Devices {
		d := &p.t.Devices[i]
		if !p.here(i) {
			continue
		}
		switch {
		case d.Kind == cluster.Socket:
			number[i] = sockets
			sockets++
		case d.Kind == cluster.NUMA && d.Index >= 0 && d.Parent >= 0:
			n.sockets[d.Index] = p.socket(d.Parent, number[d.Parent])
		case p.addr[i] == "":
			continue
		case d.Parent < 0 || p.t.Devices[d.Parent].Kind <= cluster.NUMA:
			n.direct[p.addr[i]] = "root"
		}
		if d.Kind == cluster.GPU && d.Model.Known() {
			n.model[p.addr[i]] = d.Model.Value
		}
		if d.Kind == cluster.NIC && d.NIC != nil && p.addr[i] != "" && d.NIC.Kind != "" {
			if netKind(p.id(i), firstLabel(d)) != d.NIC.Kind {
				n.kind[p.addr[i]] = string(d.NIC.Kind)
			}
		}
	}
	if len(p.t.Of(cluster.NUMA)) == 0 {
		n.direct[everything] = "cpu"
	}
	p.rememberRoots()
}

// socket is the name of a socket in the note.
func (p *printer) socket(d, position int) string {
	if p.t.Trays > 1 {
		return "socket" + strconv.Itoa(position)
	}
	return p.name(d)
}

// rememberRoots notes the host bridges where Read would not guess them.
func (p *printer) rememberRoots() {
	roots := map[cluster.PCI]string{}
	guess := map[string]int{} // domain of addresses on bus 0 → its root
	usual := true
	for _, r := range p.t.Of(cluster.RootComplex) {
		if !p.here(r) {
			continue
		}
		for k, d := range p.below[r] {
			addr := p.addr[d]
			if addr == "" {
				continue
			}
			roots[addr] = p.name(r)
			key := string(addr)
			if onRootBus(addr) && !p.note.madeUp(addr) {
				key = string(addr[:4])
			}
			if was, ok := guess[key]; ok && was != r || !ok && k > 0 {
				usual = false
			}
			guess[key] = r
		}
	}
	if !usual {
		p.note.roots = roots
	}
}

func firstLabel(d *cluster.Device) string {
	if len(d.NIC.Ports) > 0 && d.NIC.Ports[0].Label != "" {
		return d.NIC.Ports[0].Label
	}
	return d.Label
}
