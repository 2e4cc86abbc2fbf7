package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"busbar.dev/coll"
)

// variants of an algorithm worth proving: inner and outer of hierarchical ones, aggregation of
// PAT.
func variants(name string, kind coll.Kind, p Params) []Params {
	list := []Params{p}
	switch name {
	case "hierarchical":
		list = nil
		inners := []string{"ring", "direct", "nvls"}
		if p.Ranks > 12 && os.Getenv("BUSBAR_LONG") == "" {
			inners = inners[p.Ranks%3 : p.Ranks%3+1]
		}
		for _, inner := range inners {
			for _, outer := range []string{"ring", "tree", "halving_doubling", "rabenseifner", "collnet"} {
				q := p
				q.Inner, q.Outer = inner, outer
				list = append(list, q)
			}
		}
	case "ring", "bidir_ring", "tree":
		if p.Groups != nil {
			q := p
			q.Turn = true
			list = append(list, q)
		}
	}
	return list
}

// prove builds and checks, and reports whether there was something to check. A refusal must be
// one for a reason that is known.
func prove(t *testing.T, b Builder, kind coll.Kind, p Params) bool {
	t.Helper()
	s, err := b.Build(kind, p)
	if err != nil {
		var r *Refusal
		n := p.Ranks
		if p.Groups != nil {
			n = len(p.Groups)
		}
		odd := n != pow2(n) && (b.Name == "halving_doubling" || b.Name == "hypercube" || b.Name == "recursive_doubling" ||
			p.Outer == "halving_doubling" || p.Outer == "rabenseifner")
		notWhole := kind != coll.AllReduce && (p.Outer == "tree" || p.Outer == "collnet")
		if !errors.As(err, &r) || !odd && !notWhole {
			t.Errorf("%s %s %+v: %v", kind, b.Name, p, err)
		}
		return false
	}
	if err := s.Check(); err != nil {
		t.Errorf("%s inner %q outer %q root %d groups %v order %v: %v", s, p.Inner, p.Outer, p.Root, p.Groups, p.Order != nil,
			err)
		return false
	}
	return true
}

// groupings of n ranks: one group, equal ones, and random uneven ones of ranks in random order.
func groupings(rnd *rand.Rand, n int) [][][]int {
	list := [][][]int{{everyone(n)}}
	for _, size := range []int{2, 4, 8} {
		if n%size == 0 && n > size {
			list = append(list, cut(everyone(n), func() int { return size }))
		}
	}
	return append(list, cut(rnd.Perm(n), func() int { return 1 + rnd.IntN(min(n, 9)) }))
}

func cut(ranks []int, size func() int) [][]int {
	var groups [][]int
	for len(ranks) > 0 {
		k := min(size(), len(ranks))
		groups = append(groups, ranks[:k])
		ranks = ranks[k:]
	}
	return groups
}

// BUSBAR_LONG=1m (make test-long) proves all variants of all combinations to 64 ranks, and random ones to 1,024 for
// as long as it says. Without it the numbers of ranks above 24 are those at which algorithms change: powers of two and
// their neighbours, primes, and multiples of the sizes of groups.
var above24 = []int{25, 31, 32, 33, 36, 47, 48, 63, 64}

// TestEveryBuilderUpTo64 proves every combination for 1 to 64 ranks, one and several channels,
// natural and random order, and, for those that know groups, several groupings.
func TestEveryBuilderUpTo64(t *testing.T) {
	most := 64
	if testing.Short() {
		most = 17
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	proven, combos := 0, map[string]bool{}
	for n := 1; n <= most; n++ {
		if n > 24 && os.Getenv("BUSBAR_LONG") == "" && !slices.Contains(above24, n) {
			continue
		}
		groups := groupings(rnd, n)
		if n > 24 && os.Getenv("BUSBAR_LONG") == "" { // the whole set takes minutes on a slow machine
			groups = groups[len(groups)-2:]
		}
		for _, b := range Builders() {
			for _, kind := range b.Kinds {
				base := Params{Ranks: n, Root: rnd.IntN(n), Pieces: 1 + rnd.IntN(5)}
				list := []Params{base}
				two := base
				two.Channels, two.Order = 2+rnd.IntN(2), rnd.Perm(n)
				list = append(list, two)
				if b.Needs == "groups" || b.Name == "tree" {
					for _, g := range groups {
						p := base
						p.Groups, p.Channels = g, 1+rnd.IntN(2)
						list = append(list, p)
					}
				}
				for _, p := range list {
					for _, q := range variants(b.Name, kind, p) {
						if prove(t, b, kind, q) {
							proven++
							combos[fmt.Sprint(kind, b.Name, q.Inner, q.Outer)] = true
						}
					}
				}
				if t.Failed() {
					t.Fatalf("stopped at %d ranks", n)
				}
			}
		}
	}
	t.Logf("%d schedules of %d combinations proven for 1 to %d ranks", proven, len(combos), most)
}

// TestEveryBuilderAtRandomTo1024 proves random combinations for as long as there is time, and
// all of them at least once.
func TestEveryBuilderAtRandomTo1024(t *testing.T) {
	// The first round, which has every combination, stays small; what time is left goes to
	// great ones.
	most, budget := 128, time.Second
	if testing.Short() {
		budget = 0
	}
	if d, err := time.ParseDuration(os.Getenv("BUSBAR_LONG")); err == nil {
		budget = d
	}
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	proven, greatest, start := 0, 0, time.Now()
	for first := true; first || time.Since(start) < budget; first, most = false, 1024 {
		for _, b := range Builders() {
			for _, kind := range b.Kinds {
				n := 65 + rnd.IntN(most-64)
				if !first && time.Since(start) > budget {
					break
				}
				if b.Name == "halving_doubling" || b.Name == "hypercube" || b.Name == "recursive_doubling" {
					n = pow2(n)
				}
				p := Params{Ranks: n, Root: rnd.IntN(n), Pieces: 1 + rnd.IntN(8), Channels: 1 + rnd.IntN(2)}
				if rnd.IntN(2) == 0 {
					p.Order = rnd.Perm(n)
				}
				if b.Needs == "groups" || b.Name == "tree" && rnd.IntN(2) == 0 {
					ranks, most := everyone(n), 1+rnd.IntN(32)
					if rnd.IntN(2) == 0 {
						ranks = rnd.Perm(n)
					}
					size := func() int { return 1 + rnd.IntN(most) }
					if rnd.IntN(2) == 0 {
						size = func() int { return 8 }
					}
					p.Groups = cut(ranks, size)
				}
				if b.Name == "hierarchical" {
					p.Inner = []string{"ring", "direct", "nvls"}[rnd.IntN(3)]
					p.Outer = []string{"ring", "tree", "rabenseifner", "collnet"}[rnd.IntN(4)]
					if kind != coll.AllReduce {
						p.Outer = "ring"
					}
				}
				if prove(t, b, kind, p) {
					proven++
					greatest = max(greatest, n)
				} else {
					t.Fatalf("seed %d, %s %s with %d ranks", seed, kind, b.Name, n)
				}
			}
		}
	}
	t.Logf("%d schedules of 65 to %d ranks proven (seed %d)", proven, greatest, seed)
}
