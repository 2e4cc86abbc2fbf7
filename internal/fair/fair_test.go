package fair

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestShares(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		caps  []float64
		flows [][]int32
		own   []float64
		want  []float64
	}{
		{"one link, two flows", []float64{10}, [][]int32{{0}, {0}}, []float64{inf, inf}, []float64{5, 5}},
		{"a flow with a cap leaves the rest", []float64{10}, [][]int32{{0}, {0}}, []float64{2, inf}, []float64{2, 8}},
		{
			"the long flow gets the least",
			[]float64{10, 4},
			[][]int32{{0, 1}, {0}, {1}},
			[]float64{inf, inf, inf},
			[]float64{2, 8, 2},
		},
		{"no links", nil, [][]int32{{}}, []float64{7}, []float64{7}},
		{"nothing limits", nil, [][]int32{{}}, []float64{inf}, []float64{inf}},
		{"a dead link", []float64{0, 5}, [][]int32{{0}, {1}}, []float64{inf, inf}, []float64{0, 5}},
	} {
		var s Solver
		var flows []Flow
		for i, links := range c.flows {
			from := int32(len(s.Links))
			s.Links = append(s.Links, links...)
			flows = append(flows, Flow{from, int32(len(s.Links)), c.own[i]})
		}
		got := make([]float64, len(flows))
		s.Rates(c.caps, flows, got)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 && got[i] != c.want[i] {
				t.Errorf("%s: flow %d has %g; expected %g", c.name, i, got[i], c.want[i])
			}
		}
	}
}

// TestMaxMin holds random solutions to the definition: no link is overfull, and
// every flow is at its own limit or meets a full link on which nobody has more.
func TestMaxMin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s Solver
	for range 2000 {
		caps := make([]float64, 1+rng.IntN(8))
		for i := range caps {
			caps[i] = 1 + 9*rng.Float64()
		}
		s.Links, s.Weights = s.Links[:0], nil
		weights := rng.IntN(2) == 0
		var ws []float64
		var flows []Flow
		for range 1 + rng.IntN(12) {
			from := int32(len(s.Links))
			for l := range caps {
				if rng.IntN(3) == 0 {
					s.Links = append(s.Links, int32(l))
					ws = append(ws, 0.5+rng.Float64())
				}
			}
			own := math.Inf(1)
			if rng.IntN(3) == 0 || from == int32(len(s.Links)) {
				own = 5 * rng.Float64()
			}
			flows = append(flows, Flow{from, int32(len(s.Links)), own})
		}
		if weights {
			s.Weights = ws
		}
		rate := make([]float64, len(flows))
		s.Rates(caps, flows, rate)
		used := make([]float64, len(caps))
		most := make([]float64, len(caps))
		for i, f := range flows {
			for k := f.From; k < f.To; k++ {
				used[s.Links[k]] += rate[i] * s.cost(k)
				most[s.Links[k]] = max(most[s.Links[k]], rate[i])
			}
		}
		for l := range caps {
			if used[l] > caps[l]*(1+1e-6) {
				t.Fatalf("link %d carries %g of %g", l, used[l], caps[l])
			}
		}
		for i, f := range flows {
			fixed := rate[i] >= f.Cap*(1-1e-6)
			for k := f.From; k < f.To && !fixed; k++ {
				l := s.Links[k]
				fixed = used[l] >= caps[l]*(1-1e-6) && rate[i] >= most[l]*(1-1e-6)
			}
			if !fixed {
				t.Fatalf("flow %d has %g and could have more", i, rate[i])
			}
		}
	}
}

func BenchmarkRates(b *testing.B) {
	var s Solver
	caps := make([]float64, 1024)
	flows := make([]Flow, 512)
	for i := range caps {
		caps[i] = float64(1 + i%7)
	}
	for i := range flows {
		from := int32(len(s.Links))
		s.Links = append(s.Links, int32(2*i), int32(2*i+1), int32((2*i+2)%1024))
		flows[i] = Flow{from, int32(len(s.Links)), math.Inf(1)}
	}
	rate := make([]float64, len(flows))
	for range b.N {
		s.Rates(caps, flows, rate)
	}
}
