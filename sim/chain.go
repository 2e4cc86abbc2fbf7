package sim

import (
	"math"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// mostEdges is how many edges of a ring are looked at one by one.
const mostEdges = 16384

// chain adds up the latencies of the longest chain, of the first channels; they
// differ little.
func (o *Outline) chain(w *router, st *schedule.Stage, x *stage) error {
	if st.Pacing == schedule.AtOnce {
		return o.farthest(w, st, x)
	}
	best := -1.0
	for channel := range min(o.s.Channels, 2) {
		c, err := o.longest(w, st, channel)
		if err != nil {
			return err
		}
		if c.far > best {
			best, x.chain, x.moves, x.wires, x.uneven = c.far, c.hops, c.moves, unit.Time(c.wires), c.uneven
		}
	}
	if st.Pacing == schedule.Piped {
		o.countMeeting(w, st, x)
	}
	return nil
}

// chain is the longest chain of a channel.
type chain struct {
	hops, moves, uneven [nHops]float64 // as those of a stage
	wires               float64
	far                 float64 // how long it is, by and large
}

// chainKey is what the chain of a ring depends on: not on how many other channels there are.
type chainKey struct {
	order   *schedule.Order
	kind    coll.Kind
	ports   Ports
	channel int
}

// longest is the longest chain of a channel.
func (o *Outline) longest(w *router, st *schedule.Stage, channel int) (chain, error) {
	key := chainKey{st.Order(channel), o.s.Kind, w.ports, channel}
	if c, ok := w.chains[key]; ok && key.order != nil {
		return c, nil
	}
	// Of a ring's many edges some stand for all: every k-th, and k is odd, or they would all be those between nodes.
	if o.s.Ranks > mostEdges {
		st.Every = o.s.Ranks/mostEdges | 1
	}
	var c chain
	var edges []Hop
	var err error
	st.Chain(channel, 0, func(from, to int, times, behind float64) {
		hop, late, ok := w.way(from, to, channel)
		if !ok {
			err = o.m.noRoute(from, to)
			return
		}
		c.hops[hop] += times
		edges = append(edges, hop)
		c.moves[hop] += times + behind
		c.wires += float64(late) * times
	})
	if err != nil {
		return c, err
	}
	h := &c.hops
	c.far = 10*h[OverNet] + h[OverNVLink] + 2*h[OverPCIe] + 2*h[OverHost] + 2*h[OverFar]
	c.uneven = uneven(st.Pacing, c.hops, edges)
	if key.order != nil {
		w.chains[key] = c
	}
	return c, nil
}

// uneven is what the block meets that leaves out the shortest edges of a ring, beyond
// the mean of all blocks: one edge, or two neighbours where it goes round twice.
func uneven(r schedule.Pacing, hops [nHops]float64, edges []Hop) [nHops]float64 {
	sum, n := 0.0, len(edges)
	for _, x := range hops {
		sum += x
	}
	if r != schedule.Even || n < 2 || sum == 0 {
		return [nHops]float64{}
	}
	passes := math.Round(sum / float64(n-1))
	least, at := math.Inf(1), 0
	for i, h := range edges {
		far := nominal[h]
		if passes > 1 {
			far += nominal[edges[(i+1)%n]]
		}
		if far < least {
			least, at = far, i
		}
	}
	for h := range hops {
		hops[h] *= passes / sum
	}
	for k := range int(min(passes, 2)) {
		hops[edges[(at+k)%n]]--
	}
	return hops
}

// countMeeting counts the channels that use the same resource at the same depth of their
// chains: where they begin at different GPUs they pass each other by.
func (o *Outline) countMeeting(w *router, st *schedule.Stage, x *stage) {
	const deep = 256
	st.Links = deep // each is one message or more
	var first []route
	var users [][]float64 // of the resources of each route
	for channel := range o.s.Channels {
		for k := range st.Copies() {
			depth := 0
			st.Chain(channel, k, func(from, to int, times, _ float64) {
				if times == 0 || depth >= deep {
					return
				}
				depth++
				path, _ := w.find(from, to, channel)
				if channel == 0 && k == 0 {
					path.resources = slices.Clone(path.resources)
					first, users = append(first, path), append(users, make([]float64, len(path.resources)))
				}
				if depth > len(first) {
					return
				}
				for _, id := range path.resources {
					for i, other := range first[depth-1].resources {
						if id == other {
							users[depth-1][i]++
						}
					}
				}
			})
		}
	}
	var counted [nKinds]float64
	for i, path := range first {
		for j, id := range path.resources {
			k := o.m.describe(id).kind.under(1 << path.hop)
			x.meet[k] += users[i][j]
			counted[k]++
		}
	}
	for k := range counted {
		x.meet[k] /= max(1, counted[k])
	}
}

// farthest is the chain of a stage whose messages wait for nothing: its slowest one.
func (o *Outline) farthest(w *router, st *schedule.Stage, x *stage) error {
	var list []schedule.Flow
	for lane := range max(1, o.s.Lanes/o.s.Channels) {
		if o.s.Ranks > o.m.large() && o.direct() {
			list = o.strided(list, 0, lane, sampled)
			continue
		}
		list, _ = st.AppendFlows(list, 0, lane)
	}
	for _, f := range list {
		path, ok := w.find(0, f.Peer, 0)
		if !ok {
			return o.m.noRoute(0, f.Peer)
		}
		if path.hop == OverSwitch { // there and back
			x.only(OverSwitch)
			return nil
		}
		if x.chain[path.hop] == 0 && (path.hop == OverNet || x.rounds() == 0) {
			x.only(path.hop)
		}
		x.wires = max(x.wires, path.wires)
	}
	for h := range x.chain {
		x.chain[h] *= float64(st.Rounds)
	}
	x.wires *= unit.Time(st.Rounds)
	return nil
}

// only makes one message of a kind the whole chain.
func (s *stage) only(h Hop) {
	s.chain, s.moves = [nHops]float64{}, [nHops]float64{}
	s.chain[h], s.moves[h] = 1, 1
}
