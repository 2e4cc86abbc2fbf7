package hub

import (
	"context"
	"time"

	"busbar.dev/fleet"
)

// restateEvery is how often what holds is said anew. A store that is full drops what is oldest, after a day where a
// large fleet measures all pairs every hour: what was said once and never again would be forgotten at the
// next start.
const restateEvery = 6 * time.Hour

// restate says orders that wait and findings that hold again and again, as agents do of themselves.
func (h *Hub) restate(ctx context.Context) {
	tick := time.NewTicker(h.cfg.Restate)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range h.view.Orders(h.now()) {
			// One that runs says so at its end. A word that was overtaken is ignored, for its sweep is an earlier one.
			if s.State == fleet.Waiting && h.publishOrder(ctx, s.Order) != nil {
				return
			}
		}
		for _, f := range h.view.Findings() {
			if f.Cleared.IsZero() && h.repeat(ctx, f.ID) != nil {
				return
			}
		}
	}
}

// repeat says a finding again as it is now.
func (h *Hub) repeat(ctx context.Context, id string) error {
	h.finds.Lock()
	defer h.finds.Unlock()
	f, ok := h.view.Finding(id)
	if !ok || !f.Cleared.IsZero() {
		return nil
	}
	return h.publishFinding(ctx, &f, func() bool { return true })
}
