package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"busbar.dev/unit"
)

// TestTypes: nodes of a slower type are no worse than their peers, and a slow one among
// them is found.
func TestTypes(t *testing.T) {
	for seed := range uint64(20) {
		f := shared(12, 0, seed)
		for i := range 12 {
			f.h.SetPlace(name(i), Place{Type: []string{"h100", "a100"}[i/8], Leaf: fmt.Sprintf("leaf%d", i%2)})
		}
		old := func(a, b, r, k int) float64 { return pick(a >= 8 || b >= 8, 0.5) }
		f.fault = old
		if list := f.run(15); len(list) > 0 {
			t.Fatalf("seed %d: %v", seed, ids(list))
		}
		f.fault = func(a, b, r, k int) float64 { return old(a, b, r, k) * pick(a == 9 || b == 9, 0.5) }
		if list := f.run(3); !slices.Equal(ids(list), []string{"slow-host:node9"}) {
			t.Errorf("seed %d: %v", seed, ids(list))
		}
	}
}

// TestSomePairs: sweeps that measure a third of the pairs each find a slow node all the same,
// and only that.
func TestSomePairs(t *testing.T) {
	late := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		h := New(0)
		var found int
		for k := range 60 {
			for a := range 16 {
				for b := range 16 {
					if a == b || (a+b+k)%3 != 0 {
						continue
					}
					v := 12e9 * math.Exp(0.05*rng.NormFloat64())
					if k >= 40 && (a == 5 || b == 5) {
						v *= 0.5
					}
					if rng.Float64() < 0.03 {
						v *= 0.7
					}
					h.Add(Sample{Sweep: fmt.Sprint(k), Time: at(k), From: name(a), To: name(b), Rate: unit.Rate(v)})
				}
			}
			list := h.Findings(at(k))
			switch {
			case k < 40 && len(list) > 0, len(list) > 1, len(list) == 1 && !slices.Equal(list[0].Nodes, []string{"node5"}),
				k == 59 && list[0].ID != "slow-host:node5": // at first only one way may be sure
				t.Fatalf("seed %d, sweep %d: %v", seed, k, ids(list))
			case len(list) == 1 && found == 0:
				found = k - 39
			}
		}
		if found == 0 || found > 6 {
			late++
		}
	}
	if late > 0 {
		t.Errorf("%d of 20 were not found within six sweeps, which is each pair twice", late)
	}
}

// TestFew: fleets of one to three nodes say nothing that they cannot know.
func TestFew(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for seed := range uint64(10) {
			f := shared(n, 0, seed)
			if list := f.run(20); len(list) > 0 {
				t.Errorf("%d nodes, seed %d: %v", n, seed, ids(list))
			}
		}
	}
	// Of three, a slow one can be told.
	right := 0
	for seed := range uint64(20) {
		f := shared(3, 0, seed)
		f.run(15)
		f.fault = host(1, 0.5)
		if list := f.run(4); slices.Equal(ids(list), []string{"slow-host:node1"}) {
			right++
		}
	}
	t.Logf("a slow node of three is named %d of 20 times", right)
}

// TestMidSweep asks while sweeps are under way: a healthy fleet stays healthy, and a fault is
// neither lost nor taken for another.
func TestMidSweep(t *testing.T) {
	for seed := range uint64(often(12)) {
		f := shared(8, []int{0, 4}[seed%2], seed)
		n := 0
		want := []string{}
		f.each = func(now time.Time) {
			if n++; n%5 != 0 {
				return
			}
			if got := ids(f.h.Findings(now)); !slices.Equal(got, want) && len(got) > 0 {
				t.Fatalf("seed %d, sweep %d, sample %d: %v", seed, f.sweeps, n%56, got)
			}
		}
		f.run(30)
		f.fault, want = out(3, 0.5), []string{"slow-out:node3"}
		if got := ids(f.run(2)); !slices.Equal(got, want) {
			t.Errorf("seed %d: %v", seed, got)
		}
		for range 5 {
			if got := ids(f.run(1)); !slices.Equal(got, want) {
				t.Errorf("seed %d: %v", seed, got)
			}
		}
	}
}
