package main

import (
	"cmp"
	"fmt"
	"math"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

const nFigures = len(sim.Figures{})

// Which figures something is about.
type which = [nFigures]bool

// search fits figures to cases, along one figure after the other, in steps that grow while they help and shrink when
// they do not. It is deterministic, keeps every figure in its physical range, and holds figures that no measurement
// constrains near what is usual.
type search struct {
	cases  []*truth.Case
	free   which                     // the figures that may move
	f      sim.Figures               // from where the search begins, and where it got to
	weight func(*truth.Case) float64 // how much a case counts; nil: all the same
	rounds int                       // bounds the search; 0 is 40
	quick  bool                      // search once, with long first steps, and not three times

	touch  [nFigures][]int // cases that depend on a figure
	points [nFigures]int   // of those cases
	loss   []float64       // of each case
	buf    []unit.Time
}

// pull is the force of the prior, chosen by leaving out publishers: a figure that is twice or half its usual value
// weighs like 0.48×pull of a point that is off by a factor of e, and more where it is held firmly.
var pull = 1.5

// usual are the figures before a fit.
func usual() *sim.Figures {
	f := &sim.Figures{}
	for i, x := range sim.FigureTable() {
		f[i] = x.Usual
	}
	return f
}

// published is the fit behind sim.Fitted to all cases, from the usual values: of those figures that several publishers
// inform.
func published(cases []*truth.Case) *search {
	s := &search{cases: cases, f: *usual(), weight: byMachine(cases)}
	for i, x := range sim.FigureTable() {
		s.free[i] = x.Publishers >= fewestPublishers
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
		felt, err := feltBy(c, &s.f)
		if err != nil {
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
	l, err := lossOf(c, &s.f, &s.buf)
	if s.weight != nil {
		l *= s.weight(c)
	}
	return l, err
}

// descend searches with long, middle and short first steps and keeps the best: a
// search along one figure at a time ends in one of many hollows.
func (s *search) descend() {
	from, losses := s.f, append([]float64(nil), s.loss...)
	best, least, kept := s.f, s.total(), losses
	for n, first := range []float64{0.4, 0.2, 0.1} {
		if n > 0 && s.quick {
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
	about := &sim.FigureTable()[i]
	old := s.f[i]
	was := s.pulled(i)
	for _, k := range s.touch[i] {
		was += s.loss[k]
	}
	for _, dir := range []float64{1, -1} {
		v := min(max(max(old, about.Most/1e4)*math.Exp(dir*step), about.Least), about.Most)
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

// pulled is the price of a figure's distance from what is usual: the square of the logarithm of their ratio, growing
// slower far out. Figures that may be nothing at all (a latency beyond another one) are compared on top of what is
// usual.
func (s *search) pulled(i int) float64 {
	about := &sim.FigureTable()[i]
	is, usual := s.f[i], about.Usual
	if about.Least == 0 {
		is, usual = is+usual, 2*usual
	}
	d := math.Log(is / usual)
	return pull * about.Firm * math.Log1p(d*d)
}
