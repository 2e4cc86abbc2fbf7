package hub

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
)

func TestLeasesNeverOverlapAndNobodyStarves(t *testing.T) {
	l := newLeases()
	names := []fleet.Name{"a", "b", "c", "d", "e", "f"}
	var mu sync.Mutex
	in := map[fleet.Name]int{}
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range 200 {
				n := 2 + r.IntN(len(names)-1)
				var pick []fleet.Name
				for _, i := range r.Perm(len(names))[:n] {
					pick = append(pick, names[i])
				}
				try, stop := context.WithTimeout(ctx, time.Duration(r.IntN(3000)+1)*time.Microsecond)
				release, err := l.take(try, r.IntN(4) == 0, pick...)
				if err == nil {
					mu.Lock()
					for _, p := range pick {
						if in[p]++; in[p] > 1 {
							t.Errorf("%s is held twice", p)
						}
					}
					mu.Unlock()
					mu.Lock()
					for _, p := range pick {
						in[p]--
					}
					mu.Unlock()
					release()
					release() // a second time does nothing
				}
				stop()
			}
		})
	}
	wg.Wait()
	if len(l.held) != 0 || len(l.waiting) != 0 {
		t.Errorf("left over: %v held, %d wait", l.held, len(l.waiting))
	}
	release, err := l.take(ctx, false, names...)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestLeasesGroupBeforeLaterPairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		first, err := l.take(t.Context(), false, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		group := make(chan func())
		go func() {
			r, err := l.take(t.Context(), false, "a", "b", "c")
			if err != nil {
				t.Error(err)
			}
			group <- r
		}()
		synctest.Wait() // until the group waits
		short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer stop()
		if _, err := l.take(short, false, "c", "d"); err == nil {
			t.Error("a pair went before a group that waits for one of its nodes")
		}
		first()
		(<-group)()
	})
}
