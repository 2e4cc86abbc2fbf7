package hub

import (
	"context"
	"sync"

	"busbar.dev/fleet"
)

// lead carries out orders and looks for faults, as long as this hub leads.
func (h *Hub) lead(ctx context.Context) {
	// What the one that led before said last must be in the view before anything is done.
	if h.readAll(ctx) != nil {
		return
	}
	h.leading.Store(true)
	defer h.leading.Store(false)
	h.expectBeats()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { h.watch(ctx) })
	wg.Go(func() { h.alert(ctx) })
	for ctx.Err() == nil {
		changed := h.change()
		for _, o := range h.active() {
			h.mu.Lock()
			if h.running[o] == nil {
				own, cancel := context.WithCancelCause(ctx)
				h.running[o] = cancel
				wg.Go(func() {
					h.carryOut(own, o)
					cancel(nil)
					h.mu.Lock()
					delete(h.running, o)
					h.mu.Unlock()
				})
			}
			h.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// expectBeats lets nodes that this hub has not heard of count as heard now: one that died while no
// hub was there shall be missed. Of one that was unreachable before, the last beat is known.
func (h *Hub) expectBeats() {
	now, wall := h.steady(), h.cfg.Now()
	for _, s := range h.Nodes() {
		if s.Age >= 0 || s.Joined.IsZero() || s.State == fleet.NodeLeft {
			continue
		}
		at := now
		if !s.UnreachableSince.IsZero() && s.UnreachableSince.Before(wall) {
			at = now.Add(s.UnreachableSince.Sub(wall))
		}
		h.view.history(addBeat(s.Name, at))
	}
}

// active are the orders that are not over.
func (h *Hub) active() (ids []string) {
	for _, s := range h.view.Orders(h.cfg.Now()) {
		if !s.Final() {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
