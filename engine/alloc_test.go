package engine_test

import (
	"context"
	"sync"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/unit"
)

// TestNoAllocation holds the steady state to its promise: all ranks of the process run the
// same prepared calls, and none of them allocates.
func TestNoAllocation(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates too")
	}
	for name, groups := range map[string][]*engine.Group{
		"mem": local(t, 4), "tcp": joined(t, 4, nil),
		"auto": joined(t, 4, func(c *engine.Config) { c.Transport = engine.Auto }),
	} {
		for _, op := range []coll.Op{
			{Kind: coll.AllReduce, Bytes: 1024},
			{Kind: coll.AllReduce, Bytes: 1 << 20, Type: coll.BFloat16, Reduce: coll.Avg},
			{Kind: coll.AllGather, Bytes: 1 << 18},
			{Kind: coll.AllToAll, Bytes: 1 << 16},
			{Kind: coll.Barrier},
		} {
			s, err := engine.Pick(op, 4, groups[0].Transport())
			if err != nil {
				t.Fatal(err)
			}
			calls := make([]*engine.Call, 4)
			errs := each(groups, func(g *engine.Group) error {
				c, err := g.Prepare(s, op)
				if err != nil {
					return err
				}
				calls[g.Rank()] = c
				var b engine.Buffers
				if b.Send, err = g.Alloc(int(op.Send(4, g.Rank()))); err != nil {
					return err
				}
				if b.Recv, err = g.Alloc(int(op.Recv(4, g.Rank()))); err != nil {
					return err
				}
				return c.Bind(b)
			})
			for _, err := range errs {
				if err != nil {
					t.Fatal(err)
				}
			}
			if n := allocations(t, calls); n != 0 {
				t.Errorf("%s: %s of %v by %s: %v allocations a run", name, op.Kind, op.Bytes, s.Name, n)
			}
		}
	}
}

// allocations is how often a run of a call that every rank makes allocates, once buffers that
// grow have grown.
func allocations(t *testing.T, calls []*engine.Call) float64 {
	const runs = 100
	run := func(r int) {
		if _, err := calls[r].Run(context.Background()); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for r := 1; r < len(calls); r++ {
		wg.Go(func() {
			for range 2*runs + 1 {
				run(r)
			}
		})
	}
	for range runs {
		run(0)
	}
	return testing.AllocsPerRun(runs, func() { run(0) })
}

// TestBuckets starts several calls, as training does with its gradients, and waits at the end,
// in another order on every rank.
func TestBuckets(t *testing.T) {
	for name, groups := range map[string][]*engine.Group{"mem": local(t, 3), "tcp": joined(t, 3, nil)} {
		const buckets = 6
		errs := each(groups, func(g *engine.Group) error {
			var calls []*engine.Call
			var data [][]float32
			for k := range buckets {
				op := coll.Op{Kind: coll.AllReduce, Bytes: unit.Bytes(4 << (3 * k))}
				s, err := engine.Pick(op, g.Size(), engine.TCP)
				if err != nil {
					return err
				}
				c, err := g.Prepare(s, op)
				if err != nil {
					return err
				}
				x := make([]float32, op.Bytes/4)
				if err := c.Bind(engine.Buffers{Send: engine.Bytes(x), Recv: engine.Bytes(x)}); err != nil {
					return err
				}
				calls, data = append(calls, c), append(data, x)
			}
			for round := range 20 {
				for k := range buckets {
					i := (k + g.Rank()) % buckets
					for j := range data[i] {
						data[i][j] = float32(g.Rank() + round + j%7)
					}
					if err := calls[i].Start(); err != nil {
						return err
					}
				}
				for i := range buckets {
					if _, err := calls[i].Wait(context.Background()); err != nil {
						return err
					}
					for j, v := range data[i] {
						if want := float32(3 + 3*round + 3*(j%7)); v != want {
							t.Errorf("%s: bucket %d element %d is %v; want %v", name, i, j, v, want)
							return nil
						}
					}
				}
			}
			return nil
		})
		for r, err := range errs {
			if err != nil {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
}
