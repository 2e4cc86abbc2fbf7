package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/internal/stats"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// curves are what is left between measured and predicted rows, a curve for every collective and layout, from small
// to large sizes; a size that was measured twice has the mean.
func curves(rows []truth.Row) []cluster.Residual {
	type key struct{ op, class, layout string }
	sums := map[key]map[int64][2]float64{}
	var order []key
	for i := range rows {
		r := &rows[i]
		k := key{r.Case.Ops[r.Index].Kind.String(), r.Case.Predictor.Class(), fmt.Sprintf("%dx%d", r.Case.Sweep.Nodes, r.Case.Sweep.PerNode)}
		if sums[k] == nil {
			sums[k] = map[int64][2]float64{}
			order = append(order, k)
		}
		x := sums[k][int64(r.Size())]
		sums[k][int64(r.Size())] = [2]float64{x[0] - math.Log(r.Ratio()), x[1] + 1}
	}
	var list []cluster.Residual
	for _, k := range order {
		c := cluster.Residual{Op: k.op, Class: k.class, Layout: k.layout}
		for size, x := range sums[k] {
			c.Points = append(c.Points, cluster.ResidualPoint{Size: unit.Bytes(size), Factor: math.Exp(min(max(x[0]/x[1], -steepest), steepest))})
		}
		slices.SortFunc(c.Points, func(a, b cluster.ResidualPoint) int { return cmp.Compare(a.Size, b.Size) })
		list = append(list, c)
	}
	return list
}

// steepest bounds the logarithm of a factor; what is farther off is no property of a cluster.
const steepest = 3

// What a residual (a logarithm) is made of, as standard deviations: one offset for all sizes, what goes with the size, alike at
// sizes that are less than alikeSizes apart (in logarithms), and what belongs to one size alone. Chosen by leaving out publishers.
const (
	ofAll      = 0.3
	ofSize     = 0.5
	alikeSizes = 4.0
	ofOne      = 0.06
)

// keep takes of the curves what is expected at their sizes, all points of a curve considered (the mean of a Gaussian process): nearly all
// of it where neighbours agree, less where they scatter. It returns the part that is kept and the errors
// (logarithms) at points that are left out, one at a time.
func keep(list []cluster.Residual) (part float64, left []float64) {
	was, is := 0.0, 0.0
	for k := range list {
		c := &list[k]
		at, logs := make([]float64, len(c.Points)), make([]float64, len(c.Points))
		for i, p := range c.Points {
			at[i], logs[i] = math.Log(float64(max(p.Size, 1))), math.Log(p.Factor)
		}
		weights, errs := expect(at, logs)
		if len(at) >= 3 {
			left = append(left, errs...)
		}
		for i := range at {
			is, was = is+math.Abs(logs[i]-ofOne*ofOne*weights[i]), was+math.Abs(logs[i])
		}
		var list []cluster.ResidualPoint
		for _, size := range between(c.Points) {
			sum, x := 0.0, math.Log(float64(max(size, 1)))
			for i := range at {
				sum += weights[i] * together(x, at[i])
			}
			list = append(list, cluster.ResidualPoint{Size: size, Factor: round(math.Exp(sum))})
		}
		c.Points = list
	}
	if was == 0 {
		return 1, left
	}
	return min(1, is/was), left
}

// together is how residuals at two sizes (logarithms) go together.
func together(a, b float64) float64 {
	return ofAll*ofAll + ofSize*ofSize*math.Exp(-math.Abs(a-b)/alikeSizes)
}

// expect are the weights by which residuals at sizes count elsewhere, and how far off each is where the others alone are known.
func expect(at, logs []float64) (weights, errs []float64) {
	n := len(at)
	cov, inverse := make([][]float64, n), make([][]float64, n)
	for i := range cov {
		cov[i], inverse[i] = make([]float64, n), make([]float64, n)
		for j := range cov {
			cov[i][j] = together(at[i], at[j])
		}
		cov[i][i] += ofOne * ofOne
		inverse[i][i] = 1
	}
	invert(cov, inverse)
	for i := range inverse {
		w := dot(inverse[i], logs)
		weights, errs = append(weights, w), append(errs, math.Abs(w/inverse[i][i]))
	}
	return weights, errs
}

// between are the sizes of points, every fourfold size between two of them, and as many beyond the ends as a curve
// needs to come back to its offset.
func between(points []cluster.ResidualPoint) []unit.Bytes {
	const step, ends = 4, 4
	var list []unit.Bytes
	first, last := points[0].Size, points[len(points)-1].Size
	for k, s := 0, first/step; k < ends && s > 0; k, s = k+1, s/step {
		list = append(list, s)
	}
	slices.Reverse(list)
	for i, p := range points {
		list = append(list, p.Size)
		for s := p.Size * step; i+1 < len(points) && s > 0 && s < points[i+1].Size-points[i+1].Size/step; s *= step {
			list = append(list, s)
		}
	}
	for k, s := 0, last*step; k < ends && s < unit.Bytes(1)<<50; k, s = k+1, s*step {
		list = append(list, s)
	}
	return list
}

// invert turns a into the unit matrix and b into a's inverse. a is positive definite, which needs no pivots.
func invert(a, b [][]float64) {
	for i := range a {
		by := 1 / a[i][i]
		scale(a[i], by)
		scale(b[i], by)
		for j := range a {
			if f := a[j][i]; j != i && f != 0 {
				add(a[j], a[i], -f)
				add(b[j], b[i], -f)
			}
		}
	}
}

// A curve is worth keeping from this on, and one that is farther off at most sizes is no property of a cluster: its description or
// the run itself is more likely wrong.
const (
	leastFactor = 1.005
	mostFactor  = 3.0
)

// plausible tells whether curves say something, and nothing that cannot be.
func plausible(list []cluster.Residual) bool {
	var logs []float64
	for _, c := range list {
		for _, p := range c.Points {
			logs = append(logs, math.Abs(math.Log(p.Factor)))
		}
	}
	return len(logs) > 0 && stats.Quantile(logs, 1) > math.Log(leastFactor) && stats.Median(logs) < math.Log(mostFactor)
}

// corrected predicts cases by figures and curves.
func corrected(cases []*truth.Case, f *sim.Figures, list []cluster.Residual) ([]truth.Row, error) {
	had := map[*cluster.Cluster]*cluster.Calibration{}
	for _, c := range cases {
		cl := c.Predictor.Cluster
		if _, seen := had[cl]; !seen {
			had[cl] = cl.Calibration
		}
		cl.Calibration = &cluster.Calibration{Residuals: list}
	}
	defer func() {
		for cl, old := range had {
			cl.Calibration = old
		}
	}()
	return truth.Rows(cases, f)
}

// lossOf is the mean robust error of rows.
func lossOf(rows []truth.Row) float64 {
	sum := 0.0
	for i := range rows {
		sum += robust(math.Abs(math.Log(rows[i].Ratio()))) / float64(len(rows))
	}
	return sum
}
