package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/unit"
)

// TestMaxRate sends more than the bound allows in a moment, and looks that it took its time.
func TestMaxRate(t *testing.T) {
	const bound, size = unit.Rate(20e6), 8 << 20
	groups := joined(t, 2, func(c *engine.Config) { c.MaxRate, c.Conns = bound, 2 })
	began := time.Now()
	var both sync.WaitGroup
	for _, g := range groups {
		both.Go(func() {
			b := make([]byte, size)
			if _, err := g.Run(context.Background(), nil, coll.Op{Kind: coll.Broadcast, Bytes: size, Type: coll.Uint8},
				engine.Buffers{Send: b, Recv: b}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if rate := unit.Rate(size / time.Since(began).Seconds()); rate > 2*bound {
		t.Errorf("sent at %v; the bound was %v", rate, bound)
	} else {
		t.Logf("sent at %v; the bound was %v", rate, bound)
	}
}
