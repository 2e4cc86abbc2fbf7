package health

import (
	"math"
	"slices"
)

// trial is what the sweeps say about one cause.
type trial struct {
	fault
	members []int32 // series that it covers and no other chosen cause does
	sum     float64 // the greatest sum of evidence up to the newest sweep
	need    float64 // the sum from which it is reported
	sweeps  int     // that speak for it, since start
	start   uint32  // the sweep at which the sum began
	always  bool    // no sweep before start spoke against it
	good    int     // sweeps in a row, up to the newest, that speak against it
	seen    bool    // any sweep speaks at all
	first   uint32
}

// oneSweep is the most that one sweep may say: the logarithm of how rarely a whole node (or
// leaf) of a healthy fleet is disturbed so much throughout a sweep, or a single sample is.
// Disturbances by a third are common where machines are shared, those by a half are not.
func (s *state) oneSweep(k Kind, mu float64) float64 {
	deep := min(max((math.Log(0.85)-mu)/(math.Log(0.85)-math.Log(0.55)), 0), 1)
	if narrow(k) {
		return math.Log(1/0.04) + deep*math.Log(4)
	}
	return math.Log(1/0.02) + deep*math.Log(10)
}

// falseAlarms is how many of a kind are accepted per sweep of a healthy fleet, before what a
// sweep may say is bounded.
const falseAlarms = 1e-3

// need is the sum at which a cause is reported.
func (s *state) need(k Kind) float64 {
	n := math.Log(s.suspects(k) / falseAlarms)
	if s.fig == latency {
		n += 7 // latencies of shared machines are disturbed for longer: twice the sweeps
	}
	return n
}

// confirm asks all sweeps about causes: those of the present explanation, and others that
// were reported before.
func (s *state) confirm(faults, before []fault) (list, old []*trial) {
	for _, f := range faults {
		list = append(list, &trial{fault: f, need: s.need(f.kind)})
	}
	for _, f := range before {
		old = append(old, &trial{fault: f, need: s.need(f.kind)})
	}
	if len(list)+len(old) == 0 {
		return nil, nil
	}
	var strays []int32
	for i := range s.cells {
		c := &s.cells[i]
		key := s.h.series[c.series].pairKey
		var one *trial
		covered := 0
		for _, t := range list {
			if s.h.covers(t.cause, key) {
				one, covered = t, covered+1
			}
		}
		switch covered {
		case 0:
			strays = append(strays, c.series)
			for _, t := range old {
				if s.h.covers(t.cause, key) {
					t.members = append(t.members, c.series)
				}
			}
		case 1:
			one.members = append(one.members, c.series)
		}
	}
	s.countStrays(strays)
	for _, t := range list {
		if len(t.members) == 0 { // all of it is covered by others too
			for i := range s.cells {
				if c := &s.cells[i]; s.h.covers(t.cause, s.h.series[c.series].pairKey) {
					t.members = append(t.members, c.series)
				}
			}
		}
		s.try(t)
	}
	for _, t := range old {
		s.try(t)
	}
	return list, old
}

// countStrays finds the share of single samples, of pairs that nothing is wrong with, that are
// far below: of all sweeps, and of each. Enough of them are looked at, not all.
func (s *state) countStrays(list []int32) {
	step := 1 + len(list)/5000
	far, all := map[uint32]int{}, map[uint32]int{}
	f, n := 0, 0
	for i := 0; i < len(list); i += step {
		r := &s.h.series[list[i]]
		class := int32(s.h.class(r.pairKey))
		for k := max(0, len(r.samples)-window); k < len(r.samples); k++ {
			p := r.samples[k]
			if !s.h.sweeps.holds(p.sweep) {
				continue
			}
			v, ok := s.residual(r, class, p)
			if !ok {
				continue
			}
			all[p.sweep]++
			n++
			if v < -max(0.15, 4*s.noise[class]) {
				far[p.sweep]++
				f++
			}
		}
	}
	s.stray = max(0.03, float64(f)/float64(max(n, 1)))
	for w, m := range all {
		s.strays[w] = min(max(s.stray, float64(far[w])/float64(m)), 0.5)
	}
}

// try sums the evidence of sweeps about one cause.
func (s *state) try(t *trial) {
	type tally struct {
		sum float64
		n   int
	}
	by := map[uint32]*tally{}
	for _, i := range t.members {
		r := &s.h.series[i]
		class := int32(s.h.class(r.pairKey))
		for _, p := range r.samples {
			if !s.h.sweeps.holds(p.sweep) {
				continue
			}
			v, ok := s.residual(r, class, p)
			if !ok {
				continue
			}
			stray := s.strays[p.sweep]
			if stray == 0 {
				stray = max(s.stray, 0.03)
			}
			l := likelihood{s.noise[class], stray}
			w := by[p.sweep]
			if w == nil {
				w = &tally{}
				by[p.sweep] = w
			}
			w.sum += l.gain(v, t.mu)
			w.n++
		}
	}
	order := make([]uint32, 0, len(by))
	for w := range by {
		order = append(order, w)
	}
	slices.SortFunc(order, func(a, b uint32) int { return int(s.h.sweeps.at(a).order - s.h.sweeps.at(b).order) })
	t.seen = len(order) > 0
	most := s.oneSweep(t.kind, t.mu)
	sum, best, agree := 0.0, 0.0, 0
	good := true
	for k := len(order) - 1; k >= 0; k-- {
		w := order[k]
		l := by[w].sum
		bound := most
		if narrow(t.kind) {
			bound = min(bound, math.Log(1/s.strays1(w)))
		}
		if partial(t.kind) && t.slow < t.total {
			// Some of its pairs are spared: the evidence is of those that are not.
			l = l * float64(t.slow) / float64(max(t.total, 1))
		}
		l = min(max(l, -most), bound)
		if l < 0 && good {
			t.good++
		} else {
			good = false
		}
		sum += l
		if l > 0 {
			agree++
		}
		if sum > best {
			best, t.start, t.sweeps = sum, w, agree
		}
		t.first = w
	}
	t.sum = best
	t.always = best > 0 && t.start == t.first
}

func (s *state) strays1(w uint32) float64 {
	if v := s.strays[w]; v > 0 {
		return v
	}
	return max(s.stray, 0.03)
}

// confirmed tells whether a cause is to be reported.
func (t *trial) confirmed() bool { return t.sum >= t.need && t.sweeps >= 2 }
