package calibrate

import (
	"math"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// How much a point must feel a figure (share of its time by share of the figure) to
// count as one that depends on it, how much of a figure must be left when what
// figures chosen before it explain is taken away, and how much of the error a figure
// must explain to be worth having.
const (
	feels   = 0.02
	own     = 0.25
	explain = 0.01
)

// place is what tells one point from another; measured twice, it is one point.
type place struct {
	kind       coll.Kind
	bytes      unit.Bytes
	nodes, per int
}

func placeOf(c *truth.Case, i int) place {
	op := &c.Ops[i]
	return place{op.Kind, op.Bytes, c.Sweep.Nodes, c.Sweep.PerNode}
}

// distinct is the number of different points of cases.
func distinct(cases []*truth.Case) int {
	seen := map[place]bool{}
	for _, c := range cases {
		for i := range c.Ops {
			seen[placeOf(c, i)] = true
		}
	}
	return len(seen)
}

// allowed is how many figures so many different points may move: fewer than half as
// many, and one at the least.
func allowed(points int) int { return max(1, (points-1)/2) }

// slopes are the logarithms of all points' times, and what they change by with the
// logarithm of each figure.
type slopes struct {
	times  []float64 // measured over predicted
	by     [nFigures][]float64
	points [nFigures]int // different points that depend on a figure
}

// slope works out the slopes at f.
func slope(cases []*truth.Case, f *sim.Figures, felt *[nFigures]bool) (*slopes, error) {
	s := &slopes{}
	var buf []unit.Time
	at := func(g *sim.Figures) ([]float64, error) {
		var list []float64
		for _, c := range cases {
			var err error
			if buf, err = c.Predictor.Times(buf, c.Ops, c.Settings, g); err != nil {
				return nil, err
			}
			for i, t := range buf {
				list = append(list, math.Log(float64(max(t, 1))/float64(c.Times[i])))
			}
		}
		return list, nil
	}
	var err error
	if s.times, err = at(f); err != nil {
		return nil, err
	}
	for i := range s.times {
		s.times[i] = min(max(-s.times[i], -1), 1) // a point that nothing explains shall not choose
	}
	const step = 1.3
	for i := range f {
		if !felt[i] {
			continue
		}
		_, lo, hi := sim.FigureRange(i)
		up, down := *f, *f
		up[i] = min(max(f[i], hi/1e4)*step, hi)
		down[i] = max(f[i]/step, lo)
		a, err := at(&up)
		if err != nil {
			return nil, err
		}
		b, err := at(&down)
		if err != nil {
			return nil, err
		}
		seen := map[place]bool{}
		n := 0
		for _, c := range cases {
			for k := range c.Ops {
				a[n] = (a[n] - b[n]) / (2 * math.Log(step))
				if math.Abs(a[n]) > feels {
					seen[placeOf(c, k)] = true
				}
				n++
			}
		}
		s.by[i], s.points[i] = a, len(seen)
	}
	return s, nil
}

// choose adds figures to those chosen, the one first that explains most of what is
// left of the error, while there are fewer than the points allow. A figure that
// fewer than two points depend on, or whose effect is that of figures chosen before
// it, is not pinned down and stays.
func (s *slopes) choose(chosen []int, points int) []int {
	left := slices.Clone(s.times)
	whole := dot(left, left)
	var basis [][]float64
	take := func(v []float64) {
		scale(v, 1/math.Sqrt(dot(v, v)))
		basis = append(basis, v)
		add(left, v, -dot(left, v))
	}
	for _, i := range chosen {
		if v := s.apart(i, basis); v != nil {
			take(v)
		}
	}
	for len(chosen) < allowed(points) {
		best, gain := -1, explain*whole
		var way []float64
		for i := range s.by {
			if slices.Contains(chosen, i) || !s.candidate(i, points) {
				continue
			}
			v := s.apart(i, basis)
			if v == nil {
				continue
			}
			hold := sitePull
			if isFirm(sim.FigureName(i)) {
				hold *= firm
			}
			d := dot(v, left)
			if g := d * d / (dot(v, v) + hold); g > gain {
				best, gain, way = i, g, v
			}
		}
		if best < 0 {
			break
		}
		chosen = append(chosen, best)
		take(way)
	}
	return chosen
}

// candidate tells whether a figure may move at all.
func (s *slopes) candidate(i, points int) bool {
	if points > 1 {
		return s.points[i] >= 2
	}
	// One point is one number: a latency or a rate, and not how they go together.
	_, name := split(i)
	for _, end := range []string{"launch", "_hop", "_net", "_late", "_lane", "_share", "_rate"} {
		if strings.HasSuffix(name, end) {
			return s.points[i] == 1
		}
	}
	return false
}

// apart is a figure's effect without what the basis explains, nil where little of
// it is left.
func (s *slopes) apart(i int, basis [][]float64) []float64 {
	v := slices.Clone(s.by[i])
	whole := dot(v, v)
	if whole < feels*feels {
		return nil
	}
	for _, b := range basis {
		add(v, b, -dot(v, b))
	}
	if dot(v, v) < own*own*whole {
		return nil
	}
	return v
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func scale(a []float64, by float64) {
	for i := range a {
		a[i] *= by
	}
}

func add(a, b []float64, by float64) {
	for i := range a {
		a[i] += by * b[i]
	}
}
