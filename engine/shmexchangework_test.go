package engine

import (
	"context"
	"fmt"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Runs of all collectives that go by shared memory follow each other as fast as they can, on memory
// that others can map and, now and then on one rank, on memory that they cannot.
func TestBoardKinds(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		groups := near(t, n)
		for _, x := range []struct {
			kind coll.Kind
			algo string
		}{
			{coll.AllGather, "direct"},
			{coll.AllToAll, "direct"},
			{coll.ReduceScatter, "direct"},
			{coll.Broadcast, "binomial"},
			{coll.AllReduce, "direct"},
		} {
			for _, per := range []int{4, 512, 12000} {
				s, err := schedule.Build(x.kind, x.algo, schedule.Params{Ranks: n, Root: n - 1})
				if err != nil {
					t.Fatal(err)
				}
				op := coll.Op{Kind: x.kind, Type: coll.Float, Bytes: unit.Bytes(4 * n * per), Root: n - 1}
				if err := together(n, func(r int) error { return kindRuns(t, groups[r], s, op) }); err != nil {
					t.Errorf("%s of %d on %d ranks: %v", x.kind, per, n, err)
				}
			}
		}
	}
}

func kindRuns(t *testing.T, g *Group, s *schedule.Schedule, op coll.Op) error {
	c, err := g.Prepare(s, op)
	if err != nil {
		return err
	}
	if c.exchange == nil {
		return fmt.Errorf("no exchange")
	}
	n := g.size
	size := int(op.Size(n))
	var send, recv [2][]float32
	for k := range send {
		send[k], recv[k] = vectors(t, g, size, k == 0), vectors(t, g, size, k == 0)
	}
	value := func(run, rank, i int) float32 { return float32(run + 100*rank + i%5) }
	runs := 60
	if testing.Short() {
		runs = 10
	}
	for run := range runs {
		k := 0
		if run%7 == 6 && run%n == g.rank {
			k = 1
		}
		in, out := send[k][:op.Send(n, g.rank)/4], recv[k][:op.Recv(n, g.rank)/4]
		for i := range in {
			in[i] = value(run, g.rank, i)
		}
		clear(out)
		if err := c.Bind(Buffers{Send: Bytes(in), Recv: Bytes(out)}); err != nil {
			return err
		}
		if _, err := c.Run(context.Background()); err != nil {
			return err
		}
		per := size / 4 / n
		for i, x := range out {
			var want float32
			switch op.Kind {
			case coll.AllGather:
				want = value(run, i/per, i%per)
			case coll.AllToAll:
				want = value(run, i/per, g.rank*per+i%per)
			case coll.Broadcast:
				want = value(run, op.Root, i)
			default:
				for r := range n {
					if op.Kind == coll.ReduceScatter {
						want += value(run, r, g.rank*per+i)
					} else {
						want += value(run, r, i)
					}
				}
			}
			if x != want {
				return fmt.Errorf("rank %d run %d element %d is %v; want %v", g.rank, run, i, x, want)
			}
		}
	}
	if !c.exchange.on {
		return fmt.Errorf("not by shared memory")
	}
	return g.Forget(c)
}
