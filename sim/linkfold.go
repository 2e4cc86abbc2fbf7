package sim

import (
	"cmp"
	"encoding/binary"
	"slices"

	"busbar.dev/result"
	"busbar.dev/unit"
)

// folding puts together what is equally busy.
type folding struct {
	t    *passing
	m    *Model
	size float64
	took unit.Time
	// kind is what limits the run, and slowest how long the busiest resource of the kind takes; 0
	// where no resource does.
	kind    Kind
	slowest float64
}

// limit finds the busiest resources of the kind that limits the run.
func (f *folding) limit(kind Kind) {
	most := 0.0
	f.each(func(id int64, bytes, flows float64, hops uint8) {
		if b, t := f.weigh(id, bytes, flows, hops); b.kind == kind {
			most = max(most, t)
		}
	})
	f.kind, f.slowest = kind, most
}

// each calls do for all resources that something passes.
func (f *folding) each(do func(id int64, bytes, flows float64, hops uint8)) {
	for id, bytes := range f.t.bytes {
		if bytes != 0 {
			do(int64(id), bytes, 0, f.t.hops[id])
		}
	}
	for id, c := range f.t.net {
		do(id, c.bytes, c.flows, c.hops)
	}
}

// used is a resource of a host, by its number there, and how busy it is.
type used struct {
	local int64
	busy
}

// hosts are the links of hosts, those on which the same happens together.
func (f *folding) hosts() []result.Links {
	mc := f.t.m
	var list []result.Links
	at := map[string]int{}
	var key []byte
	var uses []used
	for h := range mc.c.Hosts {
		typ := mc.c.Hosts[h].Type
		key, uses = binary.AppendVarint(key[:0], int64(typ)), uses[:0]
		for id := mc.base[h]; id < mc.base[h+1]; id++ {
			bytes := f.t.bytes[id]
			if bytes == 0 {
				continue
			}
			b, _ := f.weigh(id, bytes, 0, f.t.hops[id])
			u := used{id - mc.base[h], b}
			uses = append(uses, u)
			for _, x := range []int64{u.local, int64(b.kind), int64(b.rate), b.bytes, int64(b.share)} {
				key = binary.AppendVarint(key, x)
			}
		}
		if len(uses) == 0 {
			continue
		}
		i, ok := at[string(key)]
		if !ok {
			i = len(list)
			at[string(key)] = i
			list = append(list, result.Links{Uses: together(uses, mc.types[typ].which)})
		}
		list[i].Hosts = append(list[i].Hosts, mc.c.Hosts[h].Name)
	}
	return list
}

// network is the uplinks of switches, and links between switches of one tier.
func (f *folding) network() []result.Links {
	var uses []used
	for id, c := range f.t.net {
		b, _ := f.weigh(id, c.bytes, c.flows, c.hops)
		uses = append(uses, used{id - f.t.m.net.first, b})
	}
	if len(uses) == 0 {
		return nil
	}
	slices.SortFunc(uses, func(a, b used) int { return cmp.Compare(a.local, b.local) })
	return []result.Links{{Uses: together(uses, f.t.m.net.which)}}
}

// together are resources that are equally busy, with their names, the busiest first.
func together(uses []used, name func(local int64) string) []result.LinkUse {
	var list []result.LinkUse
	at := map[busy]int{}
	for _, u := range uses {
		i, ok := at[u.busy]
		if !ok {
			i = len(list)
			at[u.busy] = i
			list = append(list, result.LinkUse{
				Use:    result.Use{Kind: u.kind.limit(), Rate: u.rate, Bytes: unit.Bytes(u.bytes), Share: float64(u.share) / 1e4},
				Cables: int(u.cab), Tight: u.tight,
			})
		}
		list[i].Which = append(list[i].Which, name(u.local))
	}
	slices.SortStableFunc(list, func(a, b result.LinkUse) int { return cmp.Compare(b.Share, a.Share) })
	return list
}

// which names a resource of a host by the devices at its ends.
func (n *node) which(local int64) string {
	links, nics := int64(2*len(n.t.Links)), int64(len(n.nics))
	switch {
	case local < links:
		l := &n.t.Links[local/2]
		a, b := n.t.Devices[l.A].Name, n.t.Devices[l.B].Name
		if local%2 == 1 {
			a, b = b, a
		}
		return a + "→" + b
	case local < links+4*nics:
		name := n.t.Devices[n.nics[(local-links)/2%nics]].Name
		if (local-links)%2 == 1 {
			return "network→" + name
		}
		return name + "→network"
	}
	return n.t.Devices[local-links-4*nics].Name
}

// which names uplinks by their switch.
func (f *fabric) which(local int64) string {
	n := local / 2
	if n >= int64(len(f.up)) {
		n -= int64(len(f.up))
		if k := n - int64(len(f.c.Network.Links)); k >= 0 {
			return f.c.Network.Switches[k].Name + " across"
		}
		l := &f.c.Network.Links[n]
		a, b := f.c.EndName(l.A), f.c.EndName(l.B)
		if local%2 == 1 {
			a, b = b, a
		}
		return a + "→" + b
	}
	name := f.c.Network.Switches[n].Name
	if local%2 == 1 {
		return "above→" + name
	}
	return name + "→above"
}
