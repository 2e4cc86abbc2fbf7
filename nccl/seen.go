package nccl

import (
	"encoding/binary"
	"math"
)

// seen remembers what came of the states of a round between two channels. Channels in another
// order leave the same bandwidth on the same links, and what follows is then the same: as many steps
// of the budget, as many channels, as many hops. NCCL searches it all again.
type seen struct {
	on     bool
	states map[string]searchOutcome
	links  []*topoLink
	key    []byte

	deepest int // channels that were reached since the state at hand
	hops    int // fewest of a graph of so many channels
}

// searchOutcome is what came of a state without a better graph.
type searchOutcome struct {
	steps   int
	deepest int
	hops    int // on top of the state's own
}

// forget forgets the round before. Only searches without an order to repeat have many states, and
// heads look at all channels before them.
func (x *searcher) forget() {
	g, s := &x.cur, &x.seen
	s.on = x.s.PairedRings && !g.SameChannels && g.Pattern != NVLSPattern && g.Pattern != DirectPattern && !x.s.everySpeed
	clear(s.states)
	s.deepest, s.hops = 0, 0
	if s.on && s.states == nil {
		s.states = map[string]searchOutcome{}
		for _, list := range x.s.nodes {
			for _, n := range list {
				s.links = append(s.links, n.links...)
			}
		}
	}
}

// state is all that channels to come depend on, as text.
func (x *searcher) state() []byte {
	g, s := &x.cur, &x.seen
	b := append(s.key[:0], byte(g.NChannels))
	for _, l := range s.links {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(l.bw))
	}
	for _, n := range x.s.nodes[kindNET] {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n.net.bw))
	}
	last := g.NChannels - 1
	b = append(b, byte(g.inter[2*last]), byte(g.inter[2*last+1]))
	if !x.s.inter || !x.s.NearStart { // where a channel may repeat the order of the one before
		for _, r := range g.intra[last*x.ngpus : (last+1)*x.ngpus] {
			b = append(b, byte(r))
		}
	}
	s.key = b
	return b
}

// reach notes a graph of so many channels.
func (s *seen) reach(channels, hops int) {
	if channels > s.deepest || channels == s.deepest && hops < s.hops {
		s.deepest, s.hops = channels, hops
	}
}

// further goes on to the next channel, or takes what came of the same state before.
func (x *searcher) further(time *int) {
	g, s := &x.cur, &x.seen
	if !s.on || *time <= 0 {
		x.channel(time)
		return
	}
	key := x.state()
	if q, ok := s.states[string(key)]; ok && x.noBetter(q) {
		*time = max(0, *time-q.steps)
		s.reach(q.deepest, g.hops+q.hops)
		return
	}
	name := string(key)
	deepest, hops, before, found := s.deepest, s.hops, *time, x.found
	s.deepest, s.hops = g.NChannels, g.hops
	x.channel(time)
	if *time > 0 && x.found == found {
		s.states[name] = searchOutcome{before - *time, s.deepest, s.hops - g.hops}
	}
	s.reach(deepest, hops)
}

// noBetter reports that what follows a state cannot beat the best graph.
func (x *searcher) noBetter(q searchOutcome) bool {
	g, b := &x.cur, &x.best
	if q.deepest < g.least {
		return true
	}
	mine, best := float32(q.deepest)*g.BwIntra, float32(b.NChannels)*b.BwIntra
	if mine != best {
		return mine < best
	}
	return g.Pattern != b.Pattern || g.CrossNIC != b.CrossNIC || g.hops+q.hops >= b.hops
}
