package hub

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
)

// lookNow asks for a look at the statistics.
func (h *Hub) lookNow() {
	select {
	case h.look <- struct{}{}:
	default:
	}
}

// watch asks the statistics after each sweep and now and then, and says what is new.
func (h *Hub) watch(ctx context.Context) {
	tick, restate := time.NewTicker(h.cfg.Look), time.NewTicker(h.cfg.Restate)
	defer tick.Stop()
	defer restate.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-restate.C:
			if h.restate(ctx) != nil {
				return
			}
		case <-h.look:
		case <-tick.C:
		}
		if h.takeBack(ctx) != nil || h.detect(ctx) != nil {
			return
		}
	}
}

// found is all that is wrong now. The statistics know heartbeats by the steady clock, and all else by the one that
// people set.
func (h *Hub) found(ctx context.Context) (list []finding.Finding, err error) {
	missing, err := h.missing(ctx)
	if err != nil {
		return nil, err
	}
	h.counts.looked.Add(1)
	now := h.cfg.Now()
	moved := now.Sub(h.steady())
	h.view.ask(func(s *health.History) {
		s.MoveBeats(moved)
		list = s.Findings(now)
		s.MoveBeats(-moved)
	})
	list = slices.Concat(h.view.notices.findings(), h.damageFindings(missing, now), list)
	return list[:min(len(list), maxFindings/2)], nil
}

// detect says what was found and what is over. Both are said once: what has been said is in
// the stream.
func (h *Hub) detect(ctx context.Context) error {
	found, err := h.found(ctx)
	if err != nil {
		return ctx.Err() // a store that is away for a moment takes no findings either
	}
	there := map[string]bool{}
	for _, f := range found {
		if h.view.forgotten(f.Nodes...) { // in this moment
			continue
		}
		there[f.ID] = true
		old, holds := h.view.Finding(f.ID)
		if holds && old.Severity == f.Severity && old.Clearing == f.Clearing && drains(old) == drains(f) {
			continue
		}
		f.Nodes = f.Nodes[:min(len(f.Nodes), 1000)] // what fits in a message
		f.Evidence = f.Evidence[:min(len(f.Evidence), 32)]
		if err := h.publishFinding(ctx, f); err != nil {
			return err
		}
	}
	for _, f := range h.view.Findings() {
		if there[f.ID] {
			continue
		}
		f.Cleared = h.cfg.Now().UTC()
		if err := h.publishFinding(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hub) publishFinding(ctx context.Context, f finding.Finding) error {
	return h.publish(ctx, &fleet.Event{Kind: fleet.KindFinding, Finding: &f})
}

// Finding is one of those that hold.
func (v *View) Finding(id string) (finding.Finding, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	f, ok := v.findings[id]
	return f, ok
}

// Findings lists what is wrong, the worst and then the newest first.
func (v *View) Findings() []finding.Finding {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.SortedFunc(maps.Values(v.findings), func(a, b finding.Finding) int {
		return cmp.Or(finding.BySeverity(a, b), b.Since.Compare(a.Since), cmp.Compare(a.ID, b.ID))
	})
}

// Past lists findings that are over, the newest last.
func (v *View) Past() []finding.Finding {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Clone(v.past)
}

// drains tells whether a finding is a reason to keep jobs off a node.
func drains(f finding.Finding) bool { return len(health.Drain([]finding.Finding{f})) > 0 }
