package calibrate

import (
	"cmp"
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// curve is what is left between measured and predicted rows of one collective on one layout, from small to large sizes;
// a size that was measured twice has the mean.
type curve struct {
	kind          coll.Kind
	class, layout string
	p             *predict.Predictor
	spots         []spot
}

// spot is one size of a curve.
type spot struct {
	size unit.Bytes
	at   float64         // the size's logarithm
	bar  float64         // logarithm of the error bar before anything was measured
	way  predict.Setting // by which NCCL does it
	log  float64         // of measured over predicted
	rows []int           // that were measured, in the order of the cases
}

// steepest bounds the logarithm of a factor; what is farther off is no property of a cluster.
const steepest = 3

// curves groups the rows of cases, whose logarithms of measured over predicted are given.
func curves(cases []*truth.Case, logs []float64) []*curve {
	var list []*curve
	n := 0
	for _, c := range cases {
		class, layout := c.Predictor.Class(), c.Predictor.Shape()
		for i, op := range c.Ops {
			k := slices.IndexFunc(list,
				func(x *curve) bool { return x.kind == op.Kind && x.class == class && x.layout == layout })
			if k < 0 {
				k, list = len(list), append(list, &curve{kind: op.Kind, class: class, layout: layout, p: c.Predictor})
			}
			x := list[k]
			j := slices.IndexFunc(x.spots, func(s spot) bool { return s.size == op.Bytes })
			if j < 0 {
				j, x.spots = len(x.spots), append(x.spots, x.spot(op.Bytes))
				x.spots[j].way = c.Settings[i]
			}
			s := &x.spots[j]
			s.rows = append(s.rows, n)
			s.log += (min(max(logs[n], -steepest), steepest) - s.log) / float64(len(s.rows))
			n++
		}
	}
	for _, x := range list {
		slices.SortFunc(x.spots, func(a, b spot) int { return cmp.Compare(a.size, b.size) })
	}
	return list
}

// spot is a size that nobody measured.
func (c *curve) spot(size unit.Bytes) spot {
	op := coll.Op{Kind: c.kind, Bytes: size, Type: coll.Float}
	s := spot{size: size, at: math.Log(float64(max(size, 1))), bar: math.Log(max(c.p.Margin(op), leastBar))}
	s.way, _ = c.p.Auto(op) // where nothing does it, no way is alike
	return s
}

// What a residual (a logarithm) is made of, as standard deviations. The error bar says how well a class of machines and
// sizes is known before anything is measured there, so that all are parts of its logarithm (leastBar at the least) but
// the last: a latency of this cluster, a share of a line rate, what goes with the size, alike at sizes less than
// alikeSizes apart (in logarithms) and less so by another algorithm or protocol, and what belongs to one measurement
// alone. Chosen by leaving out publishers; between half and twice of each the error changes by a twentieth at most.
const (
	leastBar   = 1.02
	ofLatency  = 1.5
	ofShare    = 0.2
	ofSize     = 0.7
	alikeSizes = 4.0
	alikeWays  = 0.6
	ofOne      = 0.05
)

// together is how residuals at two sizes go together.
func together(a, b *spot) float64 {
	v := ofSize * ofSize * a.bar * b.bar * math.Exp(-math.Abs(a.at-b.at)/alikeSizes)
	if a.way.Algo != b.way.Algo || a.way.Proto != b.way.Proto {
		v *= alikeWays
	}
	return v
}

// inverse is that of the covariance of what was measured.
func (c *curve) inverse() [][]float64 {
	cov := c.covariance()
	inverse := make([][]float64, len(cov))
	for i := range cov {
		inverse[i] = make([]float64, len(cov))
		cov[i][i] += ofOne * ofOne
		inverse[i][i] = 1
	}
	invert(cov, inverse)
	return inverse
}

// keep takes of curves what is expected at their sizes and around them, all points of a curve considered (the mean of a
// Gaussian process): nearly all of it where neighbours agree, less where they scatter. It returns the part that is
// kept.
func keep(curves []*curve) (list []cluster.Residual, part float64) {
	was, is := 0.0, 0.0
	for _, c := range curves {
		inverse, logs := c.inverse(), make([]float64, len(c.spots))
		for i := range c.spots {
			logs[i] = c.spots[i].log
		}
		r := cluster.Residual{Op: c.kind.String(), Class: c.class, Layout: c.layout}
		for _, s := range c.between() {
			sum := 0.0
			for i := range c.spots {
				sum += dot(inverse[i], logs) * together(&s, &c.spots[i])
			}
			if len(s.rows) > 0 {
				is, was = is+math.Abs(sum), was+math.Abs(s.log)
			}
			r.Points = append(r.Points, cluster.ResidualPoint{Size: s.size, Factor: round(math.Exp(sum))})
		}
		r.Points = thin(r.Points)
		list = append(list, r)
	}
	if was == 0 {
		return list, 1
	}
	return list, min(1, is/was)
}

// thin leaves out points that lie on the line between their neighbours.
func thin(points []cluster.ResidualPoint) []cluster.ResidualPoint {
	const flat = 0.002
	list := points[:1:1]
	for i := 1; i < len(points); i++ {
		if i+1 < len(points) {
			line := cluster.Residual{Points: []cluster.ResidualPoint{list[len(list)-1], points[i+1]}}
			if math.Abs(line.At(points[i].Size)-math.Log(points[i].Factor)) < flat {
				continue
			}
		}
		list = append(list, points[i])
	}
	return list
}

// between are the measured sizes, every doubled one between two of them, and as many beyond the ends as a curve needs
// to come back.
func (c *curve) between() []spot {
	const step, ends = 2, 10
	var list []spot
	first, last := c.spots[0].size, c.spots[len(c.spots)-1].size
	for k, s := 0, first/step; k < ends && s > 0; k, s = k+1, s/step {
		list = append(list, c.spot(s))
	}
	slices.Reverse(list)
	for i, p := range c.spots {
		list = append(list, p)
		for s := p.size * step; i+1 < len(c.spots) && s > 0 && s < c.spots[i+1].size-c.spots[i+1].size/4; s *= step {
			list = append(list, c.spot(s))
		}
	}
	for k, s := 0, last*step; k < ends && s > 0 && s < unit.Bytes(1)<<50; k, s = k+1, s*step {
		list = append(list, c.spot(s))
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

// A curve is worth keeping from this on, and one that is farther off at most sizes is no property of a cluster: its
// description or the run itself is more likely wrong.
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
