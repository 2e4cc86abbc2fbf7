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

// restate says orders that wait and findings that hold anew, as agents do of themselves.
func (h *Hub) restate(ctx context.Context) error {
	for _, s := range h.view.Orders(h.cfg.Now()) {
		// One that runs says so at its end. A word that was overtaken is ignored, for its sweep is an earlier one.
		if s.State != fleet.Waiting {
			continue
		}
		if err := h.publishOrder(ctx, s.Order); err != nil {
			return err
		}
	}
	for _, f := range h.view.Findings() {
		if err := h.publishFinding(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
