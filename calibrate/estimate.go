package calibrate

import (
	"math"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// slope is by how much times change with a figure of launches or links, in logarithms, by row.
type slope struct {
	figure int
	by     []float64
}

// feels is how much a point must feel a figure (share of its time by share of the figure) to count as one that depends
// on it.
const feels = 0.02

// slopesOf are those of the figures that belong to a host and its links, so that they hold for calls that nobody
// measured.
func slopesOf(cases []*truth.Case, f *sim.Figures) ([]slope, error) {
	var list []slope
	for i, about := range sim.FigureTable() {
		if !isLaunch(about.Name) && !isLink(about.Name) {
			continue
		}
		const step = 1.3
		up, down := *f, *f
		up[i], down[i] = min(f[i]*step, about.Most), max(f[i]/step, about.Least)
		a, err := times(cases, &up)
		if err != nil {
			return nil, err
		}
		b, err := times(cases, &down)
		if err != nil {
			return nil, err
		}
		felt := false
		for k := range a {
			a[k] = math.Log(a[k]/b[k]) / math.Log(up[i]/down[i])
			felt = felt || math.Abs(a[k]) > feels
		}
		if felt {
			list = append(list, slope{i, a})
		}
	}
	return list, nil
}

func isLaunch(name string) bool { return strings.HasSuffix(name, ".launch") || name == "card_launch" }

// isLink tells of shares of line rates: hosts differ in their launches by half, links of one kind by some percent.
func isLink(name string) bool { return strings.HasSuffix(name, "_share") }

// times are those of all rows, by figures.
func times(cases []*truth.Case, f *sim.Figures) (list []float64, err error) {
	var buf []unit.Time
	for _, c := range cases {
		if buf, err = c.Predictor.Times(buf, c.Ops, c.Settings, f); err != nil {
			return nil, err
		}
		for _, t := range buf {
			list = append(list, float64(max(t, 1)))
		}
	}
	return list, nil
}

// estimate is a Gaussian process over all sizes of all curves: figures that all share, what goes with the size of each,
// and noise.
type estimate struct {
	spots   []*spot
	of      []*curve
	slopes  []slope
	bar     float64     // mean logarithm of the error bars
	inverse [][]float64 // of the covariance of what was measured
	weights []float64   // times what was measured
}

// How far (in logarithms) a host explains a figure, and how many standard deviations hold nine of ten values, as error
// bars and all that is made of them do: of published machines, what a size is off what others let expect lies within
// the bar of that in nine of ten cases.
const (
	far       = math.Ln2
	nineOfTen = 1.64
)

func (s *Site) estimate(slopes []slope) *estimate {
	x := &estimate{slopes: slopes}
	for _, c := range s.curves {
		for _, p := range c.spots {
			x.spots, x.of = append(x.spots, p), append(x.of, c)
			x.bar += p.bar
		}
	}
	n := len(x.spots)
	x.bar /= float64(max(n, 1))
	cov := make([][]float64, n)
	x.inverse, x.weights = make([][]float64, n), make([]float64, n)
	for i, a := range x.spots {
		cov[i], x.inverse[i] = make([]float64, n), make([]float64, n)
		x.inverse[i][i] = 1
		for j, b := range x.spots {
			if x.of[i] == x.of[j] {
				cov[i][j] = together(a, b)
			}
			for _, f := range slopes {
				cov[i][j] += x.spread(f) * f.at(a) * f.at(b)
			}
		}
		cov[i][i] += ofOne * ofOne
	}
	invert(cov, x.inverse)
	for i := range x.spots {
		for j, b := range x.spots {
			x.weights[i] += x.inverse[i][j] * b.log
		}
	}
	return x
}

// at is the slope at a size.
func (f *slope) at(p *spot) float64 { return f.by[p.rows[0]] }

// spread is the square of a figure's bar before anything was measured.
func (x *estimate) spread(f slope) float64 {
	bar := ofShare * x.bar
	if isLaunch(sim.FigureTable()[f.figure].Name) {
		bar = ofLatency * x.bar
	}
	return bar * bar
}

// figure is how far a figure moves (in logarithms), and the bar of that.
func (x *estimate) figure(f slope) (way, bar float64) {
	v := x.spread(f)
	left := v
	for i, a := range x.spots {
		way += v * f.at(a) * x.weights[i]
		for j, b := range x.spots {
			left -= v * f.at(a) * x.inverse[i][j] * f.at(b) * v
		}
	}
	return way, math.Sqrt(max(left, 0))
}

// leftOut is by how much a size is off what all others let expect.
func (x *estimate) leftOut(i int) float64 {
	y, square := x.spots[i].log, 1/x.inverse[i][i]
	return y - sure(y-x.weights[i]*square, square-ofOne*ofOne)
}

// at is what goes with a size, whether it was measured or not (the mean of a Gaussian process, as far as it is sure).
func (x *estimate) at(p *spot) float64 {
	near := make([]float64, len(x.spots))
	way, square := 0.0, together(p, p)
	for i, o := range x.spots {
		near[i] = together(p, o)
		way += near[i] * x.weights[i]
	}
	for i, row := range x.inverse {
		for j, by := range row {
			square -= near[i] * by * near[j]
		}
	}
	return sure(way, square)
}

// sure is what is kept of what is expected, by the square of its bar: as much as times are likelier to differ this way
// than the other way.
func sure(way, square float64) float64 {
	return way * math.Erf(math.Abs(way)*nineOfTen/math.Sqrt(2*max(square, 1e-9)))
}

// invert turns a into the unit matrix and b into a's inverse. a is positive definite, which needs no pivots.
func invert(a, b [][]float64) {
	for i := range a {
		by := 1 / a[i][i]
		scale(a[i], by)
		scale(b[i], by)
		for j := range a {
			if f := a[j][i]; j != i && f != 0 {
				addScaled(a[j], a[i], -f)
				addScaled(b[j], b[i], -f)
			}
		}
	}
}

// Solve solves a system of linear equations whose matrix is positive definite.
func Solve(a [][]float64, b []float64) []float64 {
	column := make([][]float64, len(b))
	for i := range b {
		column[i] = b[i : i+1]
	}
	invert(a, column)
	return b
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x / float64(len(list))
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
