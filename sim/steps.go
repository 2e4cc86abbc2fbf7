package sim

import (
	"fmt"

	"busbar/schedule"
	"busbar/unit"
)

// maxMessages bounds the schedules that are reduced round by round.
const maxMessages = 1 << 23

// steps reduces a stage whose rounds differ: what the lanes send k-th is round k.
func (o *Outline) steps(w *ways, st *schedule.Stage, all *tally) ([]stage, error) {
	s := o.s
	messages := 0
	for p := range s.Nodes() {
		for lane := range s.Lanes {
			if messages += s.Len(p, lane); messages > maxMessages {
				return nil, fmt.Errorf("%s over %d ranks has more than %d messages; its rounds differ and cannot be counted at once", s.Name, s.Ranks, maxMessages)
			}
		}
	}
	type sent struct {
		from, to, lane int
		bytes          float64
	}
	var rounds [][]sent
	chunk := o.chunk()
	for p := range s.Nodes() {
		for lane := range s.Lanes {
			k := 0
			for i := range s.Len(p, lane) {
				op := s.At(p, lane, i)
				if op.Verb != schedule.Send {
					continue
				}
				if k == len(rounds) {
					rounds = append(rounds, nil)
				}
				rounds[k] = append(rounds[k], sent{p, int(op.Peer), lane, float64(op.Len()) * chunk})
				k++
			}
		}
	}
	stages := make([]stage, 0, len(rounds))
	for _, round := range rounds {
		t := newTally(o.m)
		x := stage{rhythm: schedule.Stepped, pieces: 1, parity: [2]bool{true, true}}
		for _, m := range round {
			way, ok := w.find(m.from, m.to, s.Channel(m.lane))
			if !ok {
				return nil, o.m.noWay(m.from, m.to)
			}
			if way.net != "" {
				o.net = way.net
			}
			t.lane0 = int64(m.from*s.Lanes+m.lane) + 1
			t.add(m.from, way, m.bytes, 1)
			t.lane(m.bytes, 1)
			x.message = max(x.message, m.bytes)
		}
		x.loads = t.worst()
		all.merge(t)
		stages = append(stages, x)
	}
	return o.spread(w, stages)
}

// spread gives the latency of the longest chain to the rounds, in equal parts.
func (o *Outline) spread(w *ways, stages []stage) ([]stage, error) {
	f, err := o.critical(w)
	if err != nil || len(stages) == 0 {
		return stages, err
	}
	n := float64(len(stages))
	for i := range stages {
		x := &stages[i]
		for h := range f.hops {
			x.chain[h] = f.hops[h] / n
		}
		x.wires = unit.Time(f.wire / n)
	}
	return stages, nil
}
