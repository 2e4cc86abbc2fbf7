package sim

import "busbar/schedule"

// Weights by which the longest chain is found before figures are known: a hop
// over a network counts like several inside a node.
var nominal = [nHops]float64{OverNVLink: 1, OverPCIe: 1.5, OverHost: 2, OverNet: 6, OverSwitch: 2}

// front is the longest chain of messages up to some point.
type front struct {
	far  float64
	hops [nHops]float64
	wire float64
}

// critical finds the longest chain of messages of a schedule whose ops it visits
// once each: what its latency is when bytes take no time.
func (o *Outline) critical(w *ways) (front, error) {
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
	var last front
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
				if f := other.past[c-1]; f.far > l.at.far {
					l.at = f
				}
			}
			if op.Verb == schedule.Send {
				way, ok := w.find(who, int(op.Peer), s.Channel(ln))
				if !ok {
					return last, o.m.noWay(who, int(op.Peer))
				}
				f := l.at
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
				if q[0].far > l.at.far {
					l.at = q[0]
				}
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
		if l.at.far > last.far {
			last = l.at
		}
	}
	return last, nil
}
