package engine_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"busbar.dev/engine"
)

// joined is n ranks of this process that meet over loopback sockets.
func joined(t testing.TB, n int, change func(*engine.Config)) []*engine.Group {
	t.Helper()
	groups, errs := tryJoin(t, n, change)
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	t.Cleanup(func() { closeAll(groups) })
	return groups
}

func tryJoin(t testing.TB, n int, change func(*engine.Config)) ([]*engine.Group, []error) {
	t.Helper()
	meet := filepath.Join(t.TempDir(), "meet")
	groups, errs := make([]*engine.Group, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			cfg := engine.Config{
				Rank: r, Size: n, Meet: meet, Bind: "127.0.0.1", Secret: "s", Transport: engine.TCP, Timeout: 20 * time.Second,
			}
			if change != nil {
				change(&cfg)
			}
			groups[r], errs[r] = engine.Join(context.Background(), cfg)
		})
	}
	wg.Wait()
	return groups, errs
}

func TestRandomCallsOverSockets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 1; n <= 9; n++ {
		groups := joined(t, n, func(c *engine.Config) { c.Conns = 1 + n%3 })
		for range trialsOf() {
			randomTrial(rng, n).run(t, groups)
		}
		closeAll(groups)
	}
}
