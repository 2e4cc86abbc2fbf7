package hub

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/test/eventually"
)

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(3)
		h, stop := start(t, m, nil)
		eventually.Holds(t, "it leads", h.Leads)
		listed := func() (names []fleet.Name) {
			for _, n := range h.Nodes() {
				names = append(names, n.Name)
			}
			return names
		}
		// One that beats would be back at once, and is refused.
		err := h.Forget(t.Context(), "n1", "me")
		if !errors.Is(err, errBeats) || !strings.Contains(err.Error(), "stop its agent first") {
			t.Fatalf("a node that is up: %v", err)
		}
		if err := h.Forget(t.Context(), "nobody", "me"); !errors.Is(err, errNoNode) {
			t.Errorf("a node that never joined: %v", err)
		}
		// One that is silent is gone at once, and what was found about it alone is over; of others it is not.
		nodes[1].dead.Store(true)
		eventually.Holds(t, "n1 is silent", func() bool { s, _ := h.Node("n1"); return s.State == fleet.NodeUnreachable })
		wrong := func(id string, who ...string) {
			t.Helper()
			f := finding.Finding{
				ID: id, Kind: health.Unreachable, Severity: finding.Error, Confidence: 1, Nodes: who, Text: id, Since: time.Now(),
			}
			if err := h.publishFinding(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		stop() // so that nobody else closes them
		h, stop = start(t, m, func(c *Config) { c.Look = time.Hour })
		eventually.Holds(t, "n1 is silent", func() bool { s, _ := h.Node("n1"); return s.State == fleet.NodeUnreachable })
		wrong("mine", "n1")
		if err := h.Forget(t.Context(), "n1", "me"); err != nil {
			t.Fatal(err)
		}
		if got := listed(); slices.Contains(got, "n1") || len(got) != 2 {
			t.Errorf("forgotten and listed: %v", got)
		}
		eventually.Holds(t, "it is not accused", func() bool { _, ok := h.view.Finding("mine"); return !ok })
		o := pairOrder()
		o.Nodes = []fleet.Name{"n0", "n1"}
		if _, err := h.Give(t.Context(), o); err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Errorf("an order for it: %v", err)
		}
		stop()
		h, _ = start(t, m, nil)
		if got := listed(); len(got) != 2 {
			t.Errorf("after a restart: %v", got)
		}
		// It was only stopped for a while, and does not join anew.
		nodes[1].dead.Store(false)
		eventually.Holds(t, "n1 is taken back", func() bool { s, ok := h.Node("n1"); return ok && s.State == fleet.NodeUp })
		s, err := h.Give(t.Context(), pairOrder())
		if err != nil {
			t.Fatal(err)
		}
		if s = finish(t, h, s.ID); s.Measured != 3 {
			t.Errorf("with it again: %+v", s)
		}
	})
}
