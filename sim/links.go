package sim

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// passing is what passes every resource of a cluster, for a byte of the operation. It
// is leaner than a tally, for it holds the resources of all hosts.
type passing struct {
	m     *Machine
	bytes []float64 // by resource of a host
	hops  []uint8
	net   map[int64]*cell
}

// mostDirect is how many ranks are told apart where everyone talks to everyone.
const mostDirect = 1024

// mostAsked bounds the lanes that are asked one by one, and the messages where they are: a second or so.
const mostAsked = 1 << 21

// Links is how busy every link is during a call that takes a time: unlike an outline,
// which is content with the busiest of each kind, it asks all participants. Hosts on
// which the same happens are together.
func (o *Outline) Links(ctx context.Context, op coll.Op, m *Model, ports Ports, r *result.Run) ([]result.Links, error) {
	if n := o.s.Nodes() * o.s.Lanes; n > mostAsked {
		return nil, fmt.Errorf("%d ranks in %d lanes are too many to tell their links apart; take a part of them with a "+
			"layout", o.s.Ranks, o.s.Lanes)
	}
	t := &passing{m: o.m, bytes: make([]float64, o.m.base[len(o.m.c.Hosts)]), net: map[int64]*cell{}}
	t.hops = make([]uint8, len(t.bytes))
	if err := o.pass(ctx, t, o.m.router(o.s, ports)); err != nil {
		return nil, err
	}
	for _, others := range o.concurrentRoutes() {
		if err := o.pass(ctx, t, others); err != nil {
			return nil, err
		}
	}
	_, kind := o.parts(moved(op), m)
	f := &folding{t: t, m: m, size: moved(op), took: r.Time}
	if r.Limit.Where != "" {
		f.limit(kind)
	}
	return append(f.hosts(), f.network()...), nil
}

// pass counts what all participants send over the routes of one group of ranks.
func (o *Outline) pass(ctx context.Context, t *passing, w *router) error {
	chunk := o.chunk()
	direct := len(o.s.Switches) == 0 &&
		!slices.ContainsFunc(o.s.Stages(), func(st schedule.Stage) bool { return st.Pacing != schedule.AtOnce })
	many := direct && o.s.Ranks > mostDirect
	sample := min(sampled, max(8, mostAsked/8/(o.s.Nodes()*o.s.Lanes)))
	var list []schedule.Flow
	for p := range o.s.Nodes() {
		if p%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for lane := range o.s.Lanes {
			switch {
			case many:
				list = o.strided(list[:0], p, lane, sample)
			case direct: // another peer with every message: nothing to add up
				list = o.strided(list[:0], p, lane, math.MaxInt32)
			default:
				list = o.s.AppendFlows(list[:0], p, lane)
			}
			for _, f := range list {
				path, ok := w.find(p, f.Peer, o.s.Channel(lane))
				if !ok {
					return o.m.noRoute(p, f.Peer)
				}
				t.addBytes(path, int64(p*o.s.Lanes+lane)+1, float64(f.Chunks)*chunk)
			}
		}
	}
	if many {
		t.level()
	}
	return nil
}

// addBytes counts bytes of a lane over a route.
func (t *passing) addBytes(w route, lane int64, bytes float64) {
	for _, id := range w.resources {
		if id < t.m.net.first {
			t.bytes[id] += bytes
			t.hops[id] |= 1 << w.hop
			continue
		}
		c := t.net[id]
		if c == nil {
			c = &cell{}
			t.net[id] = c
		}
		c.bytes += bytes
		if c.lastLane != lane {
			c.lastLane = lane
			c.flows++
		}
		c.hops |= 1 << w.hop
	}
}

// level gives hosts of a type with as many ranks the mean of them all: where
// everybody talks to everybody and only some messages are asked for, what differs
// between equal hosts is chance.
func (t *passing) level() {
	type alike struct{ typ, ranks int32 }
	type sum struct {
		bytes []float64
		hops  []uint8
		hosts float64
	}
	sums := map[alike]*sum{}
	hosts := func(f func(s *sum, bytes []float64, hops []uint8)) {
		for h := range t.m.c.Hosts {
			lo, hi := t.m.base[h], t.m.base[h+1]
			if lo == hi {
				continue
			}
			k := alike{int32(t.m.c.Hosts[h].Type), t.m.on[h]}
			if sums[k] == nil {
				sums[k] = &sum{bytes: make([]float64, hi-lo), hops: make([]uint8, hi-lo)}
			}
			f(sums[k], t.bytes[lo:hi], t.hops[lo:hi])
		}
	}
	hosts(func(s *sum, bytes []float64, hops []uint8) {
		s.hosts++
		for i := range bytes {
			s.bytes[i] += bytes[i]
			s.hops[i] |= hops[i]
		}
	})
	hosts(func(s *sum, bytes []float64, hops []uint8) {
		for i := range bytes {
			bytes[i], hops[i] = s.bytes[i]/s.hosts, s.hops[i]
		}
	})
}

// busy is how busy one resource is, in numbers that equal resources have in common.
type busy struct {
	kind  Kind
	rate  unit.Rate
	bytes int64
	share int32 // in parts of 10,000
	cab   int32
	tight bool
}

// weigh tells how busy a resource is.
func (f *folding) weigh(id int64, bytes, flows float64, hops uint8) (busy, float64) {
	mc := f.t.m
	x := mc.describe(id)
	k := x.kind.under(hops)
	l := mc.load(id, x, bytes, flows)
	t := f.m.seconds(k, &l, f.size)
	b := busy{kind: k, rate: l.rate, bytes: evenly(bytes * f.size * f.m.Wire.factor()), cab: int32(l.cables)}
	if f.took > 0 {
		b.share = int32(evenly(1e4 * min(1, t*second/float64(f.took))))
	}
	b.tight = f.slowest > 0 && k == f.kind && t >= f.slowest*(1-1e-9)
	return b, t
}

// evenly rounds so that sums of the same in another order come out the same.
func evenly(x float64) int64 { return int64(math.Floor(x*(1+1e-9) + 0.5)) }

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
	var names [][]string
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
			names = append(names, nil)
		}
		names[i] = append(names[i], mc.c.Hosts[h].Name)
	}
	for i := range list {
		list[i].Hosts = cluster.FormatHosts(names[i])
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
				Kind: u.kind.limit(), Rate: u.rate, Bytes: unit.Bytes(u.bytes), Share: float64(u.share) / 1e4,
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
	case local < links+6*nics:
		name := n.t.Devices[n.nicOf(local)].Name
		if (local-links)%2 == 1 {
			return "network→" + name
		}
		return name + "→network"
	}
	return n.t.Devices[local-links-6*nics].Name
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
