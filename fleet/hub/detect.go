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
	tick := time.NewTicker(h.cfg.Look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-h.back:
			if h.takeBack(ctx, n) != nil {
				return
			}
			continue
		case <-h.look:
		case <-tick.C:
		}
		if h.detect(ctx) != nil {
			return
		}
	}
}

// detect says what was found and what is over. Both are said once: what has been said is in
// the stream.
func (h *Hub) detect(ctx context.Context) error {
	now := h.now()
	var found []finding.Finding
	began := time.Now()
	h.view.ask(func(s *health.History) { found = s.Findings(now) })
	found = slices.Concat(h.rivals.findings(TwoAgents, finding.Warn, began, rivalWords),
		h.floods.findings(Flooding, finding.Error, began, floodWords), h.damageFindings(now),
		h.view.unreadable(), h.jobs.last.Load().hold, h.reported.findings(now), found)
	h.counts.looked(time.Since(began))
	h.finds.Lock()
	defer h.finds.Unlock()
	there := map[string]bool{}
	for _, f := range found[:min(len(found), maxFindings/2)] {
		if h.view.forgotten(f.Nodes...) { // in this moment
			continue
		}
		there[f.ID] = true
		old, known := h.view.Finding(f.ID)
		holds := known && old.Cleared.IsZero()
		if holds && old.Severity == f.Severity && old.Clearing == f.Clearing && drains(old) == drains(f) {
			continue
		}
		bound(&f)
		// Only what got worse is told again.
		event := f
		if holds && f.Severity <= old.Severity {
			event.Alerted, event.AlertedTo = old.Alerted, old.AlertedTo
		}
		same := func() bool {
			got, ok := h.view.Finding(f.ID)
			return ok && got.Severity == f.Severity && got.Clearing == f.Clearing
		}
		if err := h.publishFinding(ctx, &event, same); err != nil {
			return err
		}
	}
	for _, f := range h.view.Findings() {
		if there[f.ID] || !f.Cleared.IsZero() {
			continue
		}
		if err := h.publishCleared(ctx, f, now); err != nil {
			return err
		}
	}
	return nil
}

// publishCleared says that something is no longer wrong. The caller holds finds.
func (h *Hub) publishCleared(ctx context.Context, f finding.Finding, now time.Time) error {
	over := f
	over.Cleared, over.AlertedTo = now.UTC(), h.notAlerted(f)
	over.Alerted = h.alertedAll(over.AlertedTo)
	return h.publishFinding(ctx, &over,
		func() bool { old, ok := h.view.Finding(f.ID); return !ok || !old.Cleared.IsZero() })
}

// bound keeps a finding to what fits in a message.
func bound(f *finding.Finding) {
	f.Nodes = f.Nodes[:min(len(f.Nodes), 1000)]
	f.Evidence = f.Evidence[:min(len(f.Evidence), 32)]
}

func (h *Hub) publishFinding(ctx context.Context, f *finding.Finding, there func() bool) error {
	return h.publish(ctx, &fleet.Event{Kind: fleet.KindFinding, Finding: f}, there)
}

// Finding is one of those that the view has.
func (v *View) Finding(id string) (finding.Finding, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	f := v.findings[id]
	if f == nil {
		return finding.Finding{}, false
	}
	return *f, true
}

// Findings lists what is wrong, the worst and then the newest first, and what is over and not told.
func (v *View) Findings() []finding.Finding {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]finding.Finding, 0, len(v.findings))
	for _, id := range slices.Sorted(maps.Keys(v.findings)) {
		out = append(out, *v.findings[id])
	}
	slices.SortStableFunc(out, func(a, b finding.Finding) int {
		return cmp.Or(finding.BySeverity(a, b), b.Since.Compare(a.Since))
	})
	return out
}

// Past lists findings that are over, the newest last.
func (v *View) Past() []finding.Finding {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Clone(v.past)
}

// drains tells whether a finding is a reason to keep jobs off a node.
func drains(f finding.Finding) bool { return len(health.Drain([]finding.Finding{f})) > 0 }
