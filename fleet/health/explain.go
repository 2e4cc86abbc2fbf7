package health

import (
	"cmp"
	"math"
	"slices"
)

// worth is how much of the usual a cause must leave at most to be named, as in package pairs.
var worth = math.Log(0.85)

// alone is how low a pair of its own must be: it has few samples to tell by.
func (s *state) alone(class int16) float64 {
	return min(math.Log(0.75), -4.5*s.scatter[class].widest())
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

// gain is the logarithm of how much better a cause explains a figure than no fault does.
func (l likelihood) gain(x, mu float64) float64 {
	far := 0.03
	if x < 0 {
		far = 0.5*math.Exp(x/strayed)/strayed + 0.06
	}
	well := (1-l.stray)*normal(x, 0, l.scale) + l.stray*far
	return math.Log(((1-spared)*normal(x, mu, max(uneven, l.scale)) + spared*well) / well)
}

// chance of a cell to be disturbed, by how many samples it is made of: one, the better of two,
// the middle of three.
var chance = [4]float64{0.03, 0.03, 0.003, 0.004}

// suspect is a cell that may be slow.
type suspect struct {
	likelihood
	key   pairKey
	x     float64
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
}

// some tells whether a cause of leaves spares many of its pairs.
func (f *fault) some() bool { return f.leaf() && float64(f.slow) < 0.9*float64(f.total) }

// explanation is a set of causes and what it gains over none.
type explanation struct {
	faults []fault
	total  float64
}

// has tells whether a cause is of an explanation.
func (e *explanation) has(c cause) bool {
	return slices.ContainsFunc(e.faults, func(f fault) bool { return f.cause == c })
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
	slow := func(c cell) bool { return float64(c.x) < -max(0.1, 2*s.scatter[s.series[c.series].class].scale) }
	picked := 0
	for _, c := range s.cells {
		if slow(c) {
			picked++
		}
	}
	t := &tomography{s: s}
	if picked == 0 {
		return t
	}
	stride := 1 + picked/mostSuspects
	leaves, found := map[int32]int{}, map[cause]*candidate{}
	for _, n := range s.node {
		if n.leaf >= 0 && !n.gone {
			leaves[n.leaf]++
		}
	}
	for i := 0; i < len(s.cells); i += stride {
		c := s.cells[i]
		if !slow(c) {
			continue
		}
		r := &s.series[c.series]
		id := int32(len(t.suspects))
		t.suspects = append(t.suspects, suspect{
			likelihood{s.scatter[r.class].scale, chance[c.n]}, r.pairKey, float64(c.x), c.lost, s.alone(r.class),
		})
		s.wide(r.pairKey, leaves, func(k cause) {
			if found[k] == nil {
				found[k] = &candidate{cause: k}
			}
			found[k].list = append(found[k].list, id)
		})
	}
	out, in := s.coverage(stride)
	for k, c := range found {
		if k.out {
			c.total += out[site{k.domain, k.place}]
		}
		if k.in {
			c.total += in[site{k.domain, k.place}]
		}
	}
	t.typical = likelihood{s.scatter[s.series[s.cells[0].series].class].scale, chance[3]}
	for _, c := range found {
		if len(c.list) > 1 {
			t.wide = append(t.wide, *c)
		}
	}
	slices.SortFunc(t.wide, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b))
	})
	t.touches = make([][]int32, len(t.suspects))
	for i, c := range t.wide {
		for _, k := range c.list {
			t.touches[k] = append(t.touches[k], int32(i))
		}
	}
	return t
}

// score is what a candidate gains with the suspects that nothing explains yet, and by
// explaining others better than they are: of two causes the worse one is what a pair shows.
// gains are what suspects gain already, 0 where they are not explained. The score is 0 where it explains nothing.
func (t *tomography) score(c *candidate, done []bool, gains []float64) (f fault) {
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
	f = fault{cause: c.cause, slow: len(xs), total: c.total, lost: lost > len(xs)/2}
	f.mu = middle(xs)
	if len(xs) < 2 || f.mu > worth || !t.witnessed(c) {
		return f
	}
	// A direction of its own is one fault, whatever rails a node says that it was measured over.
	each, alone := map[place]float64{}, 0.0
	for _, i := range c.list {
		p := &t.suspects[i]
		g := p.gain(p.x, f.mu)
		if done[i] {
			f.score += max(0, g-gains[i])
			continue
		}
		f.score += g
		each[place{p.key.from, p.key.to}] += max(0, g)
	}
	for _, g := range each {
		alone += max(0, g-pairPenalty)
	}
	healthy := float64(c.total - len(c.list))
	miss := healthy * t.typical.gain(0, f.mu)
	if c.leaf() && len(xs) >= 6 {
		// One of several uplinks slows a share of the pairs that cross them.
		share := (float64(len(xs)) + 0.5) / (float64(c.total) + 1)
		miss = max(miss, healthy*math.Log(1-share)+float64(len(xs))*math.Log(share))
	}
	if f.score += miss - t.s.penalty(c.domain); f.score <= alone {
		f.score = 0
	}
	return f
}

