package sim

import (
	"busbar/cluster"
	"busbar/unit"
)

// tally adds up the bytes that pass every thing, for a byte of the operation.
type tally struct {
	m               *Machine
	hosts           [][]float64 // by host, then thing; nil where nothing passed
	count           [][]float64 // messages
	flows           [][]float64 // lanes that send over it
	lanesOf         [][]uint8   // even, odd
	parity          uint8       // of the lane being added
	lane0           int64       // its number, from 1
	lastLane        [][]int64
	users           [][]int32
	last            [][]int32
	net             map[int64]*load
	lanes, messages float64
	multi           []bool   // links of a host are used by a reducing switch
	dma             [][]bool // links of a host are used by NICs
}

func newTally(m *Machine) *tally {
	n := len(m.c.Hosts)
	return &tally{m: m, hosts: make([][]float64, n), count: make([][]float64, n), flows: make([][]float64, n), lanesOf: make([][]uint8, n), lastLane: make([][]int64, n), users: make([][]int32, n), last: make([][]int32, n), multi: make([]bool, n), dma: make([][]bool, n), net: map[int64]*load{}}
}

// add counts bytes that a participant sends over a way.
func (t *tally) add(who int, w way, bytes, messages float64) {
	for _, id := range w.things {
		if id >= t.m.net.first {
			l := t.net[id]
			if l == nil {
				l = &load{id: id}
				t.net[id] = l
			}
			l.bytes += bytes
			l.messages += messages
			if l.last != t.lane0 {
				l.last = t.lane0
				l.flows++
			}
			l.parity |= t.parity
			l.users++
			continue
		}
		h := t.host(id)
		if t.hosts[h] == nil {
			n := t.m.base[h+1] - t.m.base[h]
			t.hosts[h], t.users[h], t.last[h], t.dma[h] = make([]float64, n), make([]int32, n), make([]int32, n), make([]bool, n)
			t.count[h], t.flows[h], t.lanesOf[h], t.lastLane[h] = make([]float64, n), make([]float64, n), make([]uint8, n), make([]int64, n)
		}
		i := id - t.m.base[h]
		t.hosts[h][i] += bytes
		t.count[h][i] += messages
		if t.lastLane[h][i] != t.lane0 {
			t.lastLane[h][i] = t.lane0
			t.flows[h][i]++
		}
		t.lanesOf[h][i] |= t.parity
		if t.last[h][i] != int32(who)+1 {
			t.last[h][i] = int32(who) + 1
			t.users[h][i]++
		}
		switch w.hop {
		case OverSwitch:
			t.multi[h] = true
		case OverNet:
			t.dma[h][i] = true
		}
	}
}

// host is hostOf for the usual case of hosts of one size.
func (t *tally) host(id int64) int {
	if size := t.m.base[1]; size > 0 {
		if h := int(id / size); h+1 < len(t.m.base) && t.m.base[h] <= id && id < t.m.base[h+1] {
			return h
		}
	}
	return t.m.hostOf(id)
}

// lane counts what a lane sends, and its messages.
func (t *tally) lane(bytes, messages float64) {
	if bytes > t.lanes {
		t.lanes, t.messages = bytes, messages
	}
}

// worst is the busiest thing of every kind.
func (t *tally) worst() [nKinds]load {
	var w [nKinds]load
	w[Lane] = load{id: -1, bytes: t.lanes, messages: t.messages, flows: 1, users: 1}
	take := func(k Kind, l load) {
		if l.rate > 0 {
			l.seconds = l.bytes / float64(l.rate)
		}
		if l.seconds > w[k].seconds*(1+1e-12) || (k == Staging || k == Bounce) && l.bytes > w[k].bytes {
			w[k] = l
		}
	}
	for h, list := range t.hosts {
		if list == nil {
			continue
		}
		for i, bytes := range list {
			if bytes == 0 {
				continue
			}
			x := t.m.describe(t.m.base[h] + int64(i))
			switch {
			case x.kind == NVLink && t.multi[h]:
				x.kind = Multimem
			case x.kind == PCIe && t.dma[h][i]:
				x.kind = DMA
			}
			l := load{id: t.m.base[h] + int64(i), bytes: bytes, rate: t.m.rate(x), messages: t.count[h][i], flows: t.flows[h][i], parity: t.lanesOf[h][i], users: int(t.users[h][i]), net: x.net}
			l.shared = x.kind == Bounce && int(t.m.on[h]) > len(t.m.types[t.m.c.Hosts[h].Type].nics)
			take(x.kind, l)
		}
	}
	for id, l := range t.net {
		x := t.m.describe(id)
		take(Fabric, load{id: id, bytes: l.bytes, messages: l.messages, flows: l.flows, parity: l.parity, rate: x.rate, users: l.users, net: x.net})
	}
	return w
}

// rate is what a thing can carry: of a NIC also what its cable can.
func (m *Machine) rate(x thing) unit.Rate {
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
