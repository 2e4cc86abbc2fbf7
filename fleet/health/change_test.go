package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"busbar.dev/unit"
)

// levels is a history with the given levels in GB/s, each for ten samples, with some scatter.
func levels(r *rand.Rand, spread float64, rates ...float64) []Point {
	var list []Point
	for _, v := range rates {
		for range 10 {
			at := time.Date(2026, 1, 1, 0, 10*len(list), 0, 0, time.UTC)
			list = append(list, Point{
				Sweep: fmt.Sprint(len(list)), Time: at, Rate: unit.Rate(1e9 * v * math.Exp(spread*r.NormFloat64())),
			})
		}
	}
	return list
}

func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []float64
		spoil  func([]Point)
		want   string // the sample and the levels before and after
	}{
		{"steady", []float64{10, 10, 10, 10}, nil, ""},
		{"halved", []float64{10, 10, 5, 5}, nil, "20: 10→5"},
		{"halved and mended", []float64{10, 5, 10}, nil, "10: 10→5 20: 5→10"},
		{"a tenth slower", []float64{10, 10, 9, 9}, nil, "20: 10→9"},
		{"a hundredth slower", []float64{10, 10, 9.9, 9.9}, nil, ""},
		{"a stray", []float64{10, 10, 10}, func(p []Point) { p[14].Rate /= 8 }, ""},
		{"another size", []float64{10, 10, 5}, func(p []Point) {
			for i := range p[:20] {
				p[i].Setup = "4 MiB messages"
			}
		}, ""},
		{"another size between", []float64{10, 10, 10, 5}, func(p []Point) {
			for i := 3; i < 40; i += 4 {
				p[i].Setup, p[i].Rate = "8 KiB messages", p[i].Rate/9
			}
			p[39].Setup, p[39].Rate = "", 5e9
		}, "30: 10→5"},
		{
			"failures", []float64{10, 10, 5}, func(p []Point) { p[3].Failed, p[3].Rate = true, 0; p[25].Rate = 0 }, "20: 10→5",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(50) {
				list := levels(rand.New(rand.NewPCG(seed, 1)), 0.01, c.levels...)
				if c.spoil != nil {
					c.spoil(list)
				}
				var got []string
				for _, x := range Changes(list) {
					got = append(got, fmt.Sprintf("%.0f: %.0f→%.0f", x.Time.Sub(list[0].Time).Minutes()/10, x.Before.GBps(),
						x.After.GBps()))
				}
				if text := strings.Join(got, " "); text != c.want {
					t.Errorf("seed %d: %s; want %s", seed, text, c.want)
				}
			}
		})
	}
}

// TestChangesOfNoise holds that scatter alone is seldom taken for a change, however wide it is.
func TestChangesOfNoise(t *testing.T) {
	const tries = 400
	for _, spread := range []float64{0.005, 0.03, 0.2} {
		wrong := 0
		for seed := range uint64(tries) {
			r := rand.New(rand.NewPCG(seed, 2))
			if len(Changes(levels(r, spread, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10))) > 0 {
				wrong++
			}
		}
		t.Logf("scatter of %g: %d of %d steady histories of 100 samples are said to have changed", spread, wrong, tries)
		if wrong > tries/50 {
			t.Errorf("scatter of %g: %d of %d", spread, wrong, tries)
		}
	}
}

func TestChangesOfLittle(t *testing.T) {
	for n := range 6 {
		if got := Changes(levels(rand.New(rand.NewPCG(1, 1)), 0, 10)[:n]); got != nil {
			t.Errorf("%d samples: %v", n, got)
		}
	}
	if got := Changes(levels(rand.New(rand.NewPCG(1, 1)), 0, 10)); got != nil {
		t.Errorf("equal samples: %v", got)
	}
}
