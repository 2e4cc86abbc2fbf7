package sim

import (
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// route is what a message from one participant to another meets.
type route struct {
	hop       Hop
	resources []int64
	wires     unit.Time // latency of cables and switches
	net       cluster.NetKind
}

// Ports says by which NIC a rank sends or receives in a channel; -1 leaves it to
// the machine, which takes the nearest. Values of equal ports are equal to Go.
type Ports interface {
	Out(rank, peer, channel int) int
	In(rank, peer, channel int) int
	// Turns is after how many channels the same NICs come again.
	Turns() int
}

// router finds the routes of one schedule's messages, and keeps those inside nodes.
type router struct {
	m     *Machine
	s     *schedule.Schedule
	ports Ports
	*kept
	buf []int64
}

// kept are routes that do not depend on the schedule, and chains that schedules share.
type kept struct {
	direct, reach cluster.ClassType // under which they were found
	// near and far are the routes inside a type's nodes, between GPUs and between GPUs
	// and NICs, by pair of devices; nil until somebody asks.
	near, far [][]*localRoute
	climbs    map[[2]int32]climb
	chains    map[chainKey]chain // of rings
}

// climb is what lies between two leaves that meet above.
type climb struct {
	passed []int64
	late   unit.Time
	ok     bool
}

type localRoute struct {
	hop    Hop
	passed []int64 // resources, counted from the host's first
	bounce bool    // the NIC's data passes host memory,
	far    bool    // and what joins the sockets
	broken bool
}

func (m *Machine) router(s *schedule.Schedule, ports Ports) *router {
	return &router{
		m: m, s: s, ports: ports, kept: &kept{
			m.Direct, m.Reach, make([][]*localRoute, len(m.types)), make([][]*localRoute, len(m.types)),
			map[[2]int32]climb{},
			map[chainKey]chain{},
		},
	}
}

// slot is where the route between two devices of a type is kept.
func (w *router) slot(table [][]*localRoute, typ, a, b int) **localRoute {
	n := len(w.m.types[typ].t.Devices)
	if table[typ] == nil {
		table[typ] = make([]*localRoute, n*n)
	}
	return &table[typ][a*n+b]
}

// find is the route of a message. The resources are valid until the next call.
func (w *router) find(from, to, channel int) (route, bool) {
	m := w.m
	w.buf = w.buf[:0]
	if from >= m.n || to >= m.n {
		return w.withSwitch(from, to, channel)
	}
	a, b := m.at(from), m.at(to)
	if a.Host == b.Host && !m.apart(from, to) {
		if a.Device == b.Device {
			return route{hop: OverNVLink}, true
		}
		l := w.inside(m.c.Hosts[a.Host].Type, a.Device, b.Device)
		w.addRoute(a.Host, l)
		return route{hop: l.hop, resources: w.buf}, !l.broken
	}
	return w.outside(from, to, channel)
}

// way is what a chain counts of a message's route: its hop and its latency.
func (w *router) way(from, to, channel int) (Hop, unit.Time, bool) {
	m := w.m
	if from < m.n && to < m.n && m.at(from).Host == m.at(to).Host && m.at(from).Device != m.at(to).Device &&
		!m.apart(from, to) {
		l := w.inside(m.c.Hosts[m.at(from).Host].Type, m.at(from).Device, m.at(to).Device)
		return l.hop, 0, !l.broken
	}
	path, ok := w.find(from, to, channel)
	return path.hop, path.wires, ok
}

func (w *router) addRoute(host int, l *localRoute) {
	base := w.m.base[host]
	for _, id := range l.passed {
		w.buf = append(w.buf, base+id)
	}
}

// passed are the resources of a host that legs and the memory of a NUMA domain are, -1 for none.
func (n *node) passed(legs []cluster.Leg, numa int) []int64 {
	var list []int64
	for _, leg := range legs {
		if leg.Link >= 0 {
			list = append(list, n.link(leg))
		}
	}
	if numa >= 0 {
		list = append(list, n.memory(numa))
	}
	return list
}

// inside is the route between two GPUs of a node.
func (w *router) inside(typ, a, b int) *localRoute {
	slot := w.slot(w.near, typ, a, b)
	if *slot != nil {
		return *slot
	}
	limit := w.m.Direct
	if limit == cluster.Apart {
		limit = cluster.PXB
	}
	legs, class := w.m.routes.Inside(typ, a, b)
	if limit == cluster.Self { // no peer access at all
		legs, class = w.m.routes.Tree(typ, a, b)
	}
	n, stage := w.m.types[typ], -1
	var hive []cluster.Leg
	if limit != cluster.Self && class.Type > cluster.LK {
		hive = n.hive(a, b)
	}
	l := &localRoute{broken: class.Type == cluster.Apart && hive == nil}
	switch {
	case hive != nil:
		l.hop, legs = OverNVLink, hive
	case class.Type <= cluster.LK:
		l.hop = OverNVLink
	case class.Type <= limit && !n.refused(a, b):
		l.hop = OverPCIe
	default:
		l.hop = OverHost
		stage = n.numa[a]
		if n.numa[b] != stage && n.numa[b] >= 0 {
			l.hop = OverFar
		}
		if stage >= 0 { // up to the memory and down again, also from GPUs behind one switch
			up, _ := w.m.routes.Tree(typ, a, stage)
			down, _ := w.m.routes.Tree(typ, stage, b)
			if len(up) > 0 && len(down) > 0 {
				legs = append(slices.Clone(up), down...)
			}
		}
	}
	l.passed = n.passed(legs, stage)
	*slot = l
	return l
}

// refused reports a pair that the driver lets not reach each other.
func (n *node) refused(a, b int) bool {
	for _, p := range n.t.Pairs {
		if p.A == a && p.B == b {
			return p.P2P == cluster.No
		}
	}
	return false
}

// toNIC is the route between a GPU and a NIC of its node: over NVLink and the peer
// beside the NIC where that is nearer, through host memory where the NIC cannot
// reach the GPU.
func (w *router) toNIC(typ, gpu, nic int, out bool) *localRoute {
	a, b := gpu, nic
	if !out {
		a, b = nic, gpu
	}
	slot := w.slot(w.far, typ, a, b)
	if *slot != nil {
		return *slot
	}
	n := w.m.types[typ]
	legs, class := w.m.routes.Inside(typ, a, b)
	l := &localRoute{hop: OverNet, broken: class.Type == cluster.Apart}
	var via []cluster.Leg
	if class.Type > cluster.PXB && out {
		via = w.m.routes.Through(typ, gpu, nic)
	}
	if via != nil {
		legs, l.broken = via, false
	} else {
		l.bounce, l.far = !n.reaches(gpu, nic, class, w.m.Reach), n.distant(gpu, nic)
	}
	l.passed = n.passed(legs, -1)
	*slot = l
	return l
}

// reaches reports whether a NIC moves data to and from the GPU's memory by itself.
func (n *node) reaches(gpu, nic int, class cluster.Class, limit cluster.ClassType) bool {
	d := n.t.Devices[nic].NIC
	g := n.t.Devices[gpu].GPU
	if d == nil || d.GDR == cluster.No || g != nil && g.GDR == cluster.No {
		return false
	}
	if d.GDR == cluster.Maybe && d.Kind == cluster.Ethernet {
		return false
	}
	if limit == cluster.Apart {
		limit = cluster.PXB
	}
	if class.Type <= limit {
		return true
	}
	// A superchip's GPU hangs on its processor by C2C: the NIC reaches it there, and from another
	// superchip's NIC the processors' memory is no detour either, at hundreds of GB/s.
	for _, l := range n.t.Links {
		if l.Kind == cluster.C2C && (l.A == gpu || l.B == gpu) {
			return true
		}
	}
	return false
}

// outside is the route between ranks of two hosts.
func (w *router) outside(from, to, channel int) (route, bool) {
	m := w.m
	a, b := m.at(from), m.at(to)
	exit, enter := -1, -1
	if w.ports != nil {
		exit, enter = w.ports.Out(from, to, channel), w.ports.In(to, from, channel)
	}
	if exit < 0 {
		exit = m.nearNIC(a, channel)
	}
	if enter < 0 {
		enter = m.nearNIC(b, channel)
	}
	if exit < 0 || enter < 0 {
		return route{}, false
	}
	x := route{hop: OverNet}
	ta, tb := m.c.Hosts[a.Host].Type, m.c.Hosts[b.Host].Type
	up, down := w.toNIC(ta, a.Device, exit, true), w.toNIC(tb, b.Device, enter, false)
	w.addRoute(a.Host, up)
	w.port(a.Host, exit, true, up)
	x.net = m.types[ta].t.Devices[exit].NIC.Kind
	x.wires = w.over(a.Host, exit, b.Host, enter)
	w.port(b.Host, enter, false, down)
	w.addRoute(b.Host, down)
	x.resources = w.buf
	return x, !up.broken && !down.broken
}

// port appends a NIC, and the copies for it.
func (w *router) port(host, nic int, out bool, l *localRoute) {
	n := w.m.types[w.m.c.Hosts[host].Type]
	w.buf = append(w.buf, w.m.base[host]+n.nic(nic, out))
	if l.bounce {
		w.buf = append(w.buf, w.m.base[host]+n.hostCopy(nic, out, l.far))
	}
}

// over appends what lies between two NICs and returns its latency.
func (w *router) over(hostA, nicA, hostB, nicB int) unit.Time {
	net := &w.m.c.Network
	leafA, linkA := w.m.routes.Leaf(hostA, nicA)
	leafB, linkB := w.m.routes.Leaf(hostB, nicB)
	if leafA < 0 || leafB < 0 {
		return 0
	}
	key := [2]int32{int32(leafA), int32(leafB)}
	c, known := w.climbs[key]
	if !known {
		c.passed, c.late, c.ok = w.m.net.climb(nil, leafA, leafB)
		w.climbs[key] = c
	}
	if c.ok {
		w.buf = append(w.buf, c.passed...)
		return c.late + net.Links[linkA].Latency.Value + net.Links[linkB].Latency.Value
	}
	legs, _, ok := w.m.routes.Between(hostA, nicA, hostB, nicB)
	if !ok {
		return 0
	}
	var t unit.Time
	for i, leg := range legs {
		l := &net.Links[leg.Link]
		t += l.Latency.Value
		if i > 0 && i+1 < len(legs) {
			w.buf = append(w.buf, w.m.net.number(leg))
			if w.m.net.spreads(l) {
				w.buf = w.m.net.pools(w.buf, leg)
			}
		}
	}
	return t
}

// nearNIC is the NIC that a GPU's traffic of a channel takes by default.
func (m *Machine) nearNIC(p cluster.Place, channel int) int {
	n := m.types[m.c.Hosts[p.Host].Type]
	if near := n.near[p.Device]; len(near) > 0 {
		return near[channel%len(near)]
	}
	if len(n.nics) > 0 {
		return n.nics[channel%len(n.nics)]
	}
	return -1
}

// withSwitch is the route between a rank and a switch that reduces: the rank's links
// to its NVSwitch, or its NIC.
func (w *router) withSwitch(from, to, channel int) (route, bool) {
	m := w.m
	rank, out := from, true
	sw := to - m.n
	if from >= m.n {
		rank, out = to, false
		sw = from - m.n
	}
	if rank >= m.n || sw >= len(w.s.Switches) {
		return route{}, false
	}
	p := m.at(rank)
	typ := m.c.Hosts[p.Host].Type
	n := m.types[typ]
	if w.s.Switches[sw].Kind == schedule.Multimem {
		for i := range n.t.Links {
			l := &n.t.Links[i]
			if l.Kind == cluster.NVLink && l.A == p.Device && n.t.Devices[l.B].Kind == cluster.NVSwitch {
				w.buf = append(w.buf, m.base[p.Host]+n.link(cluster.Leg{Link: i, Forward: out}))
			}
		}
		return route{hop: OverSwitch, resources: w.buf}, len(w.buf) > 0
	}
	nic := -1
	if w.ports != nil {
		nic = w.ports.Out(rank, rank, channel)
	}
	if nic < 0 {
		nic = m.nearNIC(p, channel)
	}
	if nic < 0 {
		return route{}, false
	}
	l := w.toNIC(typ, p.Device, nic, out)
	w.addRoute(p.Host, l)
	w.port(p.Host, nic, out, l)
	return route{hop: OverNet, resources: w.buf, net: n.t.Devices[nic].NIC.Kind}, !l.broken
}

// Between is the kind of way between two ranks of one host.
func (m *Machine) Between(a, b int) Hop {
	p, q := m.at(a), m.at(b)
	return m.router(nil, nil).inside(m.c.Hosts[p.Host].Type, p.Device, q.Device).hop
}

// Staged tells whether data of a rank passes host memory on its way to its NIC.
func (m *Machine) Staged(rank int) bool {
	p, nic := m.at(rank), m.NearNIC(rank, 0)
	return nic >= 0 && m.router(nil, nil).toNIC(m.c.Hosts[p.Host].Type, p.Device, nic, true).bounce
}

// NearNIC is the NIC that a rank's traffic of a channel takes by default: one of
// those nearest to its GPU. -1: the node has none.
func (m *Machine) NearNIC(rank, channel int) int { return m.nearNIC(m.at(rank), channel) }
