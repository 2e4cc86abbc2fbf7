package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

const nFigures = len(sim.Figures{})

// Which figures something is about.
type which = [nFigures]bool

// search fits figures to cases, along one figure after the other, in steps that grow while they help and shrink when
// they do not. It is deterministic, keeps every figure in its physical range, and holds figures that no measurement
// constrains near their neighbours: the same figure of the next generation of GPUs, or what is usual.
type search struct {
	cases []*truth.Case
	free  which       // the figures that may move
	f     sim.Figures // from where the search begins, and where it got to
	// prior is what figures are drawn to, with a force of pull: a figure that is
	// twice or half its prior weighs like 0.48×pull of a point that is off by a
	// factor of e. Figures of a generation are drawn to its neighbours' as well.
	prior  *sim.Figures
	pull   float64
	weight func(*truth.Case) float64 // how much a case counts; nil: all the same
	rounds int                       // bounds the search; 0 is 40
	quick  bool                      // search once, with long first steps, and not three times
	near   bool                      // search once with short first steps: the start is near the answer
	// felt says which figures a case depends on; nil: they are tried.
	felt func(*truth.Case) which

	touch  [nFigures][]int // cases that depend on a figure
	points [nFigures]int   // of those cases
	loss   []float64       // of each case
	buf    []unit.Time
}

// held are figures that the published sweeps say too little about: they come from
// the reference case, whose nodes send through host memory (docs/baskerville.md).
var held = map[string]bool{"bounce_rate": true, "bounce_far": true}

// pull is the force of the prior in fits to published sweeps, chosen by leaving out publishers: 0.2 lets figures follow
// single machines too far.
var pull = 1.5

// published is the fit behind sim.Fitted: all figures but the held ones, from the prior, to all cases.
func published(cases []*truth.Case) *search {
	s := &search{cases: cases, f: *prior(), prior: prior(), pull: pull, weight: byMachine(cases)}
	for i := range s.free {
		s.free[i] = !held[sim.FigureName(i)]
	}
	return s
}

// byMachine weighs cases so that a machine counts by the root of what its cases would: what is wrong
// about one machine is wrong in all of its sweeps, so that many of them say little more than a few.
func byMachine(cases []*truth.Case) func(*truth.Case) float64 {
	sums := map[string]float64{}
	for _, c := range cases {
		sums[c.Machine()] += math.Sqrt(float64(len(c.Ops)))
	}
	return func(c *truth.Case) float64 { return math.Pow(sums[c.Machine()], -0.5) }
}

// run searches. The error names the case that cannot be priced.
func (s *search) run() error {
	s.loss = make([]float64, len(s.cases))
	for k, c := range s.cases {
		var err error
		if s.loss[k], err = s.caseLoss(c); err != nil {
			return fmt.Errorf("%s: %w", c.Sweep.ID, err)
		}
		var felt which
		if s.felt != nil {
			felt = s.felt(c)
		} else if felt, err = calibrate.Felt(c, &s.f, &s.free); err != nil {
			return err
		}
		for i := range felt {
			if s.free[i] && felt[i] {
				s.touch[i] = append(s.touch[i], k)
				s.points[i] += len(c.Ops)
			}
		}
	}
	s.descend()
	return nil
}

func (s *search) caseLoss(c *truth.Case) (float64, error) {
	l, err := calibrate.Loss(c, &s.f, &s.buf)
	if s.weight != nil {
		l *= s.weight(c)
	}
	return l, err
}

// touches tells which figures cases depend on.
func touches(cases []*truth.Case, f *sim.Figures) (felt which, err error) {
	for _, c := range cases {
		one, err := calibrate.Felt(c, f, nil)
		if err != nil {
			return felt, err
		}
		felt = either(felt, one)
	}
	return felt, nil
}

// informed is how many machines, of how many publishers, have points whose time changes by more than a fiftieth of what
// each felt figure does.
func informed(cases []*truth.Case, f *sim.Figures, felt *which) (machines, publishers [nFigures]int, err error) {
	x, err := calibrate.Slope(cases, f, felt)
	if err != nil {
		return machines, publishers, err
	}
	for i, by := range x.By {
		who, whose := map[string]bool{}, map[string]bool{}
		k := 0
		for _, c := range cases {
			for range c.Ops {
				if k < len(by) && math.Abs(by[k]) > 0.02 {
					who[c.Machine()], whose[publisher(c)] = true, true
				}
				k++
			}
		}
		machines[i], publishers[i] = len(who), len(whose)
	}
	return machines, publishers, nil
}

