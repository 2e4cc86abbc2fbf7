package health

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// draw is a random fault of a fleet of n nodes in leaves of some size, with its ID.
func draw(rng *rand.Rand, n, size int) (string, func(a, b, r, k int) float64) {
	v := 0.35 + 0.45*rng.Float64()
	i := rng.IntN(n)
	j := (i + 1 + rng.IntN(n-1)) % n
	leaves := 0
	if size > 0 {
		leaves = n / size
	}
	switch k := rng.IntN(6); {
	case k == 0:
		return "slow-out:" + name(i), out(i, v)
	case k == 1:
		return "slow-in:" + name(i), in(i, v)
	case k == 2 && leaves > 2:
		l := rng.IntN(leaves)
		return fmt.Sprintf("slow-leaf:leaf%d", l), leaf(l, size, v)
	case k == 3:
		a, b := min(name(i), name(j)), max(name(i), name(j))
		return "slow-pair:" + a + "-" + b, couple(i, j, v, true)
	case k == 4:
		return "one-way:" + name(i) + ">" + name(j), couple(i, j, v, false)
	}
	return "slow-host:" + name(i), host(i, v)
}

// TestConfidence holds what findings say of their confidence against how often they are
// right, over fleets of several sizes, noises, numbers of faults and lengths of their past.
func TestConfidence(t *testing.T) {
	type bin struct {
		n, right   int
		confidence float64
	}
	bins := [4]bin{}
	edges := []float64{0.5, 0.8, 0.95}
	faults, found := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 6))
		size := []int{0, 4}[rng.IntN(2)]
		n := []int{4, 8, 12, 16}[rng.IntN(4)]
		f := shared(n, size, seed)
		f.noise = 0.02 + 0.1*rng.Float64()
		f.run([]int{0, 3, 12}[rng.IntN(3)])
		var truth []string
		var list []func(a, b, r, k int) float64
		for range 1 + rng.IntN(2) {
			id, fault := draw(rng, n, size)
			truth, list = append(truth, id), append(list, fault)
		}
		f.fault = join(list...)
		got := f.run(2 + rng.IntN(6))
		faults += len(truth)
		for _, x := range got {
			right := slices.Contains(truth, x.ID)
			k := 0
			for k < len(edges) && x.Confidence >= edges[k] {
				k++
			}
			bins[k].n++
			bins[k].confidence += x.Confidence
			if right {
				bins[k].right++
				found++
			}
		}
	}
	t.Logf("%d faults of 35 to 80 %%, 2 to 7 sweeps old: %d named", faults, found)
	for k, b := range bins {
		if b.n == 0 {
			continue
		}
		confidence, right := b.confidence/float64(b.n), float64(b.right)/float64(b.n)
		t.Logf("confidence %d: %4d findings, said %.3f, right %.3f", k, b.n, confidence, right)
		if b.n >= 30 && right < confidence-0.1 {
			t.Errorf("said %.2f, right %.2f", confidence, right)
		}
	}
}

// TestPower prints after how many sweeps a slow node of eight is named, by factor and noise.
func TestPower(t *testing.T) {
	const seeds = 20
	for _, noise := range []float64{0.02, 0.05, 0.1} {
		for _, v := range []float64{0.3, 0.5, 0.7, 0.8} {
			var took []int
			for seed := range uint64(seeds) {
				f := shared(8, 0, seed)
				f.noise = noise
				f.run(12)
				f.fault = out(3, v)
				for k := 1; ; k++ {
					if slices.Contains(ids(f.run(1)), "slow-out:node3") || k == 20 {
						took = append(took, k)
						break
					}
				}
			}
			slices.Sort(took)
			t.Logf("noise %2.0f%%, a sender at %.0f%%: named after %d sweeps in the middle, %d at most", 100*noise, 100*v,
				took[seeds/2], took[seeds-1])
			if v == 0.5 && noise < 0.1 && took[seeds-1] > 2 {
				t.Errorf("%v", took)
			}
		}
	}
}
