package check

import (
	"fmt"
	"math"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Pairs are the trials on two ranks from which the figures of the machine come. One
// message against two in a row tells what a message costs from what a call does, and
// data that is stored against data that is added up what adding costs.
func Pairs(nodes, each int) []Trial {
	pair := func(kind coll.Kind, algo string) Trial {
		return Trial{
			Layout: fmt.Sprintf("%dx%d", nodes, each), Nodes: nodes, Each: each, Kind: kind, Word: algo, Algo: algo,
			Params: schedule.Params{Ranks: 2},
		}
	}
	return []Trial{pair(coll.SendRecv, "direct"), pair(coll.AllReduce, "ring"), pair(coll.ReduceScatter, "ring")}
}

// PairSmall is a message that is nearly nothing; PairSizes are those for the costs of a
// byte, from what stays in caches to what does not.
const pairSmall = unit.Bytes(64)

// PairSizes lists them.
func pairSizes() []unit.Bytes {
	return []unit.Bytes{128 * unit.KiB, unit.MiB, 4 * unit.MiB, 16 * unit.MiB, 32 * unit.MiB}
}

// Pair is what a pair of ranks took.
type Pair struct {
	One, Two unit.Time // a small message, two in a row
	// Stored and Summed are, by PairSizes, a message stored and half of one added up.
	Stored, Summed []unit.Time
}

// hop is the latency of a message and what a call costs beside it.
func (p *Pair) hop() (latency, call unit.Time) {
	latency = min(max(p.Two-p.One, p.Two/4), p.One)
	return latency, p.One - latency
}

// cost is the time of a byte where so much memory is in use, between the sizes that
// were measured: part of each size was moved, and the pair used buffers of that size.
func cost(times []unit.Time, part float64, buffers, memory unit.Bytes) float64 {
	sizes := pairSizes()
	var last float64
	for i, t := range times {
		x := t.Seconds() / (float64(sizes[i]) * part)
		at := buffers * sizes[i]
		if i == 0 && memory <= at || memory >= at && i == len(times)-1 {
			return x
		}
		if memory <= at {
			f := math.Log(float64(memory)/float64(buffers*sizes[i-1])) / math.Log(float64(sizes[i])/float64(sizes[i-1]))
			return last + f*(x-last)
		}
		last = x
	}
	return last
}

// Machine is what this machine costs, by pairs of ranks: inside a node over shared
// memory and over sockets, and across nodes.
type Machine struct {
	Cores       int
	Near, Local Pair
	Net         Pair
	HasNet      bool
}

// Model is the predictor for ranks that have so much memory in use together.
func (m *Machine) Model(memory unit.Bytes) *sim.Sockets {
	s := &sim.Sockets{Cores: float64(m.Cores)}
	s.Near.Latency, s.Call = m.Near.hop()
	// Adding reads more than copying: what copying seems to cost beyond it is noise.
	// A pair that exchanges has four buffers, one that adds up in place two.
	s.Near.Reduce = cost(m.Near.Summed, 0.5, 2, memory)
	s.Near.Copy = min(cost(m.Near.Stored, 1, 4, memory), s.Near.Reduce)
	// Both ranks send and receive at once: a byte costs each of them both.
	s.Net.Send = cost(m.Local.Stored, 1, 4, memory) / 2
	s.Net.Copy = s.Net.Send
	s.Net.Reduce = s.Net.Copy + s.Near.Reduce - s.Near.Copy
	s.Net.Latency, _ = m.Local.hop()
	if m.HasNet {
		s.Net.Latency, s.Call = m.Net.hop()
	}
	return s
}

// calibration is the machine's costs as a document has them.
func (m *Machine) calibration() Calibration {
	carrier := func(c sim.Carrier) Carrier {
		return Carrier{c.Latency, c.Send * 1e9, c.Copy * 1e9, c.Reduce * 1e9}
	}
	s := m.Model(16 * unit.MiB)
	return Calibration{Call: s.Call, Memory: carrier(s.Near), Sockets: carrier(s.Net)}
}
