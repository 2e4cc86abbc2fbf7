package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"busbar.dev/fleet"
)

// ErrNoNode is the error of a node that never joined, or was forgotten.
var ErrNoNode = errors.New("no node with this name has joined, or it was removed")

// ErrBeats is the error of a node that cannot be forgotten, for it would come back at its next beat.
var ErrBeats = errors.New("the node is up")

// Forget takes a node out of the fleet that is gone for good: it is no longer missed, and what was
// found wrong with it alone is over. It comes back when it joins again, or beats.
func (h *Hub) Forget(ctx context.Context, n fleet.Name, by string) error {
	s, ok := h.Node(n)
	switch {
	case !ok:
		return ErrNoNode
	case s.State == fleet.NodeUp:
		return fmt.Errorf("%w, its last heartbeat came %v ago; stop its agent first (one that was killed counts as up for "+
			"%v)", ErrBeats, s.Age.Round(100*time.Millisecond), h.cfg.Unreachable)
	case s.State == fleet.NodeStarting:
		return fmt.Errorf("%w, possibly: this server started less than %v ago and waits for its heartbeat; try again then",
			ErrBeats, h.cfg.Unreachable)
	}
	h.live.forget(n)
	t := &fleet.Tokens{Node: n, Withdrawn: true, By: cut(by)}
	if err := h.publish(ctx, &fleet.Event{Kind: fleet.KindTokens, Tokens: t},
		func() bool { return h.view.forgotten(string(n)) }); err != nil {
		return err
	}
	h.lookNow() // at findings that name others too
	h.finds.Lock()
	defer h.finds.Unlock()
	for _, f := range h.view.Findings() {
		if f.Cleared.IsZero() && len(f.Nodes) == 1 && f.Nodes[0] == string(n) {
			if err := h.publishCleared(ctx, f, h.now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// beats notes that a forgotten node lives, as one does that was stopped for a while and goes on: it
// does not join anew, and would be up for some and not there for others.
func (h *Hub) beats(n fleet.Name) {
	if h.Leads() && h.view.forgotten(string(n)) {
		select {
		case h.back <- n:
		default: // it beats again
		}
	}
}

// takeBack makes a forgotten node that beats one of the fleet again.
func (h *Hub) takeBack(ctx context.Context, n fleet.Name) error {
	if b, _, ok := h.live.of(n); !ok || h.now().Sub(b.came) > h.cfg.Unreachable || !h.view.forgotten(string(n)) {
		return nil
	}
	t := &fleet.Tokens{Node: n, By: "its beat"}
	return h.publish(ctx, &fleet.Event{Kind: fleet.KindTokens, Tokens: t},
		func() bool { return !h.view.forgotten(string(n)) })
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
		v.history(addForget(t.Node))
	}
	return true
}
