package sysfs

import (
	"path"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// nicList is the NICs of a machine. loose ones have no place on the PCI tree.
type nicList struct {
	all   []*cluster.Device
	loose []cluster.Device
}

// netdev is a network interface.
type netdev struct {
	name, dir string
	port      int // 1-based
}

// rdmadev is an RDMA device.
type rdmadev struct{ name, dir string }

// nics finds the NICs: PCI functions with a network interface, an RDMA device or
// both, which are one NIC; then those that are not on PCI.
func (m *machine) nics(b *bus) *nicList {
	nets, looseNets := m.interfaces(b)
	rdmas, looseRDMA := m.rdmaDevices(b)
	list := &nicList{}
	for _, fn := range b.order {
		if len(nets[fn])+len(rdmas[fn]) == 0 {
			continue
		}
		fn.Device = m.nic(fn, nets[fn], rdmas[fn])
		list.all = append(list.all, fn.Device)
	}
	for _, r := range looseRDMA {
		list.loose = append(list.loose, *m.nic(nil, nil, []rdmadev{r}))
	}
	for _, n := range looseNets {
		list.loose = append(list.loose, *m.nic(nil, []netdev{n}, nil))
	}
	for i := range list.loose {
		list.all = append(list.all, &list.loose[i])
	}
	return list
}

// interfaces lists /sys/class/net by PCI function, and what is hardware but not
// on PCI (Hyper-V, Xen, system on chip).
func (m *machine) interfaces(b *bus) (map[*function][]netdev, []netdev) {
	on := map[*function][]netdev{}
	var loose []netdev
	class := path.Join(m.sys, "class/net")
	for _, name := range m.natural(class) {
		n := netdev{name: name, dir: path.Join(class, name), port: 1}
		target, ok := m.target(n.dir)
		p := placeOf(target)
		if !ok {
			// Without links, only hardware has a device below it.
			target, ok = m.target(n.dir, "device")
			p = placeOf(target)
			p.virtual = !ok && !m.isDir(path.Join(n.dir, "device"))
		}
		// The USB interface that servers have is the management controller's.
		if p.virtual || p.usb || m.isRepresentor(n.dir) {
			continue
		}
		if k, ok := m.number(n.dir, "dev_port"); ok && k >= 0 && k < 64 {
			n.port = k + 1
		}
		if len(p.pci) == 0 {
			loose = append(loose, n)
		} else if fn := b.byAddr[p.pci[len(p.pci)-1]]; fn != nil {
			on[fn] = append(on[fn], n)
		}
	}
	return on, loose
}

// isRepresentor tells an interface that stands for a virtual function inside a
// switching NIC (pf0vf1) from the one of the cable (p0).
func (m *machine) isRepresentor(dir string) bool {
	return strings.Contains(m.word(dir, "phys_port_name"), "pf")
}

// rdmaDevices lists /sys/class/infiniband by PCI function. Devices whose path is
// known and not on PCI are software (rxe, siw) or talk to a coprocessor (scif)
// and are no NICs; where the path is unknown they count, without a place.
func (m *machine) rdmaDevices(b *bus) (map[*function][]rdmadev, []rdmadev) {
	on := map[*function][]rdmadev{}
	var loose []rdmadev
	for _, name := range m.natural(m.rdma) {
		if strings.HasPrefix(name, "rxe") || strings.HasPrefix(name, "siw") {
			continue
		}
		r := rdmadev{name, path.Join(m.rdma, name)}
		target, ok := m.target(r.dir)
		if !ok {
			target, ok = m.target(r.dir, "device")
		}
		p := placeOf(target)
		switch {
		case ok && len(p.pci) > 0:
			if fn := b.byAddr[p.pci[len(p.pci)-1]]; fn != nil {
				on[fn] = append(on[fn], r)
			}
		case !ok && m.isDir(path.Join(r.dir, "ports")):
			loose = append(loose, r)
		}
	}
	return on, loose
}

// nic makes one NIC of a function's interfaces and RDMA devices. fn is nil when
// the NIC is not on PCI.
func (m *machine) nic(fn *function, nets []netdev, rdmas []rdmadev) *cluster.Device {
	d := &cluster.Device{Kind: cluster.NIC, Index: -1, NIC: &cluster.NICInfo{NUMA: m.affinity(fn)}}
	var id cluster.PCIID
	if fn != nil {
		id = fn.ID
		d.PCI, d.PCIID, d.NIC.Driver = fn.Addr, &id, fn.driver
	}
	for i, r := range rdmas {
		if i == 0 {
			m.rdmaNIC(d, r)
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
func (m *machine) addInterface(d *cluster.Device, n netdev, several bool) {
	at := -1
	for i := range d.NIC.Ports {
		if p := &d.NIC.Ports[i]; p.Num == n.port && p.Label == "" {
			at = i
			break
		}
	}
	if at < 0 {
		d.NIC.Ports = append(d.NIC.Ports, cluster.Port{Num: n.port})
		at = len(d.NIC.Ports) - 1
	}
	p := &d.NIC.Ports[at]
	if several || d.Label != n.name {
		p.Label = n.name
	}
	if p.State == cluster.StateUnknown {
		p.State = m.linkState(n.dir)
	}
	if v, ok := m.number(n.dir, "speed"); ok && v > 0 && v < 1<<31-1 && !p.Rate.Known() && p.State != cluster.Down {
		p.Rate = cluster.FromRead(unit.Rate(v)*1e6/8, source+" speed")
	}
	// Over InfiniBand the interface is IP over InfiniBand, whose MTU and errors
	// are not the fabric's.
	if p.Layer == "InfiniBand" {
		return
	}
	if v, ok := m.number(n.dir, "mtu"); ok && v > 0 && v < 1<<20 {
		p.MTU = cluster.FromRead(v, source+" mtu")
	}
	m.notZero(p, path.Join(n.dir, "statistics"), netCounters)
}

// linkState reads carrier, which cannot be read while the interface is off, and
// operstate, which some drivers leave at "unknown".
func (m *machine) linkState(dir string) cluster.State {
	switch m.attr(dir, "carrier") {
	case "1":
		return cluster.Up
	case "0":
		return cluster.Down
	}
	switch m.attr(dir, "operstate") {
	case "up":
		return cluster.Up
	case "down", "lowerlayerdown", "notpresent":
		return cluster.Down
	case "dormant", "testing":
		return cluster.Init
	}
	return cluster.StateUnknown
}

// rdmaNIC names a NIC after its RDMA device.
func (m *machine) rdmaNIC(d *cluster.Device, r rdmadev) {
	d.Label = r.name
	d.UUID = board.GUID(m.word(r.dir, "node_guid"))
	d.NIC.Firmware = m.word(r.dir, "fw_ver")
	if s := m.word(r.dir, "hca_type"); s != "" {
		d.Model = cluster.FromRead(s, source+" hca_type")
	}
}

// rdmaPorts reads the ports of an RDMA device.
func (m *machine) rdmaPorts(r rdmadev) []cluster.Port {
	var list []cluster.Port
	for _, name := range m.natural(path.Join(r.dir, "ports")) {
		num, err := strconv.Atoi(name)
		if err != nil || num < 1 || num > 255 {
			continue
		}
		dir := path.Join(r.dir, "ports", name)
		p := cluster.Port{Num: num, Layer: m.word(dir, "link_layer"), State: board.PortState(m.word(dir, "state"))}
		rate, speed := board.PortRate(m.word(dir, "rate"))
		// A port that is down shows the rate it would begin with, not what it has.
		if p.State != cluster.Down && rate > 0 {
			p.Rate, p.Speed = cluster.FromRead(rate, source+" rate"), speed
		}
		if v, ok := m.number(dir, "active_mtu"); ok && v >= 256 && v <= 1<<16 {
			p.MTU = cluster.FromRead(v, source+" active_mtu")
		}
		if p.Layer == "InfiniBand" {
			p.GUID = board.PortGUID(m.word(dir, "gids/0"))
			if lid, ok := m.number(dir, "lid"); ok && lid > 0 && lid < 1<<16 {
				p.LID = lid
			}
		}
		m.notZero(&p, path.Join(dir, "counters"), portCounters)
		m.notZero(&p, path.Join(dir, "hw_counters"), transportCounters)
		list = append(list, p)
	}
	return list
}
