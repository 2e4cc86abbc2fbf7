package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// TestLargeCallsInOtherOrders starts large calls in another order on each rank. What one rank
// sends first is what the other reads last, and every receive writes what is being sent.
func TestLargeCallsInOtherOrders(t *testing.T) {
	groups := joined(t, 2, nil)
	ctx, stop := context.WithTimeout(t.Context(), eventually.Limit)
	defer stop()
	const calls = 3
	for r, err := range each(groups, func(g *engine.Group) error {
		op := coll.Op{Kind: coll.AllReduce, Bytes: 12 * unit.MiB}
		s, err := schedule.Build(coll.AllReduce, "recursive_doubling", schedule.Params{Ranks: 2})
		if err != nil {
			return err
		}
		var list []*engine.Call
		var mem [][]byte
		for k := range calls {
			c, err := g.Prepare(s, op)
			if err != nil {
				return err
			}
			x := make([]float32, op.Bytes/4)
			for i := range x {
				x[i] = float32((1 + i%3 + k) * (g.Rank() + 1))
			}
			b := engine.Bytes(x)
			if err := c.Bind(engine.Buffers{Send: b, Recv: b}); err != nil {
				return err
			}
			list, mem = append(list, c), append(mem, b)
		}
		for round := range 3 {
			for k := range calls {
				if g.Rank() == 1 {
					k = calls - 1 - k
				}
				if err := list[k].Start(); err != nil {
					return err
				}
			}
			for k, c := range list {
				if _, err := c.Wait(ctx); err != nil {
					return fmt.Errorf("round %d, call %d: %w", round, k, err)
				}
			}
			if round > 0 {
				continue // sums of sums
			}
			for k := range list {
				want := make([]float32, op.Bytes/4)
				for i := range want {
					want[i] = float32((1 + i%3 + k) * 3)
				}
				if !bytes.Equal(mem[k], engine.Bytes(want)) {
					return fmt.Errorf("call %d: another sum", k)
				}
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
