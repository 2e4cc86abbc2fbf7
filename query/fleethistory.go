package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
)

// ofFleet is the word of --mtbf for the fleet's own history.
const ofFleet = "fleet"

// FleetHistory is how often nodes of a fleet failed, and how long they were away.
type FleetHistory struct {
	Nodes    int       `json:"nodes"`
	Since    time.Time `json:"since"`      // the first that is known
	Observed unit.Span `json:"observed_s"` // of all nodes together
	Failures int       `json:"failures"`
	// Between is the mean time between failures of a node: the published figure counts as one more failure in its own time, so that
	// few observations do not promise too much or too little.
	Between unit.Span `json:"mtbf_node_s"`
	Repair  unit.Span `json:"repair_s,omitempty"` // mean of those that are back; 0 where there are none
}

// publishedNode is the GPUs of a node that the published time between failures is taken for.
const publishedNode = 8

// text says where the figure comes from.
func (h *FleetHistory) text() string {
	return fmt.Sprintf("time between interruptions: %d failures of %d nodes in %v of them together, since %s, with the published figure as one more: %v for a node",
		h.Failures, h.Nodes, h.Observed, h.Since.UTC().Format("2006-01-02"), h.Between)
}

// fleetHistory asks the fleet's server which nodes it had, and what was wrong with them.
func (e *Env) fleetHistory(ctx context.Context) (*FleetHistory, error) {
	var nodes fleet.NodesReply
	if err := e.ask(ctx, "GET", "/api/fleet/nodes?brief=1", nil, &nodes); err != nil {
		return nil, err
	}
	var found fleet.FindingsReply
	if err := e.ask(ctx, "GET", "/api/fleet/findings", nil, &found); err != nil {
		return nil, err
	}
	return newFleetHistory(nodes.Nodes, slices.Concat(found.Past, found.Findings), e.now())
}

// outage is a time that a node was away.
type outage struct {
	from, to time.Time
	over     bool
}

// newFleetHistory counts failures: a node with a finding about it alone that is an error and certain, several at a time being one.
func newFleetHistory(nodes []fleet.NodeState, found []finding.Finding, now time.Time) (*FleetHistory, error) {
	h := &FleetHistory{Nodes: len(nodes), Since: now}
	by := map[string][]outage{}
	for i := range found {
		f := &found[i]
		if len(f.Nodes) != 1 || f.Severity < finding.Error || f.Confidence < 0.9 || f.Always || f.Since.IsZero() || f.Since.After(now) {
			continue
		}
		o := outage{f.Since, f.Cleared, true}
		if f.Cleared.IsZero() {
			o.to, o.over = now, false
		}
		by[f.Nodes[0]] = append(by[f.Nodes[0]], o)
	}
	var away unit.Span
	back := 0
	for i := range nodes {
		n := &nodes[i]
		from := now
		if !n.Joined.IsZero() && n.Joined.Before(now) {
			from = n.Joined
		}
		list := merged(by[string(n.Name)])
		for _, o := range list {
			if o.from.Before(from) {
				from = o.from // it joined again since
			}
			if o.over {
				away += unit.Span(o.to.Sub(o.from).Seconds())
				back++
			}
		}
		h.Failures += len(list)
		h.Observed += unit.Span(now.Sub(from).Seconds())
		if from.Before(h.Since) {
			h.Since = from
		}
	}
	if h.Nodes == 0 || h.Observed <= 0 {
		return nil, fmt.Errorf("--mtbf fleet: the server knows no nodes yet; give --mtbf TIME")
	}
	prior := campaign.MTBF().Value / publishedNode
	h.Between = (h.Observed + prior) / unit.Span(h.Failures+1)
	if back > 0 {
		h.Repair = away / unit.Span(back)
	}
	return h, nil
}

// merged are outages with those that touch made one.
func merged(list []outage) []outage {
	slices.SortFunc(list, func(a, b outage) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	var out []outage
	for _, o := range list {
		if n := len(out); n > 0 && !o.from.After(out[n-1].to) {
			if o.to.After(out[n-1].to) {
				out[n-1].to, out[n-1].over = o.to, o.over
			}
			continue
		}
		out = append(out, o)
	}
	return out
}
