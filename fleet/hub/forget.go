package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
)

var (
	errNoNode = apiError{http.StatusNotFound, errors.New("no node with this name has joined, or it was removed")}
	// errBeats is of a node that would come back at its next beat.
	errBeats = apiError{http.StatusConflict, errors.New("the node is up")}
)

// Forget takes a node out of the fleet that is gone for good: it is no longer missed, and what was
// found wrong with it alone is over. It comes back when it joins again, or beats.
func (h *Hub) Forget(ctx context.Context, n fleet.Name, by string) error {
	s, ok := h.Node(n)
	switch {
	case !ok:
		return errNoNode
	case s.State == fleet.NodeUp:
		return fmt.Errorf("%w, its last heartbeat came %v ago; stop its agent first (one that was killed counts as up for "+
			"%v)", errBeats, s.Age.Round(100*time.Millisecond), h.cfg.Unreachable)
	case s.State == fleet.NodeStarting:
		return fmt.Errorf("%w, possibly: this server started less than %v ago and waits for its heartbeat; try again then",
			errBeats, h.cfg.Unreachable)
	}
	h.live.forget(n)
	t := &fleet.Tokens{Node: n, Withdrawn: true, By: cut(by)}
	if err := h.publish(ctx, &fleet.Event{Kind: fleet.KindTokens, Tokens: t}); err != nil {
		return err
	}
	h.lookNow() // what was found about it is over
	return nil
}

// takeBack makes forgotten nodes that beat ones of the fleet again: one that was stopped for a while and goes on does
// not join anew, and would be up for some and not there for others.
func (h *Hub) takeBack(ctx context.Context) error {
	for _, n := range h.live.names() {
		if !h.view.forgotten(string(n)) {
			continue
		}
		t := &fleet.Tokens{Node: n, By: "its beat"}
		if err := h.publish(ctx, &fleet.Event{Kind: fleet.KindTokens, Tokens: t}); err != nil {
			return err
		}
	}
	return nil
}

// forgotten tells that all of these nodes were forgotten.
func (v *View) forgotten(nodes ...string) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, n := range nodes {
		if s := v.nodes[fleet.Name(n)]; s == nil || !s.forgotten {
			return false
		}
	}
	return len(nodes) > 0
}

// forget takes a node out that was withdrawn, or takes it back.
func (v *View) forget(t *fleet.Tokens) bool {
	s := v.nodes[t.Node]
	if s == nil || s.forgotten == t.Withdrawn {
		return true
	}
	s.forgotten, s.left = t.Withdrawn, t.Withdrawn
	v.changes++
	if t.Withdrawn {
		v.history(func(h *health.History) { h.Forget(string(t.Node)) })
	}
	return true
}
