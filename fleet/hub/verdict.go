package hub

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/fleet"
	"busbar.dev/unit"
)

// A pair is slow below tooSlow of the rate that the fleet typically shows, or above tooLate times its latency. That is
// less strict than what sweeps find over time: one short measurement scatters.
const (
	tooSlow = 0.6
	tooLate = 10
)

// standsOut begins what one sweep shows and chance may have done. Whether the node is unhealthy is said by findings,
// which compare sweeps; a check before a job has no time for that, and measures twice instead.
const standsOut = "stands out in this sweep: "

// mostSlowPairs is how many pairs the notes of a verdict name.
const mostSlowPairs = 16

// Verdict is that of an order's last sweep.
func (h *Hub) Verdict(id string) (*fleet.Verdict, error) {
	s, ok := h.view.Order(id, h.cfg.Now())
	if !ok {
		return nil, errUnknown
	}
	v := &fleet.Verdict{Healthy: []fleet.Name{}, Unhealthy: []fleet.Out{}, By: s.Over.Text()}
	note := func(format string, a ...any) { v.Notes = append(v.Notes, fmt.Sprintf(format, a...)) }
	if s.OverWhy != "" {
		note("%s", s.OverWhy)
	}
	bad, busy := map[fleet.Name]string{}, map[fleet.Name]bool{}
	for _, o := range s.Out {
		if o.Busy || o.Lacks {
			busy[o.Node] = busy[o.Node] || o.Busy
			note("%s: %s", o.Node, o.Why)
			continue
		}
		bad[o.Node] = o.Why
	}
	for _, f := range h.view.Findings() {
		if drains(f) {
			bad[fleet.Name(f.Nodes[0])] = cmp.Or(bad[fleet.Name(f.Nodes[0])], f.Text)
		}
	}
	names := h.view.asked(&s.Order)
	measured := func(fleet.Name) bool { return s.Measured > 0 }
	if s.What.Measure == fleet.MeasurePairs {
		measured = judgePairs(h.view.sweepPairs(s.ID), note, func(o fleet.Out) {
			if s.Job == "" {
				note("%s%s: %s", standsOut, o.Node, o.Why)
			} else {
				bad[o.Node] = cmp.Or(bad[o.Node], o.Why)
			}
		})
	} else if s.Measured == 0 && s.State != fleet.Running {
		note("the collective did not complete: %s", s.Why)
	}
	for _, n := range names {
		switch {
		case bad[n] != "":
			v.Unhealthy = append(v.Unhealthy, fleet.Out{Node: n, Why: bad[n]})
		case busy[n]:
		case measured(n):
			v.Healthy = append(v.Healthy, n)
		default:
			v.Unmeasured = append(v.Unmeasured, n)
		}
	}
	return v, nil
}

// judgePairs tells whom to blame, and of slow pairs that nobody is to blame for. It returns of whom the pairs say
// something.
func judgePairs(list []judgedPair, note func(string, ...any), bad func(fleet.Out)) func(fleet.Name) bool {
	for _, o := range blame(list) {
		bad(o)
	}
	with, unsure := partners(list), map[fleet.Name]bool{}
	list = slices.DeleteFunc(list, func(p judgedPair) bool { return p.slow == "" })
	slices.SortFunc(list, func(x, y judgedPair) int { return cmp.Or(byNumber(x.a, y.a), byNumber(x.b, y.b)) })
	for i, p := range list {
		// Of two that are slow with each other either may be at fault, and either may say so on purpose.
		why := p.slow
		for _, n := range []fleet.Name{p.a, p.b} {
			if with[n] < witnesses {
				unsure[n] = true
				why = p.slow + "; a third node is needed to tell which is at fault"
			}
		}
		if i < mostSlowPairs {
			note("%s and %s: %s", p.a, p.b, why)
		}
	}
	return func(n fleet.Name) bool { return with[n] > 0 && !unsure[n] }
}

// judgedPair is a pair that was measured, and what is slow about it, where something is.
type judgedPair struct {
	a, b fleet.Name
	slow string
}

// partners counts with how many others each node was measured.
func partners(list []judgedPair) map[fleet.Name]int {
	with := map[fleet.Name]int{}
	for _, p := range list {
		with[p.a]++
		with[p.b]++
	}
	return with
}

// blame is of nodes that are slow with several others and with most, those with the largest share first: one partner in
// the wrong hands can say anything of its own pairs. Who is slow with those alone is not slow: their pairs are cleared.
func blame(list []judgedPair) (bad []fleet.Out) {
	with := partners(list)
	for {
		slow, why := map[fleet.Name]int{}, map[fleet.Name]string{}
		for _, p := range list {
			for _, n := range []fleet.Name{p.a, p.b} {
				if p.slow != "" {
					slow[n]++
					why[n] = max(why[n], p.slow)
				}
			}
		}
		worst, most := map[fleet.Name]bool{}, 0.5
		for n, count := range slow {
			share := float64(count) / float64(with[n])
			if count >= witnesses && share > most {
				clear(worst)
				most = share
			}
			if count >= witnesses && share == most && share > 0.5 {
				worst[n] = true
			}
		}
		if len(worst) == 0 {
			return bad
		}
		for _, n := range sortedNames(worst) {
			bad = append(bad, fleet.Out{Node: n, Why: fmt.Sprintf("slow with %d of %d nodes: %s", slow[n], with[n], why[n])})
		}
		for i, p := range list {
			if worst[p.a] || worst[p.b] {
				list[i].slow = ""
			}
		}
	}
}

// typical is what the fleet's pairs show.
type typical struct{ rate, latency float64 }

// slow says what is slow about a direction of a pair, or nothing.
func (t typical) slow(c cell) string {
	rate, latency := float64(c.rate), float64(c.latency)
	switch {
	case rate > 0 && rate < tooSlow*t.rate:
		return fmt.Sprintf("%v, where %v is typical of the fleet", unit.Rate(rate), unit.Rate(t.rate))
	case t.latency > 0 && latency > tooLate*t.latency:
		return fmt.Sprintf("a latency of %v, where %v is typical of the fleet", unit.Seconds(latency),
			unit.Seconds(t.latency))
	}
	return ""
}
