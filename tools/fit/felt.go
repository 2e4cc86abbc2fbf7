package main

import (
	"math"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// lossOf is how far off a case is by figures: a robust sum of logarithms, so that a sweep of many points counts more
// than one of few, but not in proportion. buf is memory to use again.
func lossOf(c *truth.Case, f *sim.Figures, buf *[]unit.Time) (float64, error) {
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

// feltBy tells which figures a case depends on: each is tried at both ends of its range, and near its value.
func feltBy(c *truth.Case, f *sim.Figures) (felt which, err error) {
	var buf []unit.Time
	base, err := lossOf(c, f, &buf)
	if err != nil {
		return felt, err
	}
	g := *f
	for i, old := range f {
		about := &sim.FigureTable()[i]
		for _, v := range []float64{about.Least, about.Most, old * 1.3, old / 1.3} {
			if felt[i] {
				break
			}
			g[i] = min(max(v, about.Least), about.Most)
			l, err := lossOf(c, &g, &buf)
			felt[i] = err == nil && l != base
		}
		g[i] = old
	}
	return felt, nil
}

// touches tells which figures cases depend on.
func touches(cases []*truth.Case, f *sim.Figures) (felt which, err error) {
	for _, c := range cases {
		one, err := feltBy(c, f)
		if err != nil {
			return felt, err
		}
		felt = either(felt, one)
	}
	return felt, nil
}

func either(a, b which) which {
	for i := range a {
		a[i] = a[i] || b[i]
	}
	return a
}

// informers are who informs a figure.
type informers struct{ machines, publishers int }

// fewestPublishers are needed to fit a figure; one that fewer feel keeps its usual value.
const fewestPublishers = 2

// informed is how many machines, of how many publishers, have points whose time changes by more than a fiftieth of what
// each figure does.
func informed(cases []*truth.Case, f *sim.Figures) (list [nFigures]informers, err error) {
	const step, feels = 1.3, 0.02
	var up, down []unit.Time
	for i := range f {
		about := &sim.FigureTable()[i]
		a, b := *f, *f
		a[i], b[i] = min(max(f[i], about.Most/1e4)*step, about.Most), max(f[i]/step, about.Least)
		who, whose := map[string]bool{}, map[string]bool{}
		for _, c := range cases {
			if up, err = c.Predictor.Times(up, c.Ops, c.Settings, &a); err != nil {
				return list, err
			}
			if down, err = c.Predictor.Times(down, c.Ops, c.Settings, &b); err != nil {
				return list, err
			}
			for k := range up {
				if math.Abs(math.Log(float64(max(up[k], 1))/float64(max(down[k], 1)))) > feels*2*math.Log(step) {
					who[c.Machine()], whose[publisher(c)] = true, true
				}
			}
		}
		list[i] = informers{len(who), len(whose)}
	}
	return list, nil
}