// descend searches with long, middle and short first steps and keeps the best: a
// search along one figure at a time ends in one of many hollows.
func (s *search) descend() {
	from, losses := s.f, append([]float64(nil), s.loss...)
	best, least, kept := s.f, s.total(), losses
	for n, first := range []float64{0.4, 0.2, 0.1} {
		if n > 0 && s.quick || n < 2 && s.near {
			continue
		}
		s.f, s.loss = from, append([]float64(nil), losses...)
		s.sweep(first)
		if t := s.total(); t < least {
			best, least, kept = s.f, t, s.loss
		}
	}
	s.f, s.loss = best, kept
}

// sweep moves one figure after the other while the loss falls.
func (s *search) sweep(first float64) {
	var step [nFigures]float64
	for i := range step {
		step[i] = first
	}
	for range cmp.Or(s.rounds, 40) {
		before := s.total()
		longest := 0.0
		for i := range s.f {
			if !s.free[i] {
				continue
			}
			if s.move(i, step[i]) {
				step[i] = min(step[i]*1.4, 1)
			} else {
				step[i] *= 0.5
			}
			longest = max(longest, step[i])
		}
		if longest < 0.003 || before-s.total() < 1e-5*before && longest < 0.02 {
			return
		}
	}
}

func (s *search) total() float64 {
	sum := 0.0
	for _, l := range s.loss {
		sum += l
	}
	for i := range s.f {
		if s.free[i] {
			sum += s.pulled(i)
		}
	}
	return sum
}

// move tries a step up and a step down.
func (s *search) move(i int, step float64) bool {
	_, lo, hi := sim.FigureRange(i)
	old := s.f[i]
	was := s.pulled(i)
	for _, k := range s.touch[i] {
		was += s.loss[k]
	}
	for _, dir := range []float64{1, -1} {
		v := min(max(max(old, hi/1e4)*math.Exp(dir*step), lo), hi)
		if v == old {
			continue
		}
		s.f[i] = v
		if s.try(i, was) {
			return true
		}
	}
	s.f[i] = old
	return false
}

// try keeps the present value of figure i where the loss is below was.
func (s *search) try(i int, was float64) bool {
	now := s.pulled(i)
	fresh := make([]float64, len(s.touch[i]))
	for n, k := range s.touch[i] {
		l, err := s.caseLoss(s.cases[k])
		if err != nil {
			return false
		}
		fresh[n] = l
		if now += l; now >= was {
			return false
		}
	}
	if now >= was-1e-9 {
		return false
	}
	for n, k := range s.touch[i] {
		s.loss[k] = fresh[n]
	}
	return true
}

// pulled is the price of a figure's distance from where it is drawn to.
func (s *search) pulled(i int) float64 {
	if s.pull == 0 {
		return 0
	}
	gen, name := split(i)
	d := distance(i, s.f[i], s.prior[i], s.prior[i])
	if gen < 0 {
		return s.pull * d * sure(name)
	}
	// A generation is drawn to its neighbours, and a little to the prior.
	sum := 0.2 * d
	for _, j := range []int{i - perGen, i + perGen} {
		if g, _ := split(j); g >= 0 {
			sum += 0.5 * distance(i, s.f[i], s.f[j], s.prior[i])
		}
	}
	return s.pull * sum
}

// distance of two values of a figure: the square of the logarithm of their ratio,
// growing slower far out. Figures that may be nothing at all (a latency beyond
// another one) are compared on top of what is usual.
func distance(i int, a, b, usual float64) float64 {
	if _, lo, _ := sim.FigureRange(i); lo == 0 {
		a, b = a+usual, b+usual
	}
	d := math.Log(a / b)
	return math.Log1p(d * d)
}

// split is the generation in a figure's name, -1 for those that all share, and the
// rest of the name.
func split(i int) (gen int, name string) {
	if i < 0 || i >= nFigures {
		return -1, ""
	}
	name = sim.FigureName(i)
	g, rest, ok := strings.Cut(name, ".")
	if !ok {
		return -1, name
	}
	for k := sim.Volta; k <= sim.Blackwell; k++ {
		if k.String() == g {
			return int(k), rest
		}
	}
	return -1, name
}

// perGen is the number of figures that a generation has; generations follow each other, from the first figure on.
var perGen = func() int {
	n := 0
	for g, _ := split(0); n < nFigures; n++ {
		if k, _ := split(n); k != g {
			break
		}
	}
	return n
}()
