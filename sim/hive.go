package sim

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// hive is the way between two GPUs over AMD's links and GPUs between them, nil where there is none. Their hardware
// passes on what is for another GPU, so that two without a link of their own do not go through the host (MI250X:
// Pearson, arXiv 2302.14827; Schieffer et al., arXiv 2410.00801). Of ways with equally many links the widest is taken.
func (n *node) hive(a, b int) []cluster.Leg {
	type way struct {
		rate unit.Rate // of its narrowest link
		legs []cluster.Leg
	}
	ways := map[int]way{a: {rate: 1 << 62}}
	for reached := map[int]bool{a: true}; len(ways) > 0; {
		if w, ok := ways[b]; ok {
			return w.legs
		}
		next := map[int]way{}
		for i, l := range n.t.Links {
			if l.Kind != cluster.XGMI {
				continue
			}
			for _, forward := range []bool{true, false} {
				from, to := l.A, l.B
				if !forward {
					from, to = to, from
				}
				w, ok := ways[from]
				if rate := min(w.rate, l.Rate.Value); ok && (forward || !l.OneWay) && !reached[to] && rate > next[to].rate {
					next[to] = way{rate, append(w.legs[:len(w.legs):len(w.legs)], cluster.Leg{Link: i, Forward: forward})}
				}
			}
		}
		for to := range next {
			reached[to] = true
		}
		ways = next
	}
	return nil
}
