package calibrate

import (
	"fmt"
	"math"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

const nFigures = len(sim.Figures{})

// Problem is what to fit to what.
type Problem struct {
	Cases []*truth.Case
	// Free are the figures that may move; all where none is.
	Free [nFigures]bool
	// Start is where the search begins, and where figures stay that are not free.
	Start *sim.Figures
	// Prior is what figures are drawn to, with a force of Pull: a figure that is
	// twice or half its prior weighs like 0.48×Pull of a point that is off by a
	// factor of e. Figures of a generation are drawn to its neighbours' as well.
	Prior *sim.Figures
	Pull  float64
	// Weight is how much a case counts; nil: all the same.
	Weight func(*truth.Case) float64
	// Rounds bounds the search; 0 is 40.
	Rounds int
	// Quick searches once, with long first steps, and not three times.
	Quick bool
	// Near searches once with short first steps: the start is near the answer.
	Near bool
	// felt says which figures a case depends on; nil: they are tried.
	felt func(*truth.Case) [nFigures]bool
}

// isFirm tells of shares of line rates, and of what a channel moves through a port: hosts differ in their latencies by half, links of one kind by
// some percent.
func isFirm(name string) bool { return strings.HasSuffix(name, "_share") || name == "net_lane" }

// Answer is a fit.
type Answer struct {
	Figures sim.Figures
	Loss    float64       // mean robust error of the points, without the pull
	Touch   [nFigures]int // points whose time depends on a figure
	// Machines is how many machines have points whose time changes by more than a fiftieth
	// of what the figure does.
	Machines [nFigures]int
	// Publishers is who measured those machines.
	Publishers [nFigures]int
}

// search is a problem under way.
type search struct {
	*Problem
	f      sim.Figures
	touch  [nFigures][]int // cases that depend on a figure
	points [nFigures]int
	loss   []float64 // of each case
	weight float64
	buf    []unit.Time
}

// Solve fits. The error names the case that cannot be priced.
func (p *Problem) Solve() (*Answer, error) {
	s, err := p.run()
	if err != nil {
		return nil, err
	}
	a := &Answer{Figures: s.f, Touch: s.points}
	for _, l := range s.loss {
		a.Loss += l / max(s.weight, 1)
	}
	var felt [nFigures]bool
	for i := range felt {
		felt[i] = len(s.touch[i]) > 0
	}
	a.Machines, a.Publishers, err = informed(s.Cases, &s.f, &felt)
	return a, err
}

// informed is how many machines, of how many publishers, have points whose time changes by more than a fiftieth of what each
// felt figure does.
func informed(cases []*truth.Case, f *sim.Figures, felt *[nFigures]bool) (machines, publishers [nFigures]int, err error) {
	x, err := slope(cases, f, felt)
	if err != nil {
		return machines, publishers, err
	}
	for i := range machines {
		who, whose := map[string]bool{}, map[string]bool{}
		k := 0
		for _, c := range cases {
			for range c.Ops {
				if k < len(x.by[i]) && math.Abs(x.by[i][k]) > feels {
					who[c.Machine()], whose[c.Publisher()] = true, true
				}
				k++
			}
		}
		machines[i], publishers[i] = len(who), len(whose)
	}
	return machines, publishers, nil
}

// run searches.
func (p *Problem) run() (*search, error) {
	s := &search{Problem: p, f: *p.Start, loss: make([]float64, len(p.Cases))}
	if p.Free == ([nFigures]bool{}) {
		q := *p
		for i := range q.Free {
			q.Free[i] = true
		}
		s.Problem = &q
	}
	for i, c := range p.Cases {
		var err error
		if s.loss[i], err = s.caseLoss(c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
		}
		w := math.Sqrt(float64(len(c.Ops)))
		if p.Weight != nil {
			w *= p.Weight(c)
		}
		s.weight += w
	}
	s.find()
	s.descend()
	return s, nil
}

// caseLoss is the loss of one case: a robust sum of logarithms, so that a sweep of
// many points counts more than one of few, but not in proportion.
func (s *search) caseLoss(c *truth.Case) (float64, error) {
	var err error
	if s.buf, err = c.Predictor.Times(s.buf, c.Ops, c.Settings, &s.f); err != nil {
		return 0, err
	}
	sum := 0.0
	for i, t := range s.buf {
		e := math.Abs(math.Log(float64(max(t, 1)) / float64(c.Times[i])))
		sum += robust(e)
	}
	sum /= math.Sqrt(float64(len(c.Ops)))
	if s.Weight != nil {
		sum *= s.Weight(c)
	}
	return sum, nil
}

// byMachine weighs cases so that a machine counts by the root of what its cases would: what is wrong
// about one machine is wrong in all of its sweeps, so that many of them say little more than a few.
func byMachine(cases []*truth.Case) func(*truth.Case) float64 {
	sums := map[string]float64{}
	for _, c := range cases {
		sums[c.Machine()] += math.Sqrt(float64(len(c.Ops)))
	}
	return func(c *truth.Case) float64 { return math.Pow(sums[c.Machine()], MachinePower-1) }
}

// MachinePower is the power of a machine's weight, chosen by leaving out publishers.
var MachinePower = 0.5

// robust grows like the error at first and slower later: a point that nothing
// explains shall not bend the rest.
func robust(e float64) float64 { return min(e, 0.05+0.9*math.Log1p(e)) }

// find notes which cases feel every free figure.
func (s *search) find() {
	for i := range s.f {
		if !s.Free[i] {
			continue
		}
		for k, c := range s.Cases {
			if s.felt != nil && s.felt(c)[i] || s.felt == nil && s.feels(i, k) {
				s.touch[i] = append(s.touch[i], k)
				s.points[i] += len(c.Ops)
			}
		}
	}
}

// feels tries a figure at both ends of its range, and near its value.
func (s *search) feels(i, k int) bool {
	old := s.f[i]
	defer func() { s.f[i] = old }()
	_, lo, hi := sim.FigureRange(i)
	for _, v := range []float64{lo, hi, old * 1.3, old / 1.3} {
		s.f[i] = min(max(v, lo), hi)
		if l, err := s.caseLoss(s.Cases[k]); err == nil && l != s.loss[k] {
			return true
		}
	}
	return false
}

// pulled is the price of a figure's distance from where it is drawn to.
func (s *search) pulled(i int) float64 {
	if s.Pull == 0 {
		return 0
	}
	gen, name := split(i)
	d := distance(i, s.f[i], s.Prior[i], s.Prior[i])
	if gen < 0 {
		return s.Pull * d * sure(name)
	}
	// A generation is drawn to its neighbours, and a little to the prior.
	sum := 0.2 * d
	per := perGen()
	for _, j := range []int{i - per, i + per} {
		if g, _ := split(j); g >= 0 {
			sum += 0.5 * distance(i, s.f[i], s.f[j], s.Prior[i])
		}
	}
	return s.Pull * sum
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

// perGen is the number of figures that a generation has; generations follow each
// other.
func perGen() int {
	n := 0
	for g, _ := split(0); n < nFigures; n++ {
		if k, _ := split(n); k != g {
			break
		}
	}
	return n
}
