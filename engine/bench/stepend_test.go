package bench

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
)

// TestStepGivesUp: a rank whose context ends between two calls tells the others, who would
// otherwise wait for its gradients: a rank that leaves in peace is not missed.
func TestStepGivesUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory needs Linux")
	}
	// Without a warm-up there would be a barrier before the step.
	p := StepPlan{Type: coll.Float, First: 4096, Cap: 4096, Warm: 1, Iters: 1, Grads: []Grad{{Bytes: 4096}}}
	meet := filepath.Join(t.TempDir(), "meet")
	over, end := context.WithCancel(context.Background())
	end()
	bound, stop := context.WithTimeout(context.Background(), eventually.Limit) // against hanging
	defer stop()
	errs := make([]error, 2)
	ready := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	var wg sync.WaitGroup
	for r, ctx := range []context.Context{bound, over} {
		wg.Go(func() {
			g, err := engine.Join(bound, engine.Config{
				Rank: r, Size: 2, Meet: meet, Bind: "127.0.0.1", Transport: engine.Shm, Timeout: 20 * time.Second,
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Close()
			s, err := NewStepper(g, p)
			if err != nil {
				t.Error(err)
				return
			}
			close(ready[r])
			for _, c := range ready { // so that nobody gives up while the other gets ready
				select {
				case <-c:
				case <-bound.Done():
				}
			}
			_, errs[r] = s.Run(ctx, false, nil)
		})
	}
	wg.Wait()
	var peer *engine.PeerError
	if !errors.As(errs[0], &peer) || peer.Rank != 1 || peer.Cause != engine.Failed {
		t.Errorf("rank 0: %v; expected that rank 1 failed", errs[0])
	}
	if !errors.Is(errs[1], context.Canceled) {
		t.Errorf("rank 1: %v; expected what ended it", errs[1])
	}
}
