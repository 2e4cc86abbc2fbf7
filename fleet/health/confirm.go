package health

import (
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
)

// trial is what the sweeps say about one cause.
type trial struct {
	fault
	members []int32 // series that it covers and no other chosen cause does
	sum     float64 // the greatest sum of evidence up to the newest sweep
	need    float64 // the sum from which it is reported
	sweeps  int     // that speak for it, since start
	start   uint32  // the sweep at which the sum began
	always  bool    // it was so when first seen, as far as can be told
	level   float64 // what its pairs show in the middle since start, as mu
	bar     float64 // the most that may be left
	good    int     // sweeps in a row, up to the newest, that speak against it
}

// some tells whether a cause of leaves spares many of its pairs.
func (t *trial) some() bool {
	return partial(t.kind) && float64(t.slow) < 0.9*float64(t.total)
}

// oneSweep is the most that one sweep may say: the logarithm of how rarely a whole node (or
// leaf) of a healthy fleet is disturbed so much throughout a sweep, or a single sample is.
// Disturbances by a third are common where machines are shared, those by a half are not.
func (s *state) oneSweep(k finding.Kind, mu float64) float64 {
	deep := min(max((math.Log(0.85)-mu)/(math.Log(0.85)-math.Log(0.55)), 0), 1)
	deep *= deep * deep
	if narrow(k) {
		return math.Log(1/0.04) + deep*math.Log(4)
	}
	most := math.Log(1/0.1) + deep*math.Log(50)
	if sides(k) == 1 {
		// What other nodes of this fleet showed lately counts more than what is usual.
		if n := below(s.upsets, slack*mu); n > 0 {
			most = min(most, math.Log(float64(len(s.upsets))/float64(n)))
		}
	}
	return most
}

// falseAlarms is how many of a kind are accepted per sweep of a healthy fleet, before what a
// sweep may say is bounded.
const falseAlarms = 1e-3

