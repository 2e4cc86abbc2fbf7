package hub

import (
	"fmt"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// tooSlow is the share of what the fleet usually shows below which a node is bad. It is lower than
// what sweeps find over time: one short measurement scatters.
const tooSlow = 0.6

// standsOut begins what one sweep shows and chance may have done. Whether the node is unhealthy is said by findings,
// which compare sweeps; a check before a job has no time for that, and measures twice instead.
const standsOut = "stands out in this sweep: "

// Verdict is that of an order's last sweep.
func (h *Hub) Verdict(id string) (*fleet.Verdict, error) {
	s, ok := h.view.Order(id, h.cfg.Now())
	if !ok {
		return nil, ErrUnknown
	}
	names := h.view.asked(&s.Order)
	bad := map[fleet.Name]string{}
	blame := func(n fleet.Name, why string) {
		if bad[n] == "" {
			bad[n] = why
		}
	}
	v := &fleet.Verdict{Healthy: []fleet.Name{}, Unhealthy: []fleet.Out{}, By: s.Over.Text()}
	if s.OverWhy != "" {
		v.Notes = append(v.Notes, s.OverWhy)
	}
	busy := map[fleet.Name]bool{}
	for _, o := range s.Out {
		if o.Busy || o.Lacks {
			busy[o.Node] = busy[o.Node] || o.Busy
			v.Notes = append(v.Notes, fmt.Sprintf("%s: %s", o.Node, o.Why))
			continue
		}
		blame(o.Node, o.Why)
	}
	for _, f := range h.view.Findings() {
		if f.Cleared.IsZero() && drains(f) {
			blame(fleet.Name(f.Nodes[0]), f.Text)
		}
	}
	measured := func(fleet.Name) bool { return s.Measured > 0 }
	if s.What.Measure == fleet.MeasurePairs {
		measured = h.judge(s, names, busy, blame, v)
	} else if s.Measured == 0 && s.State != fleet.Running {
		v.Notes = append(v.Notes, "the collective did not complete: "+s.Why)
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

// judge looks at the pairs of the sweep, and returns of whom it says something.
func (h *Hub) judge(s fleet.OrderState, names []fleet.Name, busy map[fleet.Name]bool, blame func(fleet.Name, string),
	v *fleet.Verdict,
) func(fleet.Name) bool {
	t, mid, usual := h.view.table(s.ID, s.Sweep, names)
	best := make([]unit.Rate, len(names))
	seen := map[fleet.Name]bool{}
	with := make([]map[int]bool, len(names))
	for i := range with {
		with[i] = map[int]bool{}
	}
	for _, m := range t.Cells {
		with[m.From][m.To], with[m.To][m.From] = true, true
		best[m.From] = max(best[m.From], m.Rate)
		best[m.To] = max(best[m.To], m.Rate)
		seen[names[m.From]], seen[names[m.To]] = true, true
	}
	// Where nobody was measured at all, it is not known whose fault that is; nor where a sweep was cut short, or
	// one round left somebody without a partner.
	asked := len(names) - len(s.Out)
	out := map[fleet.Name]bool{}
	for _, o := range s.Out {
		out[o.Node] = true
	}
	unsure := map[fleet.Name]bool{}
	whole := len(seen) > 0 && s.State != fleet.Running && s.State != fleet.Cancelled && (s.Rounds != 1 || asked%2 == 0)
	failed := h.view.failures(s.ID, s.Sweep, func(p fleet.Name) bool { return seen[p] })
	for i, n := range names {
		switch {
		case !seen[n] && whole && !busy[n]:
			if tried := failed[n]; tried >= witnesses {
				blame(n, fmt.Sprintf("could not be reached: not measured with any of %d nodes that others were measured with",
					tried))
			} else if !out[n] {
				v.Notes = append(v.Notes, fmt.Sprintf("%s: not measured; which node is at fault is unknown", n))
			}
		case best[i] > 0 && float64(best[i]) < tooSlow*float64(usual) && len(with[i]) < witnesses:
			// Of two that are slow with each other either may be at fault, and either may say so on purpose.
			unsure[n] = true
			v.Notes = append(v.Notes, fmt.Sprintf("%s: %v with the only node that it was measured with, where %v is typical "+
				"of the fleet; a third node is needed to tell which is at fault", n, best[i], usual))
		case best[i] > 0 && float64(best[i]) < tooSlow*float64(usual) && s.Job == "":
			v.Notes = append(v.Notes,
				fmt.Sprintf("%s%s: at best %v, where %v is typical of the fleet", standsOut, n, best[i], usual))
		case best[i] > 0 && float64(best[i]) < tooSlow*float64(usual):
			blame(n, fmt.Sprintf("at best %v, where %v is typical of the fleet", best[i], usual))
		}
	}
	for _, f := range t.Findings() {
		switch {
		case f.Severity == finding.Note:
		case s.Job == "":
			v.Notes = append(v.Notes, standsOut+f.Text)
		case len(f.Ranks) == 1 && certain(f) && agreed(t, f, mid):
			blame(names[f.Ranks[0]], f.Text)
		default:
			v.Notes = append(v.Notes, f.Text)
		}
	}
	return func(n fleet.Name) bool { return seen[n] && !unsure[n] }
}

// agreed tells whether a node is slow with most others, and with several, by what the middle of all who measured show:
// one partner in the wrong hands can say anything of its own pairs.
func agreed(t *pairs.Table, f finding.Finding, mid pairs.Measure) bool {
	slow := map[int]bool{} // partners, by whether it is with them
	for _, m := range t.Cells {
		partner := m.To
		switch n := f.Ranks[0]; {
		case m.From == n && f.Kind != pairs.SlowIn:
		case m.To == n && f.Kind != pairs.SlowOut:
			partner = m.From
		default:
			continue
		}
		bad := float64(m.Rate) < tooSlow*float64(mid.Rate)
		switch f.Figure {
		case "latency":
			bad = tooSlow*float64(m.Latency) > float64(mid.Latency)
		case pairs.BothWays:
			bad = float64(m.Both) < tooSlow*float64(mid.Both)
		}
		slow[partner] = slow[partner] || bad
	}
	count := 0
	for _, bad := range slow {
		if bad {
			count++
		}
	}
	return count >= witnesses && 2*count > len(slow)
}

// certain tells what one brief measurement can show of a node from what may be chance.
func certain(f finding.Finding) bool {
	return f.Severity == finding.Error || f.Figure != "latency" && f.Factor <= tooSlow
}
