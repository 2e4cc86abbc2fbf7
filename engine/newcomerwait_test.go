//go:build unix

package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
)

// TestNewcomerWaits: a newcomer says once what it waits for: a member, where there is none, or the
// members' boundary, where they do not come to one.
func TestNewcomerWaits(t *testing.T) {
	if testing.Short() {
		t.Skip("a newcomer is silent for two seconds")
	}
	for _, begun := range []bool{false, true} {
		t.Run(map[bool]string{false: "nobody", true: "begun"}[begun], func(t *testing.T) {
			t.Parallel()
			meet, want := filepath.Join(t.TempDir(), "meet"), "waiting for a member of the elastic job at "
			if begun {
				want = "waits for its members to let it in"
				for _, e := range members(t, 2, func(c *engine.Config) { c.Meet = meet }) {
					t.Cleanup(func() { e.Close() })
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
			defer cancel()
			said := make(chan engine.Waiting, 2)
			_, err := engine.JoinElastic(ctx, engine.Config{
				Rank: -1, Meet: meet, Bind: "127.0.0.1", Secret: "s", Transport: engine.TCP,
				OnWait: func(w engine.Waiting) {
					said <- w
					cancel()
				},
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("it ended with %v", err)
			}
			if w := <-said; !strings.Contains(w.String(), want) || len(said) > 0 {
				t.Errorf("it says %q, and %d more; want %q once", w, len(said), want)
			}
		})
	}
}