// need is the sum at which a cause is reported.
func (s *state) need(k finding.Kind) float64 {
	n := math.Log(s.suspects(k) / falseAlarms)
	if narrow(k) {
		n += 4.6 // a hundredth: one pair among many hurts less, and has fewer samples to tell by
	}
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
	now, past := newCauseFinder(s.h, list), newCauseFinder(s.h, old)
	var strays []int32
	for i := range s.cells {
		id := s.cells[i].series
		key := s.h.series[id].pairKey
		one, n := now.of(key)
		if n == 0 || n == 1 && narrow(one.kind) {
			strays = append(strays, id) // many pairs that are slow on their own are a disturbance
		}
		switch n {
		case 0:
			for _, t := range past.all(key) {
				t.members = append(t.members, id)
			}
		case 1:
			if one.some() && float64(s.cells[i].x) > one.mu/2 {
				strays = append(strays, id) // it takes another of several links
				break
			}
			one.members = append(one.members, id)
		}
	}
	s.countOutliers(strays)
	if slices.ContainsFunc(slices.Concat(list, old), func(t *trial) bool { return sides(t.kind) == 1 }) {
		s.countSlowSweeps(now)
	}
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

// causeFinder finds the causes of a pair; those of single pairs are many, and looked up.
type causeFinder struct {
	h      *History
	wide   []*trial
	narrow map[[2]int32]*trial
}

func newCauseFinder(h *History, list []*trial) *causeFinder {
	c := &causeFinder{h: h, narrow: map[[2]int32]*trial{}}
	for _, t := range list {
		if !narrow(t.kind) {
			c.wide = append(c.wide, t)
			continue
		}
		c.narrow[[2]int32{t.a, t.b}] = t
		if t.kind == pairs.SlowPair {
			c.narrow[[2]int32{t.b, t.a}] = t
		}
	}
	return c
}

// of is a cause of a pair, and how many there are.
func (c *causeFinder) of(k pairKey) (one *trial, n int) {
	for _, t := range c.wide {
		if c.h.covers(t.cause, k) {
			one, n = t, n+1
		}
	}
	if len(c.narrow) > 0 {
		if t := c.narrow[[2]int32{k.from, k.to}]; t != nil {
			one, n = t, n+1
		}
	}
	return one, n
}

// all are the causes of a pair.
func (c *causeFinder) all(k pairKey) (list []*trial) {
	for _, t := range c.wide {
		if c.h.covers(t.cause, k) {
			list = append(list, t)
		}
	}
	if len(c.narrow) > 0 {
		if t := c.narrow[[2]int32{k.from, k.to}]; t != nil {
			list = append(list, t)
		}
	}
	return list
}

// try sums the evidence of sweeps about one cause.
func (s *state) try(t *trial) {
	if t.some() {
		t.need += 4.6 // as for single pairs
	}
	type tally struct {
		sum, all float64
		n, far   int
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
			l := likelihood{s.noise[class], s.outlierProbability(p.sweep, 0)}
			w := by[p.sweep]
			if w == nil {
				w = &tally{}
				by[p.sweep] = w
			}
			w.sum += l.gain(max(v, t.mu), t.mu) // slower still speaks for it as much
			w.all += v
			w.n++
			if v < -max(0.15, 4*s.noise[class]) {
				w.far++
			}
		}
	}
	order := make([]uint32, 0, len(by))
	for w := range by {
		order = append(order, w)
	}
	slices.SortFunc(order, func(a, b uint32) int { return int(s.h.sweeps.at(a).order - s.h.sweeps.at(b).order) })
	most := s.oneSweep(t.kind, t.mu)
	if narrow(t.kind) {
		own := 0 // of the last sweeps: they do not testify for themselves
		for _, w := range order[max(0, len(order)-window):] {
			own += by[w].far
		}
		if n := below(s.singles, slack*t.mu) - own; n > 0 && s.every == 1 {
			most = min(most, math.Log(float64(len(s.singles))/float64(n)))
		}
	}
	sum, best, agree := 0.0, 0.0, 0
	good := true
	for k := len(order) - 1; k >= 0; k-- {
		w := order[k]
		l := by[w].sum
		bound := most
		if narrow(t.kind) {
			bound = min(bound, math.Log(1/s.outlierProbability(w, by[w].far)))
			if t.kind == pairs.SlowPair {
				bound *= 1.6 // two samples, which are disturbed together at times
			}
		}
		if t.some() {
			// Its pairs were picked for being slow: in a sweep in which many others are too,
			// that says little.
			bound = min(bound, 1.5*math.Log(1/s.outlierProbability(w, 0)))
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
	}
	t.sum = best
	if best <= 0 {
		return
	}
	var before, since []float32 // what its pairs showed before it began, and since
	for _, w := range order {
		v := float32(by[w].all / float64(by[w].n))
		if s.h.sweeps.at(w).order < s.h.sweeps.at(t.start).order {
			before = append(before, v)
		} else {
			since = append(since, v)
		}
	}
	t.level = float64(stats.Nearest(since, 0.5))
	t.always = len(before) == 0 || float64(stats.Nearest(before, 0.5)) < 0.4*t.level
	t.bar = s.limit(t)
}

// limit is how much a cause may leave to be reported. Who was always slower than its peers
// must be so by more than who became slower: machines differ.
func (s *state) limit(t *trial) float64 {
	class := int32(s.h.class(s.h.series[t.members[0]].pairKey))
	switch {
	case narrow(t.kind) && t.always:
		return min(math.Log(0.65), -6*max(s.noise[class], s.spread[class]))
	case narrow(t.kind):
		return s.alone(class)
	case t.always:
		return min(s.worth(), math.Log(0.75))
	}
	return s.worth()
}

// confirmed tells whether a cause is to be reported.
func (t *trial) confirmed() bool { return t.sum >= t.need && t.sweeps >= 2 && t.level <= t.bar }
