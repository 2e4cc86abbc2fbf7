package health

import (
	"maps"
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
	start   *sweep  // the sweep at which the sum began; nil where all its pairs are explained by others
	always  bool    // it was so when first seen, as far as can be told
	level   float64 // what its pairs show in the middle since start, as mu
	bar     float64 // the most that may be left
	good    int     // sweeps in a row, up to the newest, that speak against it
}

// confirmed tells whether a cause is to be reported.
func (t *trial) confirmed() bool { return t.sum >= t.need && t.sweeps >= 2 && t.level <= t.bar }

// oneSweep is the most that one sweep may say: the logarithm of how rarely a whole node (or
// leaf) of a healthy fleet is disturbed so much throughout a sweep, or a single sample is.
// Disturbances by a third are common where machines are shared, those by a half are not.
func (t *trial) oneSweep() float64 {
	deep := min(max((math.Log(0.85)-t.mu)/(math.Log(0.85)-math.Log(0.55)), 0), 1)
	deep *= deep * deep
	if t.narrow() {
		return math.Log(1/0.04) + deep*math.Log(4)
	}
	return math.Log(1/0.1) + deep*math.Log(50)
}

const (
	// falseAlarms is how many of a kind are accepted per sweep of a healthy fleet, before what a
	// sweep may say is bounded.
	falseAlarms = 1e-3
	hundredth   = 4.6 // of them, as a logarithm
)

// trials are causes of which the sweeps are asked.
func (s *state) trials(faults []fault) (list []*trial) {
	for _, f := range faults {
		t := &trial{fault: f, need: math.Log(s.suspects(f.domain) / falseAlarms), level: f.mu}
		if f.narrow() || f.some() {
			t.need += hundredth // one pair among many hurts less, and has fewer samples to tell by
		}
		list = append(list, t)
	}
	return list
}

// confirm asks all sweeps about causes: those of the present explanation, and others that
// were reported before.
func (s *state) confirm(now, before []*trial) {
	if len(now)+len(before) == 0 {
		return
	}
	var healthy []int32
	var list []*trial
	for i := range s.cells {
		id := s.cells[i].series
		key := s.series[id].pairKey
		list = s.covering(now, key, list[:0])
		spared := len(list) == 1 && list[0].some() && float64(s.cells[i].x) > list[0].mu/2
		if len(list) == 0 || spared || len(list) == 1 && list[0].narrow() {
			// Many pairs that are slow on their own are a disturbance; what is spared takes another of several links.
			healthy = append(healthy, id)
		}
		switch {
		case len(list) == 0:
			list = s.covering(before, key, list)
		case len(list) > 1 || spared:
			continue
		}
		for _, t := range list {
			t.members = append(t.members, id)
		}
	}
	s.countOutliers(healthy)
	for _, t := range slices.Concat(now, before) {
		s.try(t)
	}
}

// covering appends the causes that a pair suffers under.
func (t *table) covering(causes []*trial, k pairKey, list []*trial) []*trial {
	for _, c := range causes {
		// Those of single pairs are many: most are passed over at once.
		if (!c.narrow() || c.a == k.from || c.a == k.to) && t.covers(c.cause, k) {
			list = append(list, c)
		}
	}
	return list
}

// evidence is what the pairs of a cause show in one sweep.
type evidence struct {
	gain, sum float64
	n, far    int
}

// try sums the evidence of sweeps about one cause.
func (s *state) try(t *trial) {
	by := map[*sweep]*evidence{}
	for _, i := range t.members {
		r := &s.series[i]
		noise := s.scatter[r.class].noise
		for sweep, v := range s.residuals(r, len(r.samples)) {
			w := by[sweep]
			if w == nil {
				w = &evidence{}
				by[sweep] = w
			}
			// Slower still speaks for it as much.
			w.gain += likelihood{noise, s.outlierProbability(sweep, 0)}.gain(max(v, t.mu), t.mu)
			w.sum += v
			w.n++
			if s.isOutlier(r, v) {
				w.far++
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(by), func(a, b *sweep) int { return int(a.order - b.order) })
	if len(order) > 0 {
		t.start = order[0] // a reported fault without evidence in any sweep begins with the first
	}
	most := t.oneSweep()
	sum, agree, good := 0.0, 0, true
	for _, w := range slices.Backward(order) {
		l := min(max(by[w].gain, -most), s.bound(t, w, by[w].far, most))
		if good = good && l < 0; good {
			t.good++
		}
		if l > 0 {
			agree++
		}
		if sum += l; sum > t.sum {
			t.sum, t.start, t.sweeps = sum, w, agree
		}
	}
	if t.sum <= 0 {
		return
	}
	var before, since []float32 // what its pairs showed before it began, and since
	for _, w := range order {
		list := &since
		if w.order < t.start.order {
			list = &before
		}
		*list = append(*list, float32(by[w].sum/float64(by[w].n)))
	}
	t.level = middle(since)
	t.always = len(before) == 0 || middle(before) < 0.4*t.level
	t.bar = s.limit(t)
}

// bound is the most that one sweep, in which so many samples of a cause are far below, may say for it.
func (s *state) bound(t *trial, sweep *sweep, far int, most float64) float64 {
	switch {
	case t.domain == ofPair: // two samples, which are disturbed together at times
		return 1.6 * min(most, math.Log(1/s.outlierProbability(sweep, far)))
	case t.narrow():
		return min(most, math.Log(1/s.outlierProbability(sweep, far)))
	case t.some():
		// Its pairs were picked for being slow: in a sweep in which many others are too,
		// that says little.
		return min(most, 1.5*math.Log(1/s.outlierProbability(sweep, 0)))
	}
	return most
}

// limit is how much a cause may leave to be reported. Who was always slower than its peers
// must be so by more than who became slower: machines differ.
func (s *state) limit(t *trial) float64 {
	class := s.series[t.members[0]].class
	switch {
	case t.narrow() && t.always:
		return min(math.Log(0.65), -6*s.scatter[class].widest())
	case t.narrow():
		return s.alone(class)
	case t.always:
		return min(worth, math.Log(0.75))
	}
	return worth
}
