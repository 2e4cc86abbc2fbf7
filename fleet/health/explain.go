package health

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
)

// worth is how much of the usual a cause must leave at most to be named, as in package pairs;
// latencies scatter more.
func (s *state) worth() float64 {
	if s.fig == latency {
		return math.Log(0.5)
	}
	return math.Log(0.85)
}

// alone is how low a pair of its own must be: it has few samples to tell by.
func (s *state) alone(class int32) float64 {
	return min(s.worth(), math.Log(0.75), -4.5*max(s.noise[class], s.spread[class]))
}

// likelihood says how cells come about: healthy ones scatter around 0 by scale, and some few
// are disturbed; those under a cause scatter around mu, and some few are healthy all the same.
type likelihood struct {
	scale float64
	stray float64
}

const (
	spared  = 0.02 // of the cells under a cause show nothing of it
	uneven  = 0.12 // how cells under a cause scatter, at least
	strayed = 0.35 // the mean of a disturbance, as a logarithm
)

func normal(x, mean, s float64) float64 {
	z := (x - mean) / s
	return math.Exp(-z*z/2) / (s * 2.5066)
}

// well is the density of a figure without a fault.
func (l likelihood) well(x float64) float64 {
	far := 0.03
	if x < 0 {
		far = 0.5*math.Exp(x/strayed)/strayed + 0.06
	}
	return (1-l.stray)*normal(x, 0, l.scale) + l.stray*far
}

// gain is the logarithm of how much better a cause explains a figure.
func (l likelihood) gain(x, mu float64) float64 {
	well := l.well(x)
	return math.Log(((1-spared)*normal(x, mu, max(uneven, l.scale)) + spared*well) / well)
}

// chance of a cell to be disturbed, by how many samples it is made of: one, the better of two,
// the middle of three.
var chance = [4]float64{0.03, 0.03, 0.003, 0.004}

// suspect is a cell that may be slow.
type suspect struct {
	key   pairKey
	x     float64
	like  likelihood
	lost  bool
	alone float64 // see alone
}

// candidate is a cause with its suspects.
type candidate struct {
	cause
	total int // cells that it covers
	list  []int32
}

// fault is a cause that was chosen.
type fault struct {
	cause
	mu    float64 // the logarithm of the part that is left
	slow  int     // of the cells
	total int
	lost  bool
	score float64
	sure  float64 // 0..1, against the best other explanation
	other *cause  // of that one
}

// explanation is a set of causes and what it gains over none.
type explanation struct {
	faults []fault
	total  float64
}

// tomography finds the causes that explain the slow cells best.
type tomography struct {
	s        *state
	suspects []suspect
	wide     []candidate
	touches  [][]int32 // candidates of a suspect
	typical  likelihood
}

// mostSuspects bounds the work where half the fleet is slow: then some of its pairs do.
const mostSuspects = 40_000

func (s *state) tomography() *tomography {
	t := &tomography{s: s}
	var picked []int
	for i, c := range s.cells {
		if float64(c.x) < -max(0.1, 2*s.scale[c.class]) {
			picked = append(picked, i)
		}
	}
	if len(picked) == 0 {
		return t
	}
	stride := 1 + len(picked)/mostSuspects
	n := newCounts(s.h)
	for i := range s.cells {
		if c := &s.cells[i]; stride == 1 || i%stride == 0 {
			n.add(s.h, s.h.series[c.series].pairKey)
		}
	}
	leaves := 0 // that have nodes
	for _, m := range n.leafNodes {
		leaves += min(m, 1)
	}
	found := map[cause]*candidate{}
	for _, i := range picked {
		if i%stride != 0 {
			continue
		}
		c := &s.cells[i]
		key := s.h.series[c.series].pairKey
		id := int32(len(t.suspects))
		t.suspects = append(t.suspects, suspect{
			key, float64(c.x), likelihood{s.scale[c.class], chance[c.n]}, c.lost, s.alone(c.class),
		})
		s.h.wide(key, n.leafNodes, leaves, func(k cause) {
			f := found[k]
			if f == nil {
				f = &candidate{cause: k, total: n.total(k)}
				found[k] = f
			}
			f.list = append(f.list, id)
		})
	}
	t.typical = likelihood{quietest, chance[3]}
	for _, c := range s.cells[:min(len(s.cells), 1)] {
		t.typical.scale = s.scale[c.class]
	}
	for _, f := range found {
		if len(f.list) > 1 {
			t.wide = append(t.wide, *f)
		}
	}
	slices.SortFunc(t.wide, func(a, b candidate) int { return order(a.cause, b.cause) })
	t.touches = make([][]int32, len(t.suspects))
	for i, f := range t.wide {
		for _, k := range f.list {
			t.touches[k] = append(t.touches[k], int32(i))
		}
	}
	return t
}

func order(a, b cause) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b), cmp.Compare(a.c, b.c))
}

