package sim

import "busbar.dev/schedule"

// Weights by which the longest chain is found before figures are known: a hop
// over a network counts like several inside a node.
var nominal = [nHops]float64{OverNVLink: 1, OverPCIe: 1.5, OverHost: 2, OverFar: 2, OverNet: 6, OverSwitch: 2}

// front is the longest chain of messages up to some point.
type front struct {
	far   float64
	hops  [nHops]float64
	wire  float64
	depth int // messages of the longest chain by their number
}

// join takes the later of two.
func (f front) join(g front) front {
	depth := max(f.depth, g.depth)
	if g.far > f.far {
		f = g
	}
	f.depth = depth
	return f
}

// sent is a message of a round.
type sent struct {
	from, to, lane int
	bytes          float64
}

// critical finds the longest chain of messages, which is the latency when bytes take
// no time, and the rounds: messages that as many others must come before.
func (o *Outline) critical(w *router) (last front, rounds [][]sent, err error) {
	chunk := o.chunk()
	last, _, err = schedule.Chains(o.s, front.join, func(f front, from, lane int, op schedule.Op) (front, error) {
		path, ok := w.find(from, int(op.Peer), o.s.Channel(lane))
		if !ok {
			return f, o.m.noRoute(from, int(op.Peer))
		}
		for f.depth >= len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[f.depth] = append(rounds[f.depth], sent{from, int(op.Peer), lane, float64(op.Len()) * chunk})
		f.depth++
		f.far += nominal[path.hop]
		f.hops[path.hop]++
		f.wire += float64(path.wires)
		return f, nil
	})
	return last, rounds, err
}
