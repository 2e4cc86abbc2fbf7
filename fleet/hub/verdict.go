package hub

import (
	"fmt"
	"slices"

	"busbar/fleet"
	"busbar/pairs"
	"busbar/unit"
)

// Verdict is what a sweep says about its nodes: whom a job may use.
type Verdict struct {
	// Who was busy is neither: a job's traffic is no fault, and no proof.
	Good []fleet.Name `json:"good"`
	Bad  []fleet.Out  `json:"bad"`
	// Notes are what is worth knowing and no node's fault alone.
	Notes []string `json:"notes,omitempty"`
}

// tooSlow is the share of what the fleet usually shows below which a node is bad. It is lower than
// what sweeps find over time: one short measurement scatters.
const tooSlow = 0.6

// Verdict is that of an order's last sweep.
func (h *Hub) Verdict(id string) (*Verdict, error) {
	s, ok := h.view.Order(id, h.cfg.Now())
	if !ok {
		return nil, ErrUnknown
	}
	names := slices.Clone(s.Nodes)
	if names == nil {
		names = h.view.present()
	}
	slices.SortFunc(names, byNumber)
	bad := map[fleet.Name]string{}
	blame := func(n fleet.Name, why string) {
		if bad[n] == "" {
			bad[n] = why
		}
	}
	v := &Verdict{Good: []fleet.Name{}, Bad: []fleet.Out{}}
	busy := map[fleet.Name]bool{}
	for _, o := range s.Out {
		if o.Busy {
			busy[o.Node] = true
			v.Notes = append(v.Notes, fmt.Sprintf("%s: %s", o.Node, o.Why))
			continue
		}
		blame(o.Node, o.Why)
	}
	for _, f := range h.view.Findings() {
		if f.Cleared.IsZero() && drains(f.Finding) {
			blame(fleet.Name(f.Nodes[0]), f.Text)
		}
	}
	if s.What.Measure == fleet.MeasurePairs {
		known := map[fleet.Name]bool{}
		for n := range bad {
			known[n] = true
		}
		h.judge(s, names, busy, known, blame, v)
	} else if s.Good == 0 {
		v.Notes = append(v.Notes, "the collective did not come to an end: "+s.Why)
	}
	for _, n := range names {
		if why := bad[n]; why != "" {
			v.Bad = append(v.Bad, fleet.Out{Node: n, Why: why})
		} else if !busy[n] {
			v.Good = append(v.Good, n)
		}
	}
	return v, nil
}

// judge looks at the pairs of the sweep.
func (h *Hub) judge(s OrderState, names []fleet.Name, busy, bad map[fleet.Name]bool, blame func(fleet.Name, string), v *Verdict) {
	t, usual := h.view.table(s.ID, s.Sweep, names)
	best := make([]unit.Rate, len(names))
	for _, m := range t.Cells {
		best[m.From] = max(best[m.From], m.Rate)
		best[m.To] = max(best[m.To], m.Rate)
	}
	// Where nobody was measured at all, it is not known whose fault that is.
	some := slices.ContainsFunc(best, func(r unit.Rate) bool { return r > 0 })
	for i, n := range names {
		switch {
		case best[i] == 0 && !some && !busy[n] && !bad[n]:
			v.Notes = append(v.Notes, fmt.Sprintf("%s had nobody to be measured with", n))
		case best[i] == 0 && some && s.Final() && !busy[n]:
			blame(n, "could not be measured with anybody")
		case best[i] > 0 && float64(best[i]) < tooSlow*float64(usual):
			blame(n, fmt.Sprintf("at best %v, and the fleet usually shows %v", best[i], usual))
		}
	}
	for _, f := range t.Findings() {
		switch {
		case f.Severity == pairs.Note:
		case len(f.Who) == 1 && (s.Job == "" || certain(f)):
			blame(names[f.Who[0]], f.Text)
		default:
			v.Notes = append(v.Notes, f.Text)
		}
	}
}

// certain tells what one brief measurement can show of a node from what may be chance.
func certain(f pairs.Finding) bool {
	return f.Severity == pairs.Error || f.What != "latency" && f.Factor <= tooSlow
}
