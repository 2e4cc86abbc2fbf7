package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// TestRun measures every collective on a few ranks; nothing may be wrong.
func TestRun(t *testing.T) {
	for _, kind := range coll.Kinds() {
		for _, n := range []int{1, 3, 4} {
			p := Plan{
				Op: coll.Op{Kind: kind, Type: coll.BFloat16, Reduce: coll.Avg, Root: n - 1}, Sizes: sizes(0, 6, 4096, 100000),
				Warm: 1, Iters: 3, Check: true, Transport: engine.Mem,
			}
			if kind == coll.Hypercube && n == 3 {
				if p.Validate(n) == nil {
					t.Error("a hypercube of three ranks was not refused")
				}
				continue
			}
			if err := p.Validate(n); err != nil {
				t.Errorf("%s on %d ranks: %v", kind, n, err)
				continue
			}
			list, err := measure(n, p)
			if err != nil {
				t.Fatalf("%s on %d ranks: %v", kind, n, err)
			}
			if len(list) != len(p.Sizes) {
				t.Errorf("%s on %d ranks: %d sizes", kind, n, len(list))
			}
			for _, r := range list.Rows() {
				if *r.Wrong != 0 || len(r.Samples) != 3 || r.Time.Mean <= 0 || r.Quantile(0) > r.Quantile(0.99) {
					t.Errorf("%s on %d ranks, %v: %+v", kind, n, r.Size, r.Timing)
				}
				if (r.In != nil) != (kind.InPlace() && kind != coll.Barrier) {
					t.Errorf("%s: in place: %v", kind, r.In != nil)
				}
			}
		}
	}
}

// sizes are all, or with the race detector all but the largest: every element is checked.
func sizes(list ...unit.Bytes) []unit.Bytes {
	if testing.Short() {
		return list[:len(list)-1]
	}
	return list
}

func measure(n int, p Plan) (list result.Sweeps, err error) {
	groups, err := engine.Local(n)
	if err != nil {
		return nil, err
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() {
			errs[i] = Run(context.Background(), g, p, func(s *result.Sweep) error {
				list = append(list, s)
				return nil
			})
		})
	}
	wg.Wait()
	for i, g := range groups {
		g.Close()
		if errs[i] != nil {
			err = fmt.Errorf("rank %d: %w", i, errs[i])
		}
	}
	return list, err
}

func TestLengthen(t *testing.T) {
	took := []float64{1, 2, 3}
	lengthen(took, 7.5)
	if want := []float64{1.5, 2.5, 3.5}; !slices.Equal(took, want) {
		t.Errorf("runs of 1, 2 and 3 s in a loop of 7.5 s: %v; want %v", took, want)
	}
	lengthen(took, 7)
	if want := []float64{1.5, 2.5, 3.5}; !slices.Equal(took, want) {
		t.Errorf("a loop shorter than its runs: %v; want %v", took, want)
	}
}
