package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"busbar.dev/unit"
)

// big is a fleet of n nodes in leaves of 32 with full tables of pairs.
func big(n, sweeps int, bad func(a, b int) float64) (h *History, add func(k int)) {
	h = New(0)
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range n {
		h.SetPlace(name(i), Place{Leaf: fmt.Sprintf("leaf%d", i/32), Type: "h100"})
	}
	add = func(k int) {
		id := fmt.Sprintf("s%d", k)
		for a := range n {
			from := name(a)
			for b := range n {
				if a == b {
					continue
				}
				v := 12e9 * math.Exp(0.03*rng.NormFloat64())
				if rng.Float64() < 0.02 {
					v *= 0.7
				}
				h.Add(Sample{
					Sweep: id, Time: at(k), From: from, To: h.nodes.list[b], Rate: unit.Rate(v * bad(a, b)), Latency: 20e6,
				})
			}
		}
	}
	for k := range sweeps {
		add(k)
	}
	return h, add
}

// BenchmarkFindings is one answer after a whole sweep of new figures.
func BenchmarkFindings(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
		bad  func(a, b int) float64
	}{
		{"100/healthy", 100, func(a, b int) float64 { return 1 }},
		{"1000/healthy", 1000, func(a, b int) float64 { return 1 }},
		{"1000/leaf", 1000, func(a, b int) float64 { return pick((a/32 == 3) != (b/32 == 3), 0.5) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			h, add := big(c.n, 6, c.bad)
			h.Findings(at(6))
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			k := 6
			for b.Loop() {
				b.StopTimer()
				add(k)
				k++
				b.StartTimer()
				h.Findings(at(k).Add(time.Minute))
			}
			b.ReportMetric(float64(m.HeapInuse)/1e6, "MB")
			b.ReportMetric(float64(h.Size().Memory)/1e6, "kept-MB")
		})
	}
}

// BenchmarkPlaces is an answer after a node changed its place, which it may do as often as it likes.
func BenchmarkPlaces(b *testing.B) {
	h, _ := big(60, 400, func(a, b int) float64 { return 1 })
	k := 0
	for b.Loop() {
		k++
		h.SetPlace("node1", Place{Leaf: fmt.Sprintf("leaf%d", k%2), Type: "h100"})
		h.Findings(at(401))
	}
}

func BenchmarkAdd(b *testing.B) {
	h, _ := big(100, 20, func(a, b int) float64 { return 1 })
	k := 0
	for b.Loop() {
		k++
		h.Add(Sample{Sweep: "s19", Time: at(19), From: "node1", To: "node2", Rate: 12e9})
	}
}
