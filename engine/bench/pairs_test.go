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
	p := PairPlan{Small: 8, Large: 100000, Warm: 1, Iters: 3}
	for _, turn := range [][][2]int{{{0, 1}}, {{0, 3}, {1, 2}}, {{1, 4}, {2, 3}}} {
		var cells []pairs.Measure
		together(t, 5, func(ctx context.Context, g *engine.Group) error {
			m, err := NewPairMeter(g, p)
			if err != nil {
				return err
			}
			defer m.Free()
			for range 2 { // a meter lasts for many turns
				got, err := m.Turn(ctx, turn)
				if err != nil {
					return err
				}
				if g.Rank() == 0 {
					cells = got
				} else if got != nil {
					return fmt.Errorf("rank %d got figures", g.Rank())
				}
			}
			return nil
		})
		if len(cells) != 2*len(turn) {
			t.Fatalf("%v: %v", turn, cells)
		}
		for i, m := range cells {
			if p := turn[i/2]; m.From != p[i%2] || m.To != p[1-i%2] || m.Latency <= 0 || m.Rate <= 0 || m.Both <= 0 {
				t.Errorf("%v: %+v", turn, m)
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
