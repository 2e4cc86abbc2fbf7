package hub

import (
	"context"
	"errors"
	"sync"

	"busbar.dev/fleet"
)

// errOver ends the work on an order that is final.
var errOver = errors.New("the order is over")

// running is an order that is being carried out.
type running struct {
	cancel context.CancelCauseFunc
}

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
	wg.Go(func() { h.restate(ctx) })
	wg.Go(func() { h.watchStore(ctx) })
	for ctx.Err() == nil {
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		for _, o := range h.view.active() {
			h.mu.Lock()
			if h.running[o] == nil {
				own, cancel := context.WithCancelCause(ctx)
				h.running[o] = &running{cancel}
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
	now := h.now()
	for _, n := range h.view.present() {
		if _, _, seen := h.live.of(n); seen {
			continue
		}
		at := now
		if s, ok := h.view.Node(n); ok && !s.UnreachableSince.IsZero() && s.UnreachableSince.Before(now) {
			at = s.UnreachableSince
		}
		h.view.history(addBeat(n, at))
	}
}

// active are the orders that are not over.
func (v *View) active() (ids []string) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, id := range v.given {
		if !v.orders[id].Final() {
			ids = append(ids, id)
		}
	}
	return ids
}

// present are the nodes that joined and have not left.
func (v *View) present() (names []fleet.Name) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for n, s := range v.nodes {
		if s.joined != nil && !s.left {
			names = append(names, n)
		}
	}
	return names
}
