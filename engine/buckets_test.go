package engine_test

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/reduce"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/unit"
)

func TestBucketPlan(t *testing.T) {
	const mib = unit.MiB
	for _, tt := range []struct {
		how  engine.Bucketing
		want [][]int
	}{
		{engine.Bucketing{}, nil},
		{engine.Bucketing{Params: []unit.Bytes{4}}, [][]int{{0}}},
		// The first bucket is full at 1 MiB, those after it at 25 MiB.
		{
			engine.Bucketing{Params: []unit.Bytes{mib, 20 * mib, 5 * mib, 24 * mib, mib / 2, mib / 2}},
			[][]int{{5, 4}, {3, 2}, {1, 0}},
		},
		// A parameter above the size is a bucket of its own, or ends the one that it is in.
		{engine.Bucketing{Params: []unit.Bytes{1, 100 * mib, 1}}, [][]int{{2, 1}, {0}}},
		{engine.Bucketing{Params: []unit.Bytes{8, 8, 8, 8, 8}, First: 8, Cap: 16}, [][]int{{4}, {3, 2}, {1, 0}}},
	} {
		if got := tt.how.Plan(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: %v; want %v", tt.how.Params, got, tt.want)
		}
	}
}

// TestBucketsTrain runs steps of a model whose gradients come in another order on every rank.
func TestBucketsTrain(t *testing.T) {
	for name, groups := range map[string][]*engine.Group{
		"mem": local(t, 3), "tcp": joined(t, 3, nil),
		"shm": joined(t, 3, func(c *engine.Config) { c.Transport = engine.Shm }),
	} {
		how := engine.Bucketing{First: 1 << 10, Cap: 64 << 10, Reduce: coll.Avg}
		for i := range 40 {
			how.Params = append(how.Params, unit.Bytes(4*(1+i*i*37%9001)))
		}
		for r, err := range each(groups, func(g *engine.Group) error {
			b, err := g.Buckets(how)
			if err != nil {
				return err
			}
			steps := 10
			if testing.Short() { // elements are looked at one by one, which takes long under the race detector
				steps = 3
			}
			for step := range steps {
				for k := range how.Params {
					i := len(how.Params) - 1 - k
					if g.Rank() == 1 {
						i ^= 1 // neighbours change places
					}
					x := b.Grad(i)
					for at := 0; at < len(x); at += 4 {
						reduce.Put(x[at:], coll.Float, float64(step+i+g.Rank()*at%64))
					}
					if err := b.Ready(i); err != nil {
						return err
					}
				}
				if err := b.Wait(context.Background()); err != nil {
					return err
				}
				for i := range how.Params {
					x := b.Grad(i)
					for at := 0; at < len(x); at += 4 {
						want := float64(float32(3*(step+i)+at%64+2*at%64) / 3)
						if v := reduce.Element(x[at:], coll.Float); v != want {
							t.Errorf("%s: step %d parameter %d element %d is %v; want %v", name, step, i, at/4, v, want)
							return nil
						}
					}
				}
			}
			if k := b.Len() - 1; b.Run(k).Time <= 0 || b.Bytes(k) <= 0 || len(b.Params(k)) == 0 {
				t.Errorf("%s: bucket %d has no record", name, k)
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
}

// TestBucketsGoOnAlone: buckets that were started are reduced while the caller is busy and
// calls nothing, several of them at a time.
func TestBucketsGoOnAlone(t *testing.T) {
	groups := joined(t, 2, nil)
	const buckets = 4
	how := engine.Bucketing{First: 1 << 20, Cap: 1 << 20, Params: []unit.Bytes{1 << 20, 1 << 20, 1 << 20, 1 << 20}}
	var done atomic.Int32          // ranks that have seen all results without waiting
	allUnderWay := make(chan bool) // closed when rank 0 has started everything
	for r, err := range each(groups, func(g *engine.Group) error {
		b, err := g.Buckets(how)
		if err != nil {
			return err
		}
		if g.Rank() == 1 {
			<-allUnderWay
		}
		for i := buckets - 1; i >= 0; i-- {
			x := b.Grad(i)
			for at := 0; at < len(x); at += 4 {
				reduce.Put(x[at:], coll.Float, 1)
			}
			if err := b.Ready(i); err != nil {
				return err
			}
		}
		if g.Rank() == 0 {
			if b.UnderWay() != buckets {
				t.Errorf("%d of %d buckets are under way before the peer has begun", b.UnderWay(), buckets)
			}
			close(allUnderWay)
		}
		limit := time.Now().Add(eventually.Limit)
		for b.UnderWay() > 0 { // what a caller that computes does not do
			if time.Now().After(limit) {
				t.Errorf("rank %d: the buckets made no progress by themselves", g.Rank())
				break
			}
			spinFor(time.Millisecond)
		}
		done.Add(1)
		if err := b.Wait(context.Background()); err != nil {
			return err
		}
		for i := range buckets {
			if v := reduce.Element(b.Grad(i), coll.Float); v != 2 {
				t.Errorf("rank %d: parameter %d is %v; want 2", g.Rank(), i, v)
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if done.Load() != 2 {
		t.Errorf("%d ranks saw the end", done.Load())
	}
}

// spinFor keeps a processor busy.
func spinFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// TestBucketsMisused: what a step must not do is refused and leaves the step as it was.
func TestBucketsMisused(t *testing.T) {
	groups := local(t, 2)
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			if _, err := g.Buckets(engine.Bucketing{Params: []unit.Bytes{4, 6}}); err == nil ||
				!strings.Contains(err.Error(), "parameter 1 has 6 bytes") {
				t.Errorf("half an element: %v", err)
			}
			b, err := g.Buckets(engine.Bucketing{Params: []unit.Bytes{4, 8}})
			if err != nil {
				t.Error(err)
				return
			}
			if err := b.Wait(context.Background()); err == nil ||
				!strings.Contains(err.Error(), "parameter 0 (bucket 0) is not ready") {
				t.Errorf("a wait for nothing: %v", err)
			}
			for _, i := range []int{-1, 2} {
				if b.Ready(i) == nil {
					t.Errorf("parameter %d was taken", i)
				}
			}
			if b.Ready(0) != nil || b.Ready(0) == nil {
				t.Error("a gradient that comes twice")
			}
			if b.Ready(1) != nil || b.Wait(context.Background()) != nil {
				t.Error("the step did not go on")
			}
		})
	}
	wg.Wait()
}
