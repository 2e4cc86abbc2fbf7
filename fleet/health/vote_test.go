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

// TestOneNodeDrainsNobody has one node of eight say what it likes of its own pairs and ports: no other node is drained
// by its word alone.
func TestOneNodeDrainsNobody(t *testing.T) {
	const evil, victim = 0, 3
	for name, lie := range map[string]func(peer, sweep, rail int) float64{ // of the true rate
		"the victim is slow":           func(peer, _, _ int) float64 { return pick(peer == victim, 0.3) },
		"all but the victim are fast":  func(peer, _, _ int) float64 { return pick(peer != victim, 2) },
		"all are fast, the victim not": func(peer, _, _ int) float64 { return pick(peer == victim, 0.25) * 2 },
		"noise, and the victim slow": func(peer, sweep, rail int) float64 {
			return pick((sweep+rail)%2 == 0, 0.5) * pick(peer == victim, 0.4)
		},
	} {
		for _, rails := range []int{1, 32} {
			for _, noise := range []float64{0.03, 0.15} {
				h := New(0)
				rng := rand.New(rand.NewPCG(1, 1))
				for k := range 30 {
					for a := range 8 {
						for b := range 8 {
							s := Sample{Sweep: fmt.Sprint(k), Time: at(k), From: fmt.Sprint("n", a), To: fmt.Sprint("n", b)}
							honest := 12e9 * math.Exp(noise*rng.NormFloat64())
							if a != evil && b != evil {
								s.Rate = unit.Rate(honest)
								h.Add(s)
								continue
							}
							for r := range rails {
								if r > 0 {
									s.Rail = fmt.Sprint("made-up", r)
								}
								s.Rate = unit.Rate(12e9 * pick(k >= 15, lie(a+b, k, r)))
								if k < 15 {
									s.Rate = unit.Rate(honest)
								}
								h.Add(s)
							}
						}
					}
					bad := slices.DeleteFunc(h.Unhealthy(at(k)), func(n string) bool { return n == "n0" })
					if len(bad) > 0 {
						t.Errorf("%s, over %d rails, noise of %v, sweep %d: %v would be drained", name, rails, noise, k, bad)
						break
					}
				}
			}
		}
	}
	// All ports have errors: the fabric's, until a node claims many that have none.
	h := New(0)
	for m := range 61 {
		now := began.Add(time.Duration(m) * time.Minute)
		for i := 1; i < 8; i++ {
			h.Count(name(i), "mlx5_0", "symbol_error", uint64(1000*m), now)
		}
		for p := range 200 {
			h.Count(name(evil), fmt.Sprint("made-up", p), "symbol_error", 0, now)
		}
	}
	if bad := h.Unhealthy(began.Add(time.Hour)); len(bad) > 0 {
		t.Errorf("%v would be drained for errors that all have", bad)
	}
}
