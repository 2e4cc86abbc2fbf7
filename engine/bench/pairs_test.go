package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/result/pairs"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// together runs work on the ranks of one process.
func together(t *testing.T, n int, work func(ctx context.Context, g *engine.Group) error) {
	t.Helper()
	groups, err := engine.Local(n)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), eventually.Limit)
	defer stop()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() {
			errs[i] = work(ctx, g)
			if errs[i] != nil {
				g.Close()
			}
		})
	}
	wg.Wait()
	for i, g := range groups {
		g.Close()
		if errs[i] != nil {
			t.Errorf("rank %d: %v", i, errs[i])
		}
	}
}

// TestPairs measures a few ranks, one pair at a time and many: every direction has figures.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		n     int
		alone bool
		turns int
	}{{2, false, 1}, {4, false, 3}, {5, false, 5}, {4, true, 6}} {
		p := PairPlan{Small: 8, Large: 100000, Warm: 1, Iters: 3, Alone: c.alone}
		if err := p.Validate(c.n); err != nil {
			t.Fatal(err)
		}
		var table *pairs.Table
		turns := 0
		together(t, c.n, func(ctx context.Context, g *engine.Group) error {
			got, err := Pairs(ctx, g, p, func(int) { turns++ })
			if g.Rank() == 0 {
				table = got
			} else if got != nil {
				return fmt.Errorf("rank %d got a table", g.Rank())
			}
			return err
		})
		if table == nil || len(table.Cells) != c.n*(c.n-1) || turns != c.turns || p.Turns(c.n) != c.turns {
			t.Fatalf("%d ranks: %d turns, %v", c.n, turns, table)
		}
		for _, m := range table.Cells {
			if m.Latency <= 0 || m.Rate <= 0 || m.Both <= 0 {
				t.Errorf("%d ranks: %+v", c.n, m)
			}
		}
	}
}

// TestExchangeMatches: what one rank of a pair sends, the other receives, whatever they do,
// and the data arrive.
func TestExchangeMatches(t *testing.T) {
	partner := []int32{2, -1, 0, 4, 3}
	for _, how := range []exchanging{pingPong, upward, downward, bothWays} {
		x := exchange{partner: partner, how: how, times: 3}
		for r, p := range partner {
			if p < 0 {
				continue
			}
			var sent, got []int
			for i := range x.Len(r, 0) {
				if op := x.At(r, 0, i); op.Verb == schedule.Send {
					sent = append(sent, op.Len())
				}
			}
			for i := range x.Len(int(p), 0) {
				if op := x.At(int(p), 0, i); op.Verb == schedule.Recv {
					got = append(got, op.Len())
				}
			}
			if fmt.Sprint(sent) != fmt.Sprint(got) {
				t.Errorf("%d: rank %d sends %v, %d receives %v", how, r, sent, p, got)
			}
		}
		together(t, len(partner), func(ctx context.Context, g *engine.Group) error {
			const size = 5000
			op := coll.Op{Kind: coll.SendRecv, Type: coll.Uint8, Bytes: size}
			own, their := bytes.Repeat([]byte{byte(g.Rank() + 1)}, size), make([]byte, size)
			if _, err := g.Run(ctx, x.schedule("x"), op, engine.Buffers{Send: own, Recv: their}); err != nil {
				return err
			}
			p := partner[g.Rank()]
			receives := p >= 0 && (how == pingPong || how == bothWays || (how == upward) == (g.Rank() > int(p)))
			want := byte(0)
			if receives {
				want = byte(p + 1)
			}
			if !bytes.Equal(their, bytes.Repeat([]byte{want}, size)) {
				return fmt.Errorf("%d: got %d, want %d", how, their[0], want)
			}
			return nil
		})
	}
}

func TestPairPlanRefuses(t *testing.T) {
	good := PairPlan{Small: 8, Large: unit.MiB, Iters: 1}
	for name, c := range map[string]struct {
		n      int
		change func(*PairPlan)
	}{
		"one rank":      {1, func(*PairPlan) {}},
		"many ranks":    {1 << 20, func(*PairPlan) {}},
		"no runs":       {2, func(p *PairPlan) { p.Iters = 0 }},
		"small > large": {2, func(p *PairPlan) { p.Small = 2 * unit.MiB }},
	} {
		p := good
		c.change(&p)
		if p.Validate(c.n) == nil {
			t.Errorf("%s was not refused", name)
		}
	}
}
