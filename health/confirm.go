package health

import (
	"math"
	"slices"
	"sort"

	"busbar/pairs"
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
	bar     float64 // the most that may be left where it always was so
	good    int     // sweeps in a row, up to the newest, that speak against it
	seen    bool    // any sweep speaks at all
}

// oneSweep is the most that one sweep may say: the logarithm of how rarely a whole node (or
// leaf) of a healthy fleet is disturbed so much throughout a sweep, or a single sample is.
// Disturbances by a third are common where machines are shared, those by a half are not.
func (s *state) oneSweep(k Kind, mu float64) float64 {
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

// slack is the part of a fault's depth from which on others looked alike.
const slack = 0.7

// below is how many of a sorted list are at most v.
func below(list []float32, v float64) int {
	return sort.Search(len(list), func(i int) bool { return float64(list[i]) > v })
}

// falseAlarms is how many of a kind are accepted per sweep of a healthy fleet, before what a
// sweep may say is bounded.
const falseAlarms = 1e-3

// need is the sum at which a cause is reported.
func (s *state) need(k Kind) float64 {
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
	now, past := newCover(s.h, list), newCover(s.h, old)
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
			one.members = append(one.members, id)
		}
	}
	s.countStrays(strays)
	s.countUpsets(now)
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

// cover finds the causes of a pair; those of single pairs are many, and looked up.
type cover struct {
	h      *History
	wide   []*trial
	narrow map[[2]int32]*trial
}

func newCover(h *History, list []*trial) *cover {
	c := &cover{h: h, narrow: map[[2]int32]*trial{}}
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
func (c *cover) of(k pairKey) (one *trial, n int) {
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
func (c *cover) all(k pairKey) (list []*trial) {
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

// countStrays finds the share of single samples, of pairs that nothing is wrong with, that are
// far below: of all sweeps, and of each. Enough of them are looked at, not all.
func (s *state) countStrays(list []int32) {
	step := 1 + len(list)/5000
	far, all := map[uint32]int{}, map[uint32]int{}
	f, n := 0, 0 // of all sweeps together
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
			s.singles = append(s.singles, float32(v))
			if v < -max(0.15, 4*s.noise[class]) {
				far[p.sweep]++
				f++
			}
		}
	}
	s.far, s.all, s.every = far, all, step
	slices.Sort(s.singles)
	s.stray = share3(f, n)
}

// share3 is a share of strays, not below 3 %: few samples do not show the rare ones.
func share3(far, all int) float64 {
	return min(max(0.03, float64(far)/float64(max(all, 1))), 0.5)
}

// strayed is how likely a sample of a sweep is a stray; own are those of the cause that is
// asked about, which do not testify for themselves.
func (s *state) strayed(w uint32, own int) float64 {
	if s.every > 1 {
		own = 0
	}
	return max(s.stray, share3(s.far[w]-own, s.all[w]))
}

// countUpsets gathers what nodes that nothing is wrong with showed in single sweeps, each by
// the middle of what it sent and of what it received. A few dozen nodes are enough.
func (s *state) countUpsets(now *cover) {
	const most = 64
	type row struct {
		node, way int32
		sweep     uint32
	}
	rows := map[row][]float32{}
	for i := range s.cells {
		r := &s.h.series[s.cells[i].series]
		if r.from >= most || r.to >= most {
			continue
		}
		if one, n := now.of(r.pairKey); n > 1 || n == 1 && !narrow(one.kind) {
			continue
		}
		for k := max(0, len(r.samples)-window); k < len(r.samples); k++ {
			p := r.samples[k]
			if !s.h.sweeps.holds(p.sweep) {
				continue
			}
			if v, ok := s.residual(r, s.cells[i].class, p); ok {
				out, in := row{r.from, 0, p.sweep}, row{r.to, 1, p.sweep}
				rows[out], rows[in] = append(rows[out], float32(v)), append(rows[in], float32(v))
			}
		}
	}
	for _, list := range rows {
		if len(list) > 2 {
			s.upsets = append(s.upsets, quantile(list, 0.5))
		}
	}
	slices.Sort(s.upsets)
}

// try sums the evidence of sweeps about one cause.
func (s *state) try(t *trial) {
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
			l := likelihood{s.noise[class], s.strayed(p.sweep, 0)}
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
	t.seen = len(order) > 0
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
			bound = min(bound, math.Log(1/s.strayed(w, by[w].far)))
			if t.kind == pairs.SlowPair {
				bound *= 1.6 // two samples, which are disturbed together at times
			}
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
	}
	t.sum = best
	var before []float32 // what its pairs showed before it began
	for _, w := range order {
		if w == t.start {
			break
		}
		before = append(before, float32(by[w].all/float64(by[w].n)))
	}
	t.always = best > 0 && (len(before) == 0 || float64(quantile(before, 0.5)) < 0.4*t.mu)
	t.bar = math.Log(0.75)
	if narrow(t.kind) && len(t.members) > 0 {
		class := s.h.class(s.h.series[t.members[0]].pairKey)
		t.bar = min(math.Log(0.65), -6*max(s.noise[class], s.spread[class]))
	}
}

// confirmed tells whether a cause is to be reported. Who was always slower than its peers must
// be so by more than who became slower: machines differ.
func (t *trial) confirmed() bool {
	return t.sum >= t.need && t.sweeps >= 2 && (!t.always || t.mu <= t.bar)
}
