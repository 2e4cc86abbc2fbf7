package sim

import (
	"maps"
	"slices"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// byteCount adds up the bytes that pass every resource, for a byte of the operation.
type byteCount struct {
	m     *Machine
	hosts [][]cell // by host, then resource; nil where nothing passed
	used  []int32  // the hosts that something passed
	free  [][]cell // room for others
	net   map[int64]*cell
	// lanes is what the busiest lane sends, messages how many that is.
	lanes, messages float64
	// The lane being added: its number from 1, and whether it is even or odd.
	lane0  int64
	parity uint8
	// The host that was looked at last: its resources from lo up to hi.
	lo, hi int64
	cells  []cell
}

// cell is what passes one resource.
type cell struct {
	bytes, messages, flows float64
	users                  int32
	lastUser               int32
	lastLane               int64
	parity                 uint8
	hops                   uint8 // bits by Hop
}

// spare keeps byte counts and routes for the next stage or schedule: new ones cost more than what they count.
type spare struct {
	mu     sync.Mutex
	list   []*byteCount
	routes []*kept
}

// router is one of a machine that knows what others of it have found.
func (p *spare) router(m *Machine, s *schedule.Schedule, ports Ports) *router {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.routes); n > 0 {
		k := p.routes[n-1]
		if p.routes = p.routes[:n-1]; k.direct == m.Direct && k.reach == m.Reach {
			return &router{m: m, s: s, ports: ports, kept: k}
		}
	}
	return m.router(s, ports)
}

// giveRoutes takes what a router has found.
func (p *spare) giveRoutes(w *router) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes = append(p.routes, w.kept)
}

// takeCount is a byte count of nothing.
func (p *spare) takeCount(m *Machine) *byteCount {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.list); n > 0 {
		t := p.list[n-1]
		p.list = p.list[:n-1]
		return t
	}
	return &byteCount{m: m, hosts: make([][]cell, len(m.c.Hosts)), net: map[int64]*cell{}}
}

// give takes a byte count back.
func (p *spare) give(t *byteCount) {
	for _, h := range t.used {
		t.free = append(t.free, t.hosts[h])
		t.hosts[h] = nil
	}
	clear(t.net)
	*t = byteCount{m: t.m, hosts: t.hosts, net: t.net, used: t.used[:0], free: t.free}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, t)
}

// host makes room for the resources of a host that nothing has passed before.
func (t *byteCount) host(h int) {
	n := int(t.m.base[h+1] - t.m.base[h])
	t.used = append(t.used, int32(h))
	if k := len(t.free); k > 0 && cap(t.free[k-1]) >= n {
		t.hosts[h], t.free = t.free[k-1][:n], t.free[:k-1]
		clear(t.hosts[h])
		return
	}
	t.hosts[h] = make([]cell, n)
}

// addBytes counts bytes that a participant sends over a route, in so many channels alike.
func (t *byteCount) addBytes(who int, w route, bytes, messages, channels float64) {
	bytes, messages = bytes*channels, messages*channels
	for _, id := range w.resources {
		c := t.cell(id)
		c.bytes += bytes
		c.messages += messages
		if c.lastLane != t.lane0 {
			c.lastLane = t.lane0
			c.flows += channels
		}
		if c.lastUser != int32(who)+1 {
			c.lastUser = int32(who) + 1
			c.users++
		}
		c.parity |= t.parity
		c.hops |= 1 << w.hop
	}
}

func (t *byteCount) cell(id int64) *cell {
	if id >= t.lo && id < t.hi {
		return &t.cells[id-t.lo]
	}
	if id >= t.m.net.first {
		c := t.net[id]
		if c == nil {
			c = &cell{}
			t.net[id] = c
		}
		return c
	}
	h := t.hostOf(id)
	if t.hosts[h] == nil {
		t.host(h)
	}
	t.lo, t.hi, t.cells = t.m.base[h], t.m.base[h+1], t.hosts[h]
	return &t.cells[id-t.lo]
}

