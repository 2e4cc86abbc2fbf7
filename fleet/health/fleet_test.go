package health

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// began is when simulated fleets begin.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fleet is a simulated fleet: what its pairs show is 12 GB/s times faults, whole sweeps that
// are slow because the machine was busy, noise of single samples and strays.
type fleet struct {
	n, leaf int // nodes, and how many of them a leaf has; 0 leaves unknown
	rails   []string
	noise   float64 // of one sample, as a logarithm
	stray   float64 // the share of samples that a disturbance takes 30 % of
	busy    float64 // the share of sweeps that are slow as a whole
	upset   float64 // the share of nodes whose pairs are all slow in one sweep
	spells  float64 // the share of sweeps of which a part, in time, is slow by a half
	uneven  float64 // how much pairs differ for good, as a logarithm
	cross   float64 // what pairs across leaves have; 0 is all
	fault   func(a, b, rail, sweep int) float64
	fails   func(a, b, sweep int) bool
	rng     *rand.Rand
	h       *History
	sweeps  int
	each    func(t time.Time)   // called after every sample, where set
	every   time.Duration       // between sweeps; 0 is five minutes
	weather func(k int) float64 // what a whole sweep has, where set
	setup   string
	by      string // the transport
}

// shared is a fleet as measured on a shared machine.
func shared(n, leaf int, seed uint64) *fleet {
	f := &fleet{
		n: n, leaf: leaf, noise: 0.05, stray: 0.03, busy: 0.15, upset: 0.003, cross: 0.8,
		rng: rand.New(rand.NewPCG(seed, 77)), h: New(0),
	}
	if leaf > 0 {
		for i := range n {
			f.h.SetPlace(name(i), Place{Leaf: fmt.Sprintf("leaf%d", i/leaf), Type: "h100"})
		}
	}
	return f
}

func name(i int) string { return fmt.Sprintf("node%d", i) }

// at is when sweep k begins; sweeps are five minutes apart.
func at(k int) time.Time { return began.Add(time.Duration(k) * 5 * time.Minute) }

// sweep measures all pairs once and says when.
func (f *fleet) sweep() time.Time {
	k := f.sweeps
	f.sweeps++
	now := f.at(k)
	all := 1.0
	if f.weather != nil {
		all = f.weather(k)
	}
	if f.rng.Float64() < f.busy {
		all *= 0.4 + 0.5*f.rng.Float64()
	}
	upset := make([]float64, f.n)
	for i := range upset {
		upset[i] = 1
		if f.rng.Float64() < f.upset {
			upset[i] = 0.6 + 0.3*f.rng.Float64()
		}
	}
	spell, when := f.rng.Float64() < f.spells, f.rng.IntN(f.n)
	rails := f.rails
	if rails == nil {
		rails = []string{""}
	}
	for a := range f.n {
		for b := range f.n {
			if a == b {
				continue
			}
			for r, rail := range rails {
				s := Sample{
					Sweep: fmt.Sprintf("s%d", k), Time: now, From: name(a), To: name(b), Rail: rail, Setup: f.setup, By: f.by,
				}
				if f.fails != nil && f.fails(a, b, k) {
					s.Error = "connection timed out"
				} else {
					v := 12 * all * min(upset[a], upset[b]) * math.Exp(f.noise*f.rng.NormFloat64())
					if f.leaf > 0 && a/f.leaf != b/f.leaf && f.cross > 0 {
						v *= f.cross
					}
					if f.rng.Float64() < f.stray {
						v *= 0.7
					}
					if spell && (a+b+when)%f.n < f.n/3 { // pairs of one round have one sum: see pairs.Rounds
						v *= 0.5
					}
					if f.uneven > 0 {
						v *= math.Exp(f.uneven * rand.New(rand.NewPCG(uint64(a), uint64(b))).NormFloat64())
					}
					if f.fault != nil {
						v *= f.fault(a, b, r, k)
					}
					s.Rate = unit.Rate(v) * unit.GBps
					s.Latency = unit.Time(20e6 * math.Exp(0.15*f.rng.NormFloat64()) / all)
				}
				f.h.Add(s)
				if f.each != nil {
					f.each(s.Time)
				}
			}
		}
	}
	return now.Add(time.Minute)
}

// at is when sweep k of this fleet begins.
func (f *fleet) at(k int) time.Time {
	return began.Add(time.Duration(k) * cmp.Or(f.every, 5*time.Minute))
}

// run makes sweeps and returns the findings after the last.
func (f *fleet) run(sweeps int) []finding.Finding {
	var list []finding.Finding
	for range sweeps {
		list = f.h.Findings(f.sweep())
	}
	return list
}

func ids(list []finding.Finding) []string {
	out := []string{}
	for _, f := range list {
		out = append(out, f.ID)
	}
	return out
}
