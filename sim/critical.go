package sim

import "busbar/schedule"

// Weights by which the longest chain is found before figures are known: a hop
// over a network counts like several inside a node.
var nominal = [nHops]float64{OverNVLink: 1, OverPCIe: 1.5, OverHost: 2, OverNet: 6, OverSwitch: 2}

// front is the longest chain of messages up to some point.
type front struct {
	far   float64
	hops  [nHops]float64
	wire  float64
	depth int // messages of the longest chain by their number
}

// join takes the later of two.
func (f *front) join(g front) {
	depth := max(f.depth, g.depth)
	if g.far > f.far {
		*f = g
	}
	f.depth = depth
}

// sent is a message of a round.
type sent struct {
	from, to, lane int
	bytes          float64
}

// critical visits every op once and finds the longest chain of messages, which is
// the latency when bytes take no time, and the rounds: messages that as many others
// must come before.
func (o *Outline) critical(w *ways) (last front, rounds [][]sent, err error) {
	s := o.s
	type laneAt struct {
		pc   int
		at   front
		past []front
	}
	lanes := make([]laneAt, s.Nodes()*s.Lanes)
	queues := map[uint64][]front{}
	key := func(from, to, ln int) uint64 { return uint64(from)<<38 | uint64(to)<<12 | uint64(ln) }
	var ready []int
	for i := range lanes {
		ready = append(ready, i)
	}
	chunk := o.chunk()
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		l, who, ln := &lanes[i], i/s.Lanes, i%s.Lanes
		for n := s.Len(who, ln); l.pc < n; l.pc++ {
			op := s.At(who, ln, l.pc)
			if c := int(op.After.Count); c > 0 {
				other := &lanes[who*s.Lanes+int(op.After.Lane)]
				if other.pc < c {
					break
				}
				l.at.join(other.past[c-1])
			}
			if op.Verb == schedule.Send {
				way, ok := w.find(who, int(op.Peer), s.Channel(ln))
				if !ok {
					return last, nil, o.m.noWay(who, int(op.Peer))
				}
				f := l.at
				for f.depth >= len(rounds) {
					rounds = append(rounds, nil)
				}
				rounds[f.depth] = append(rounds[f.depth], sent{who, int(op.Peer), ln, float64(op.Len()) * chunk})
				f.depth++
				f.far += nominal[way.hop]
				f.hops[way.hop]++
				f.wire += float64(way.wires)
				k := key(who, int(op.Peer), ln)
				queues[k] = append(queues[k], f)
				ready = append(ready, int(op.Peer)*s.Lanes+ln)
			} else if op.Verb.Receives() {
				k := key(int(op.Peer), who, ln)
				q := queues[k]
				if len(q) == 0 {
					break
				}
				l.at.join(q[0])
				queues[k] = q[1:]
			}
			if s.Lanes > s.Channels {
				l.past = append(l.past, l.at)
				for k := who * s.Lanes; k < (who+1)*s.Lanes; k++ {
					if k != i {
						ready = append(ready, k)
					}
				}
			}
		}
		last.join(l.at)
	}
	return last, rounds, nil
}
