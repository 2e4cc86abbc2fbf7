package sysfs

import (
	"cmp"
	"path"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/unit"
)

// nicList is the NICs of a machine. loose ones have no place on the PCI tree.
type nicList struct {
	all   []*cluster.Device
	loose []*cluster.Device
}

// member is a network interface or an RDMA device.
type member struct {
	name, dir string
	port      int // 1-based, of an interface
}

// nics finds the NICs: PCI functions with a network interface, an RDMA device or
// both, which are one NIC; then those that are not on PCI.
func (m *machine) nics(b *bus) *nicList {
	nets, looseNets := m.members(b, path.Join(m.sys, "class/net"), m.isCard)
	rdmas, looseRDMA := m.members(b, m.rdma, m.isRDMA)
	list := &nicList{}
	for _, fn := range b.order {
		if len(nets[fn])+len(rdmas[fn]) == 0 {
			continue
		}
		fn.Device = m.nic(fn, nets[fn], rdmas[fn])
		list.all = append(list.all, fn.Device)
	}
	for i := range looseRDMA {
		list.loose = append(list.loose, m.nic(nil, nil, looseRDMA[i:i+1]))
	}
	for i := range looseNets {
		list.loose = append(list.loose, m.nic(nil, looseNets[i:i+1], nil))
	}
	list.all = append(list.all, list.loose...)
	return list
}

// members lists a class of devices by PCI function, and those that are not on PCI. isNIC tells software from hardware,
// by the device's folder and where that is; known is false where the file system does not tell.
func (m *machine) members(b *bus, class string, isNIC func(d member, p place, known bool) bool,
) (on map[*function][]member, loose []member) {
	on = map[*function][]member{}
	for _, name := range m.natural(class) {
		d := member{name: name, dir: path.Join(class, name), port: 1}
		target, known := m.target(d.dir)
		if !known {
			target, known = m.target(d.dir, "device")
		}
		p := placeOf(target)
		if !isNIC(d, p, known) {
			continue
		}
		d.port += m.upTo(63, d.dir, "dev_port")
		if len(p.pci) == 0 {
			loose = append(loose, d)
		} else if fn := b.byAddr[p.pci[len(p.pci)-1]]; fn != nil {
			on[fn] = append(on[fn], d)
		}
	}
	return on, loose
}

// isCard tells the interface of a network card, on PCI or not (Hyper-V, Xen, system on chip). The USB interface that
// servers have is the management controller's, and one of a port pf0vf1 stands for a virtual function inside a
// switching NIC. Without links, only hardware has a device below it.
func (m *machine) isCard(d member, p place, known bool) bool {
	return !p.virtual && !p.usb && !strings.Contains(m.word(d.dir, "phys_port_name"), "pf") &&
		(known || m.isDir(path.Join(d.dir, "device")))
}

// isRDMA tells an RDMA device of a network card. Devices whose path is
// known and not on PCI are software (rxe, siw) or talk to a coprocessor (scif);
// where the path is unknown they count, without a place.
func (m *machine) isRDMA(d member, p place, known bool) bool {
	software := strings.HasPrefix(d.name, "rxe") || strings.HasPrefix(d.name, "siw")
	return !software && (len(p.pci) > 0 || !known && m.isDir(path.Join(d.dir, "ports")))
}

// nic makes one NIC of a function's interfaces and RDMA devices. fn is nil when
// the NIC is not on PCI.
func (m *machine) nic(fn *function, nets, rdmas []member) *cluster.Device {
	d := new(board.NIC(""))
	d.NIC.NUMA = m.affinity(fn)
	var id cluster.PCIID
	if fn != nil {
		id = fn.ID
		d.PCI, d.PCIID, d.NIC.Driver = fn.Addr, &id, fn.driver
	}
	for i, r := range rdmas {
		if i == 0 { // which names the NIC
			d.Label, d.UUID, d.NIC.Firmware = r.name, board.GUID(m.word(r.dir, "node_guid")), m.word(r.dir, "fw_ver")
			d.Model = board.Fact(m.word(r.dir, "hca_type"), source+" hca_type")
		}
		for _, p := range m.rdmaPorts(r) {
			if i > 0 {
				p.Label = r.name
			}
			d.NIC.Ports = append(d.NIC.Ports, p)
		}
	}
	layer := ""
	if len(d.NIC.Ports) > 0 {
		layer = d.NIC.Ports[0].Layer
	}
	if len(nets) > 0 {
		// A virtio function's own driver is virtio-pci; the interface's says more.
		if s := m.driver(path.Join(nets[0].dir, "device")); s != "" {
			d.NIC.Driver = s
		}
		if d.Label == "" {
			d.Label = nets[0].name
		}
	}
	d.NIC.Kind = board.NetKind(id, d.NIC.Driver, len(rdmas) > 0, layer)
	for _, n := range nets {
		m.addInterface(d, n, len(nets) > 1)
	}
	return d
}

// addInterface gives what a network interface says to the port it is.
func (m *machine) addInterface(d *cluster.Device, n member, several bool) {
	p := board.FreePort(d.NIC, n.port)
	if several || d.Label != n.name {
		p.Label = n.name
	}
	if p.State == cluster.StateUnknown {
		p.State = m.linkState(n.dir)
	}
	if !p.Rate.Known() && p.State != cluster.Down {
		p.Rate = board.Fact(unit.Rate(m.upTo(1<<31-2, n.dir, "speed"))*1e6/8, source+" speed")
	}
	// Over InfiniBand the interface is IP over InfiniBand, whose MTU and errors
	// are not the fabric's.
	if p.Layer == "InfiniBand" {
		return
	}
	p.MTU = board.Fact(m.upTo(1<<20, n.dir, "mtu"), source+" mtu")
	m.notZero(p, path.Join(n.dir, "statistics"), netCounters)
}

// linkState reads carrier, which cannot be read while the interface is off, and
// operstate, which some drivers leave at "unknown".
func (m *machine) linkState(dir string) cluster.State {
	return cmp.Or(linkStates[m.attr(dir, "carrier")], linkStates[m.attr(dir, "operstate")])
}

var linkStates = map[string]cluster.State{
	"1": cluster.Up, "0": cluster.Down, "up": cluster.Up, "down": cluster.Down, "lowerlayerdown": cluster.Down,
	"notpresent": cluster.Down, "dormant": cluster.Init, "testing": cluster.Init,
}

// rdmaPorts reads the ports of an RDMA device.
func (m *machine) rdmaPorts(r member) []cluster.Port {
	var list []cluster.Port
	for _, name := range m.natural(path.Join(r.dir, "ports")) {
		n := num.Or(name, 1, 255, 0)
		if n == 0 {
			continue
		}
		dir := path.Join(r.dir, "ports", name)
		p := cluster.Port{Num: n, Layer: m.word(dir, "link_layer"), State: board.PortState(m.word(dir, "state"))}
		rate, speed := board.PortRate(m.word(dir, "rate"))
		// A port that is down shows the rate it would begin with, not what it has.
		if p.State != cluster.Down && rate > 0 {
			p.Rate, p.Speed = cluster.FromRead(rate, source+" rate"), speed
		}
		p.MTU = board.Fact(m.upTo(1<<16, dir, "active_mtu"), source+" active_mtu")
		if p.Layer == "InfiniBand" {
			p.GUID = board.PortGUID(m.word(dir, "gids/0"))
			p.LID = m.upTo(1<<16-1, dir, "lid")
		}
		m.notZero(&p, path.Join(dir, "counters"), portCounters)
		m.notZero(&p, path.Join(dir, "hw_counters"), transportCounters)
		list = append(list, p)
	}
	return list
}