// hostOf is the host of a resource, quick in the usual case of hosts of one size.
func (t *byteCount) hostOf(id int64) int {
	if size := t.m.base[1]; size > 0 {
		if h := int(id / size); h+1 < len(t.m.base) && t.m.base[h] <= id && id < t.m.base[h+1] {
			return h
		}
	}
	return t.m.hostOf(id)
}

// lane counts what a lane sends, and its messages.
func (t *byteCount) lane(bytes, messages float64) {
	if bytes > t.lanes {
		t.lanes, t.messages = bytes, messages
	}
}

// ports counts the NICs of a host that carry something in the direction of one.
func (t *byteCount) ports(host int, id int64) int {
	n := t.m.types[t.m.c.Hosts[host].Type]
	first := int64(2*len(n.t.Links)) + (id-t.m.base[host]-int64(2*len(n.t.Links)))%2
	used := 0
	for i := range n.nics {
		if t.hosts[host][first+int64(2*i)].bytes > 0 {
			used++
		}
	}
	return used
}

// merge adds another stage's bytes; its lanes and users are taken to be the same.
func (t *byteCount) merge(o *byteCount) {
	for _, h := range o.used {
		if t.hosts[h] == nil {
			t.host(int(h))
		}
		to, from := t.hosts[h], o.hosts[h]
		for i := range from {
			if from[i].lastUser != 0 {
				to[i].merge(&from[i])
			}
		}
	}
	for id, c := range o.net {
		t.cell(id).merge(c)
	}
	t.lanes += o.lanes
	t.messages += o.messages
}

func (c *cell) merge(o *cell) {
	c.bytes += o.bytes
	c.messages += o.messages
	c.flows, c.users = max(c.flows, o.flows), max(c.users, o.users)
	c.parity |= o.parity
	c.hops |= o.hops
}

// worst is the busiest resource of every kind. Of equally busy ones it is the first in the order of the cluster: hosts
// as it lists them, in a host links, NICs and memories, then switches and links of the network.
func (t *byteCount) worst() [nKinds]load {
	var w [nKinds]load
	w[Lane] = load{id: -1, bytes: t.lanes, messages: t.messages, flows: 1, users: 1}
	take := func(id int64, x resource, c *cell) {
		k := x.kind.under(c.hops)
		l := t.m.load(id, x, c.bytes, c.flows)
		l.messages, l.parity, l.users = c.messages, c.parity, int(c.users)
		if k == NIC {
			l.ports = t.ports(x.host, id)
		}
		if l.rate > 0 {
			l.seconds = l.bytes / float64(l.rate)
		}
		if l.seconds > w[k].seconds*(1+1e-12) || (k == Staging || k == Bounce || k == FarBounce) && l.bytes > w[k].bytes {
			w[k] = l
		}
	}
	slices.Sort(t.used)
	for _, h := range t.used {
		list := t.hosts[h]
		for i := range list {
			if list[i].bytes != 0 {
				take(t.m.base[h]+int64(i), t.m.local(int(h), int64(i)), &list[i])
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.net)) {
		take(id, t.m.describe(id), t.net[id])
	}
	return w
}

// under is the kind of a resource under messages that take certain hops: a GPU's
// links under a reducing switch, a PCIe link under a NIC's transfers or under copies
// through host memory.
func (k Kind) under(hops uint8) Kind {
	switch {
	case k == NVLink && hops>>OverSwitch&1 == 1:
		return Multimem
	case k == PCIe && hops>>OverNet&1 == 1:
		return DMA
	case k == PCIe && hops>>OverFar&1 == 1:
		return Far
	case k == PCIe && hops>>OverHost&1 == 1:
		return Shm
	}
	return k
}

// rate is what a resource can carry: of a NIC also what its cable can.
func (m *Machine) rate(x resource) unit.Rate {
	if x.kind != NIC || x.host < 0 {
		return x.rate
	}
	n := m.types[m.c.Hosts[x.host].Type]
	dev := n.nics[(x.local-int64(2*len(n.t.Links)))/2]
	if c := m.cable(x.host, dev); c > 0 && (x.rate == 0 || c < x.rate) && n.t.Devices[dev].Kind == cluster.NIC {
		return c
	}
	return x.rate
}