// witnessed tells whether several nodes show a cause: of two that are slow with each other either may be at fault, and
// either may say so on purpose.
func (t *tomography) witnessed(c *candidate) bool {
	first := t.suspects[c.list[0]].key
	return !c.node() || slices.ContainsFunc(c.list, func(i int32) bool {
		k := t.suspects[i].key
		return k.from+k.to != first.from+first.to
	})
}

const (
	// pairPenalty is what a pair of its own costs. It is small, for whether such a fault is
	// reported is decided by more sweeps than the present state has.
	pairPenalty = 4
	// mostFaults bounds the causes of one explanation, mostCompared those of which the confidence is found.
	mostFaults   = 32
	mostCompared = 8
)

// greedy takes the best cause again and again, without the one that is banned.
func (t *tomography) greedy(ban cause) (e explanation) {
	done, gains := make([]bool, len(t.suspects)), make([]float64, len(t.suspects))
	scores, fresh := make([]fault, len(t.wide)), make([]bool, len(t.wide))
	for len(e.faults) < mostFaults {
		best := -1
		for i := range t.wide {
			if t.wide[i].cause == ban {
				continue
			}
			if !fresh[i] {
				scores[i], fresh[i] = t.score(&t.wide[i], done, gains), true
			}
			if scores[i].score > 0 && (best < 0 || scores[i].score > scores[best].score) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		e.faults, e.total = append(e.faults, scores[best]), e.total+scores[best].score
		for _, k := range t.wide[best].list {
			p := &t.suspects[k]
			g := p.gain(p.x, scores[best].mu)
			if done[k] && g <= gains[k] {
				continue
			}
			done[k], gains[k] = true, g
			for _, c := range t.touches[k] {
				fresh[c] = false
			}
		}
	}
	t.alone(&e, done)
	return e
}

var slowPair, oneWay = &causeKinds[len(causeKinds)-2], &causeKinds[len(causeKinds)-1]

// alone explains what is left, the worst each by a fault of its pair: both ways where both are slow.
func (t *tomography) alone(e *explanation, done []bool) {
	left := map[place][]int32{}
	for i := range t.suspects {
		if p := &t.suspects[i]; !done[i] && p.x <= p.alone && p.gain(p.x, p.x) > pairPenalty {
			k := place{p.key.from, p.key.to}
			left[k] = append(left[k], int32(i))
		}
	}
	var faults []fault
	for k, list := range left {
		c := cause{oneWay, k}
		if back, both := left[place{k.b, k.a}]; both {
			if k.a > k.b {
				continue
			}
			c, list = cause{slowPair, k}, append(slices.Clone(list), back...)
		}
		f := fault{cause: c, slow: len(list), total: len(list), score: -pairPenalty}
		for _, i := range list {
			p := &t.suspects[i]
			f.mu += p.x / float64(len(list))
			f.score += p.gain(p.x, p.x)
			f.lost = f.lost || p.lost
		}
		faults = append(faults, f)
	}
	slices.SortFunc(faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b))
	})
	for i, f := range faults {
		if e.total += f.score; i < mostFaults {
			e.faults = append(e.faults, f)
		}
	}
}

// explain is the best explanation, each of its wide causes compared with the best explanation that lacks that cause.
func (s *state) explain() explanation {
	t := s.tomography()
	e := t.greedy(cause{})
	for n := 0; n < 3 && t.improve(&e); n++ {
		continue
	}
	return e
}

// improve finds how sure the causes of an explanation are, or a better explanation.
func (t *tomography) improve(e *explanation) bool {
	for i := range e.faults {
		f := &e.faults[i]
		if i >= mostCompared || f.narrow() {
			f.sure = probability(f.score)
			continue
		}
		w := t.greedy(f.cause)
		if w.total > e.total+1e-9 {
			*e = w
			return true
		}
		f.sure = probability(e.total - w.total)
	}
	return false
}

// probability turns a difference of logarithms into a probability. It is halved, because cells
// of one node are not as independent of each other as the sum takes them to be.
func probability(d float64) float64 { return 1 / (1 + math.Exp(-d/2)) }
