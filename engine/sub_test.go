package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/unit"
)

// carriers are groups of n ranks over everything that carries bytes.
func carriers(t *testing.T, n int) map[string][]*engine.Group {
	return map[string][]*engine.Group{
		"mem": local(t, n),
		"tcp": joined(t, n, func(c *engine.Config) { c.Conns = 2 }),
		"shm": joined(t, n, func(c *engine.Config) { c.Transport = engine.Shm }),
	}
}

// subs makes the group of a list on all of its ranks.
func subs(t *testing.T, groups []*engine.Group, ranks []int) []*engine.Group {
	t.Helper()
	list := make([]*engine.Group, len(ranks))
	for i, r := range ranks {
		s, err := groups[r].Sub(ranks)
		if err != nil {
			t.Fatal(err)
		}
		if s.Rank() != i || s.Size() != len(ranks) || len(s.Members()) != len(ranks) || s.Members()[i].Rank != i {
			t.Fatalf("rank %d of %v is %d of %d", r, ranks, s.Rank(), s.Size())
		}
		list[i] = s
	}
	return list
}

// TestSubRandom: any collective by any algorithm, on ranks in any order.
func TestSubRandom(t *testing.T) {
	for name, groups := range carriers(t, 6) {
		rng := rand.New(rand.NewPCG(2, 4))
		for range 3 {
			ranks := rng.Perm(6)[:1+rng.IntN(6)]
			part := subs(t, groups, ranks)
			for range max(trialsOf()/3, 2) {
				randomTrial(rng, len(ranks)).run(t, part)
			}
			if len(ranks) > 2 { // a part of a part
				inner := rng.Perm(len(ranks))[:2]
				randomTrial(rng, 2).run(t, subs(t, part, inner))
			}
			randomWireTrial(rng, len(ranks)).run(t, part)
		}
		randomTrial(rng, 6).run(t, groups) // the whole is as before
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestSubTraining has eight ranks as tensor-parallel pairs of four and data-parallel fours of
// two: every rank is in one of each, all pairs run at once, and all fours.
func TestSubTraining(t *testing.T) {
	for name, groups := range carriers(t, 8) {
		for r, err := range each(groups, func(g *engine.Group) error {
			pair, four := g.Rank()/4, g.Rank()%4
			tp, err := g.Sub([]int{4*pair + 3, 4*pair + 1, 4*pair + 2, 4 * pair}) // not in order
			if err != nil {
				return err
			}
			dp, err := g.Sub([]int{four, four + 4})
			if err != nil {
				return err
			}
			for round := range 10 {
				op := coll.Op{Kind: coll.AllReduce, Bytes: unit.Bytes(4 << round)}
				x := make([]float32, op.Bytes/4)
				for i := range x {
					x[i] = float32(g.Rank() + i%5)
				}
				b := engine.Buffers{Send: engine.Bytes(x), Recv: engine.Bytes(x)}
				if _, err := tp.Run(context.Background(), nil, op, b); err != nil {
					return err
				}
				if _, err := dp.Run(context.Background(), nil, op, b); err != nil {
					return err
				}
				for i, v := range x { // the sum over all, by way of the fours
					if want := float32(28 + 8*(i%5)); v != want {
						return fmt.Errorf("round %d element %d is %v; want %v", round, i, v, want)
					}
				}
			}
			if err := tp.Close(); err != nil {
				return err
			}
			if _, err := tp.Run(context.Background(), nil, coll.Op{Kind: coll.Barrier}, engine.Buffers{}); !errors.Is(err, engine.ErrClosed) {
				return fmt.Errorf("a closed group: %v", err)
			}
			_, err = dp.Run(context.Background(), nil, coll.Op{Kind: coll.Barrier}, engine.Buffers{})
			return err
		}) {
			if err != nil {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
}

// TestSubAtOnce: calls of several groups of a rank are under way at the same time, prepared by
// several goroutines and started in another order on every rank.
func TestSubAtOnce(t *testing.T) {
	lists := [][]int{{0, 1, 2, 3}, {3, 1}, {0, 2}, {2, 1, 0}, {1, 3}}
	for name, groups := range carriers(t, 4) {
		for r, err := range each(groups, func(g *engine.Group) error {
			calls := make([]*engine.Call, len(lists))
			data := make([][]float32, len(lists))
			errs := make([]error, len(lists))
			var wg sync.WaitGroup
			for k, ranks := range lists {
				if !slices.Contains(ranks, g.Rank()) {
					continue
				}
				s, err := g.Sub(ranks)
				if err != nil {
					return err
				}
				wg.Go(func() {
					data[k] = make([]float32, 50000)
					calls[k], errs[k] = s.Prepare(nil, coll.Op{Kind: coll.AllReduce, Bytes: 200000})
					if errs[k] == nil {
						errs[k] = calls[k].Bind(engine.Buffers{Send: engine.Bytes(data[k]), Recv: engine.Bytes(data[k])})
					}
				})
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				return err
			}
			for round := range 5 {
				for i := range lists {
					k := (i + g.Rank()) % len(lists)
					if calls[k] == nil {
						continue
					}
					for j := range data[k] {
						data[k][j] = float32(1 + k)
					}
					if err := calls[k].Start(); err != nil {
						return err
					}
				}
				for k, c := range calls {
					if c == nil {
						continue
					}
					if _, err := c.Wait(context.Background()); err != nil {
						return err
					}
					for j, v := range data[k] {
						if want := float32((1 + k) * len(lists[k])); v != want {
							return fmt.Errorf("round %d group %v element %d is %v; want %v", round, lists[k], j, v, want)
						}
					}
				}
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
}

// TestSubRefused: lists that make no group.
func TestSubRefused(t *testing.T) {
	g := local(t, 4)[1]
	for want, ranks := range map[string][]int{
		"rank 4 of a group of 4":        {1, 4},
		"rank -1 of a group":            {-1, 1},
		"is in the list twice":          {1, 2, 1},
		"is not in the list ranks 0, 2": {2, 0},
		"rank 1 is not in the list":     {},
	} {
		if _, err := g.Sub(ranks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %q", ranks, err, want)
		}
	}
}

// TestSubFault: a rank that leaves fails the groups of the others, also those that it was not
// in, and is named by its number in the whole.
func TestSubFault(t *testing.T) {
	groups := joined(t, 4, func(c *engine.Config) { c.Timeout = time.Second })
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			if g.Rank() == 3 {
				s, err := g.Sub([]int{3, 2})
				if err == nil {
					_, err = s.Run(context.Background(), nil, coll.Op{Kind: coll.Barrier}, engine.Buffers{})
				}
				if err != nil {
					t.Error(err)
				}
				g.Close()
				return
			}
			if g.Rank() == 2 {
				s, err := g.Sub([]int{3, 2})
				for err == nil {
					_, err = s.Run(context.Background(), nil, coll.Op{Kind: coll.Barrier}, engine.Buffers{})
				}
				var peer *engine.PeerError
				if !errors.As(err, &peer) || peer.Rank != 3 {
					t.Errorf("rank 2: %v; want a fault of rank 3", err)
				}
				return
			}
			s, err := g.Sub([]int{0, 1})
			for err == nil {
				_, err = s.Run(context.Background(), nil, coll.Op{Kind: coll.Barrier}, engine.Buffers{})
			}
			var peer *engine.PeerError
			if !errors.As(err, &peer) || peer.Rank != 3 {
				t.Errorf("rank %d: %v; want a fault of rank 3", g.Rank(), err)
			}
		})
	}
	wg.Wait()
}