// score is what a candidate gains with the suspects that nothing explains yet, and by
// explaining others better than they are: of two causes the worse one is what a pair shows.
// gains are what suspects gain already, 0 where they are not explained.
func (t *tomography) score(c *candidate, done []bool, gains []float64) (f fault, ok bool) {
	var xs []float32
	lost := 0
	for _, i := range c.list {
		if !done[i] {
			xs = append(xs, float32(t.suspects[i].x))
			if t.suspects[i].lost {
				lost++
			}
		}
	}
	if len(xs) < 2 {
		return f, false
	}
	f = fault{cause: c.cause, slow: len(xs), total: c.total, lost: lost > len(xs)/2}
	f.mu = float64(stats.Nearest(xs, 0.5))
	if f.mu > t.s.worth() {
		return f, false
	}
	// A direction of its own is one fault, whatever rails a node says that it was measured over.
	each := map[[2]int32]float64{}
	for _, i := range c.list {
		p := &t.suspects[i]
		g := p.like.gain(p.x, f.mu)
		if done[i] {
			f.score += max(0, g-gains[i])
			continue
		}
		f.score += g
		each[[2]int32{p.key.from, p.key.to}] += max(0, g)
	}
	alone := 0.0
	for _, g := range each {
		alone += max(0, g-pairPenalty)
	}
	healthy := float64(c.total - len(c.list))
	miss := healthy * t.typical.gain(0, f.mu)
	if partial(c.kind) && len(xs) >= 6 {
		// One of several uplinks slows a share of the pairs that cross them.
		share := (float64(len(xs)) + 0.5) / (float64(c.total) + 1)
		miss = max(miss, healthy*math.Log(1-share)+float64(len(xs))*math.Log(share))
	}
	f.score += miss - t.s.penalty(c.kind)
	return f, f.score > alone
}

func partial(k finding.Kind) bool {
	return k == SlowLeaf || k == SlowLeafIn || k == SlowLeafOut || k == SlowPath
}

// pairPenalty is what a pair of its own costs. It is small, for whether such a fault is
// reported is decided by more sweeps than the present state has.
const pairPenalty = 4

// greedy takes the best cause again and again, without those that are banned.
func (t *tomography) greedy(ban map[cause]bool) explanation {
	var e explanation
	done, gains := make([]bool, len(t.suspects)), make([]float64, len(t.suspects))
	scores := make([]fault, len(t.wide))
	good := make([]bool, len(t.wide))
	stale := make([]bool, len(t.wide))
	for i := range stale {
		stale[i] = true
	}
	for len(e.faults) < mostFaults {
		best := -1
		for i := range t.wide {
			if ban[t.wide[i].cause] {
				continue
			}
			if stale[i] {
				scores[i], good[i] = t.score(&t.wide[i], done, gains)
				stale[i] = false
			}
			if good[i] && (best < 0 || scores[i].score > scores[best].score) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		e.faults = append(e.faults, scores[best])
		e.total += scores[best].score
		for _, k := range t.wide[best].list {
			p := &t.suspects[k]
			g := p.like.gain(p.x, scores[best].mu)
			if done[k] && g <= gains[k] {
				continue
			}
			done[k], gains[k] = true, g
			for _, c := range t.touches[k] {
				stale[c] = true
			}
		}
	}
	t.alone(&e, done, ban)
	return e
}

// mostFaults bounds the causes of one explanation.
const mostFaults = 64

// alone explains what is left, each by a fault of its pair: both ways where both are slow.
func (t *tomography) alone(e *explanation, done []bool, ban map[cause]bool) {
	left := map[[2]int32][]int32{}
	for i := range t.suspects {
		if p := &t.suspects[i]; !done[i] && p.x <= p.alone && p.like.gain(p.x, p.x) > pairPenalty {
			k := [2]int32{p.key.from, p.key.to}
			left[k] = append(left[k], int32(i))
		}
	}
	keys := slices.SortedFunc(maps.Keys(left), func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		list := left[k]
		back, both := left[[2]int32{k[1], k[0]}]
		c := cause{kind: pairs.OneWay, a: k[0], b: k[1]}
		if both {
			if k[0] > k[1] {
				continue
			}
			c, list = cause{kind: pairs.SlowPair, a: k[0], b: k[1]}, append(slices.Clone(list), back...)
		}
		if ban[c] {
			continue
		}
		f := fault{cause: c, slow: len(list), total: len(list)}
		for _, i := range list {
			p := &t.suspects[i]
			f.mu += p.x / float64(len(list))
			f.score += p.like.gain(p.x, p.x)
			f.lost = f.lost || p.lost
		}
		f.score -= pairPenalty
		e.faults = append(e.faults, f)
		e.total += f.score
	}
}

// explain is the best explanation, each of its wide causes compared with the best explanation that lacks that cause.
func (s *state) explain() explanation {
	t := s.tomography()
	if len(t.suspects) == 0 {
		return explanation{}
	}
	e := t.greedy(nil)
	for range 3 {
		better := false
		for i := range e.faults {
			f := &e.faults[i]
			if i >= mostCompared || narrow(f.kind) {
				f.sure = probability(f.score)
				continue
			}
			w := t.greedy(map[cause]bool{f.cause: true})
			if w.total > e.total+1e-9 {
				e, better = w, true
				break
			}
			f.sure = probability(e.total - w.total)
			for k := range w.faults {
				if !slices.ContainsFunc(e.faults, func(o fault) bool { return o.cause == w.faults[k].cause }) {
					f.other = &w.faults[k].cause
					break
				}
			}
		}
		if !better {
			break
		}
	}
	return e
}

const mostCompared = 8

func narrow(k finding.Kind) bool { return k == pairs.SlowPair || k == pairs.OneWay }

// probability turns a difference of logarithms into a probability. It is halved, because cells
// of one node are not as independent of each other as the sum takes them to be.
func probability(d float64) float64 { return 1 / (1 + math.Exp(-d/2)) }
