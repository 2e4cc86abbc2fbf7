package calibrate

import (
	"math"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// feels is how much a point must feel a figure (share of its time by share of the figure) to count as one that depends on it.
const feels = 0.02

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
		s.times[i] = min(max(-s.times[i], -steepest), steepest)
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
