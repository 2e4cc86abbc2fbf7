package sim

import (
	"fmt"

	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// maxMessages bounds the schedules that are reduced round by round.
const maxMessages = 1 << 23

// steps reduces a schedule whose rounds differ, round by round.
func (o *Outline) steps(w *router, all *byteCount) ([]stage, error) {
	s := o.s
	messages := 0
	for p := range s.Nodes() {
		for lane := range s.Lanes {
			if messages += s.Len(p, lane); messages > maxMessages {
				return nil, fmt.Errorf("%s over %d ranks has more than %d messages; its rounds differ and cannot be counted at "+
					"once", s.Name, s.Ranks, maxMessages)
			}
		}
	}
	longest, rounds, err := o.critical(w)
	if err != nil {
		return nil, err
	}
	beside := o.concurrentRoutes()
	stages := make([]stage, 0, len(rounds))
	for _, round := range rounds {
		t := o.m.spare.takeCount(o.m)
		x := stage{pacing: schedule.Stepped, pieces: 1, parity: [2]bool{true, true}}
		sending := map[int64]float64{}
		for _, m := range round {
			path, ok := w.find(m.from, m.to, s.Channel(m.lane))
			if !ok {
				return nil, o.m.noRoute(m.from, m.to)
			}
			if path.net != "" {
				o.net = path.net
			}
			t.lane0 = int64(m.from*s.Lanes+m.lane) + 1
			t.addBytes(m.from, path, m.bytes, 1, 1)
			sending[t.lane0] += m.bytes
			t.lane(sending[t.lane0], 1)
			x.message = max(x.message, m.bytes)
			for k, others := range beside {
				if path, ok := others.find(m.from, m.to, s.Channel(m.lane)); ok {
					who := m.from + (k+1)*s.Nodes()
					t.lane0 = int64(who*s.Lanes+m.lane) + 1
					t.addBytes(who, path, m.bytes, 1, 1)
				}
			}
		}
		x.idle = len(sending) < s.Ranks*s.Lanes
		x.loads = t.worst()
		all.merge(t)
		o.m.spare.give(t)
		stages = append(stages, x)
	}
	// The latency of the longest chain, in equal parts.
	n := float64(max(len(stages), 1))
	for i := range stages {
		for h := range longest.hops {
			stages[i].chain[h] = longest.hops[h] / n
		}
		stages[i].wires = unit.Time(longest.wire / n)
	}
	return stages, nil
}
