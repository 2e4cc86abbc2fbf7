package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Uncabled is a NIC that no source has a cable of, while the other NICs of its host and the same NIC of its peers have
// one.
type Uncabled struct {
	Host, NIC int    // NIC is a device of the host's type
	Peers     int    // hosts whose same NIC is cabled
	Source    string // that has the peers' cables; "" unknown
}

// SwappedRails is a host of a rail-optimised network with NICs on leaves of other rails.
type SwappedRails struct {
	Host   int
	NICs   []int // devices of the host's type
	On     []int // the leaf that each is cabled to
	Expect []int // the leaf of its rail; -1 where there are several
	Peers  int   // hosts that are cabled as expected
}

// usual is the share of peers that has to be cabled in a way for another one to be an error: three of four.
func usual(n, all int) bool { return n >= 2 && 4*n >= 3*all }

// cabling is the leaf of every NIC that a source names the cable of; -1 is none.
type cabling struct {
	c      *Cluster
	leaf   [][]int32 // by host and position of the NIC; nil where no cable is known, or not which NIC it is of
	source map[int]string
}

func (c *Cluster) cabling() *cabling {
	x := &cabling{c: c, leaf: make([][]int32, len(c.Hosts)), source: map[int]string{}}
	whole := make([]bool, len(c.Hosts))
	nics := make([]int, len(c.Types))
	for i, t := range c.Types {
		nics[i] = t.Count(NIC)
	}
	c.EachHostLink(func(l *NetLink, sw, h int) {
		t, nic := c.Hosts[h].Type, l.hosts().NIC
		switch {
		case t < 0 || t >= len(nics) || nic >= nics[t]:
			return
		case nic < 0:
			whole[h] = true
			return
		case x.leaf[h] == nil:
			x.leaf[h] = slices.Repeat([]int32{-1}, nics[t])
		}
		x.leaf[h][nic] = int32(sw)
		x.source[nic] = cmp.Or(x.source[nic], l.Rate.Source)
	})
	for h := range whole {
		if whole[h] {
			x.leaf[h] = nil
		}
	}
	return x
}

// Uncabled lists NICs that a dump of the fabric does not have though it has their peers'.
func (c *Cluster) Uncabled() []Uncabled {
	x := c.cabling()
	type key struct{ nics, nic int } // hosts with as many NICs are peers
	have, all := map[key]int{}, map[int]int{}
	for _, leaf := range x.leaf {
		if leaf == nil {
			continue
		}
		all[len(leaf)]++
		for k, sw := range leaf {
			if sw >= 0 {
				have[key{len(leaf), k}]++
			}
		}
	}
	var list []Uncabled
	for h, leaf := range x.leaf {
		for k, sw := range leaf {
			if n := have[key{len(leaf), k}]; sw < 0 && usual(n, all[len(leaf)]) {
				list = append(list, Uncabled{h, c.TypeOf(h).Of(NIC)[k], n, x.source[k]})
			}
		}
	}
	return list
}

// CloseUncabled marks the ports of such NICs as down, in a type of their hosts' own, so that nothing is sent through
// them.
func (c *Cluster) CloseUncabled() []Uncabled {
	list := slices.DeleteFunc(c.Uncabled(), func(u Uncabled) bool { return c.TypeOf(u.Host).Devices[u.NIC].NIC.Down() })
	users := make([]int, len(c.Types))
	for i := range c.Hosts {
		if t := c.Hosts[i].Type; t >= 0 && t < len(users) {
			users[t]++
		}
	}
	type group struct {
		typ           int
		hosts, closed []int
	}
	groups := map[string]*group{}
	var order []*group
	for i := 0; i < len(list); {
		h, closed := list[i].Host, []int(nil)
		for ; i < len(list) && list[i].Host == h; i++ {
			closed = append(closed, list[i].NIC)
		}
		key := fmt.Sprint(c.Hosts[h].Type, closed)
		if groups[key] == nil {
			groups[key] = &group{typ: c.Hosts[h].Type, closed: closed}
			order = append(order, groups[key])
		}
		groups[key].hosts = append(groups[key].hosts, h)
	}
	for _, g := range order {
		t, at := c.Types[g.typ].closedAt(g.closed), g.typ
		if len(g.hosts) < users[g.typ] {
			at = len(c.Types)
			t.Name = c.unusedName(t.Name + "-uncabled")
			c.Types = append(c.Types, nil)
		}
		c.Types[at] = t
		for _, h := range g.hosts {
			c.Hosts[h].Type = at
		}
	}
	return list
}

// closedAt is a copy of the type with the ports of some NICs down.
func (t *NodeType) closedAt(nics []int) *NodeType {
	t = t.clone()
	for _, d := range nics {
		if t.Devices[d].NIC == nil {
			t.Devices[d].NIC = &NICInfo{}
		}
		nic := t.Devices[d].NIC
		if len(nic.Ports) == 0 {
			nic.Ports = []Port{{Num: 1}}
		}
		for k := range nic.Ports {
			nic.Ports[k].State = Down
		}
	}
	return t
}

// unusedName is a name that no type has: files know types by their names.
func (c *Cluster) unusedName(name string) string {
	for slices.ContainsFunc(c.Types, func(t *NodeType) bool { return t != nil && t.Name == name }) {
		name += "'"
	}
	return name
}

// commonNIC is the position of the NIC that most cables of a leaf come from.
func commonNIC(count map[int]int) (nic int, ok bool) {
	all := 0
	for _, k := range slices.Sorted(maps.Keys(count)) {
		all += count[k]
		if count[k] > count[nic] {
			nic = k
		}
	}
	return nic, usual(count[nic], all)
}

// Swapped lists hosts with NICs on leaves that have another NIC of most hosts.
func (c *Cluster) Swapped() []SwappedRails {
	x := c.cabling()
	on := map[int32]map[int]int{} // by leaf and NIC
	for _, leaf := range x.leaf {
		for k, sw := range leaf {
			if sw < 0 {
				continue
			}
			if on[sw] == nil {
				on[sw] = map[int]int{}
			}
			on[sw][k]++
		}
	}
	rail := map[int32]int{}     // of a leaf
	leaves := map[int][]int32{} // of a rail
	for _, sw := range slices.Sorted(maps.Keys(on)) {
		if k, ok := commonNIC(on[sw]); ok {
			rail[sw], leaves[k] = k, append(leaves[k], sw)
		}
	}
	var list []SwappedRails
	if len(leaves) < 2 {
		return nil
	}
	for h, leaf := range x.leaf {
		s := SwappedRails{Host: h}
		for k, sw := range leaf {
			m, ok := rail[sw]
			if !ok || m == k || len(leaves[k]) == 0 || x.sameName(h, k, m) {
				continue
			}
			s.NICs, s.On, s.Expect = append(s.NICs, c.TypeOf(h).Of(NIC)[k]), append(s.On, int(sw)), append(s.Expect, -1)
			if want := leaves[k]; len(want) == 1 {
				s.Expect[len(s.Expect)-1] = int(want[0])
			}
			if n := on[sw][m]; s.Peers == 0 || n < s.Peers {
				s.Peers = n
			}
		}
		if s.NICs != nil {
			list = append(list, s)
		}
	}
	return list
}

// sameName reports whether a NIC of a host has the name that other types of nodes have at another position.
func (x *cabling) sameName(h, k, m int) bool {
	own := x.c.TypeOf(h)
	name := own.Devices[own.Of(NIC)[k]].Label
	for _, t := range x.c.Types {
		if nics := t.Of(NIC); name != "" && t != own && m < len(nics) && t.Devices[nics[m]].Label == name {
			return true
		}
	}
	return false
}
