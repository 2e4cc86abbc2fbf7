package calibrate

import (
	"math"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

const nFigures = len(sim.Figures{})

// isFirm tells of shares of line rates, and of what a channel moves through a port: hosts differ in their latencies by
// half, links of one kind by some percent.
func isFirm(name string) bool { return strings.HasSuffix(name, "_share") || name == "net_lane" }

// Loss is how far off a case is by figures: a robust sum of logarithms, so that a sweep of many points counts more than
// one of few, but not in proportion. buf is memory to use again.
func Loss(c *truth.Case, f *sim.Figures, buf *[]unit.Time) (float64, error) {
	var err error
	if *buf, err = c.Predictor.Times(*buf, c.Ops, c.Settings, f); err != nil {
		return 0, err
	}
	sum := 0.0
	for i, t := range *buf {
		sum += robust(math.Abs(math.Log(float64(max(t, 1)) / float64(c.Times[i]))))
	}
	return sum / math.Sqrt(float64(len(c.Ops))), nil
}

// robust grows like the error at first and slower later: a point that nothing
// explains shall not bend the rest.
func robust(e float64) float64 { return min(e, 0.05+0.9*math.Log1p(e)) }

// Felt tells which figures a case depends on, of those asked for (nil: all): each is tried at both ends of its range,
// and near its value.
func Felt(c *truth.Case, f *sim.Figures, asked *[nFigures]bool) (felt [nFigures]bool, err error) {
	var buf []unit.Time
	base, err := Loss(c, f, &buf)
	if err != nil {
		return felt, err
	}
	g := *f
	for i, old := range f {
		_, lo, hi := sim.FigureRange(i)
		for _, v := range []float64{lo, hi, old * 1.3, old / 1.3} {
			if felt[i] || asked != nil && !asked[i] {
				break
			}
			g[i] = min(max(v, lo), hi)
			l, err := Loss(c, &g, &buf)
			felt[i] = err == nil && l != base
		}
		g[i] = old
	}
	return felt, nil
}

// feels is how much a point must feel a figure (share of its time by share of the figure) to count as one that depends
// on it.
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

// Slopes are the logarithms of all points' times, and what they change by with the
// logarithm of each figure.
type Slopes struct {
	By     [nFigures][]float64
	times  []float64     // measured over predicted
	points [nFigures]int // different points that depend on a figure
}

// Slope works out the slopes at f, of the figures that are felt.
func Slope(cases []*truth.Case, f *sim.Figures, felt *[nFigures]bool) (*Slopes, error) {
	s := &Slopes{}
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
		s.By[i], s.points[i] = a, len(seen)
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

func addScaled(a, b []float64, by float64) {
	for i := range a {
		a[i] += by * b[i]
	}
}
