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

// strengths are the parts of a curve that may be kept.
var strengths = []float64{1, 0.75, 0.5, 0.25, 0}

// atLeast is the part of a curve that is kept in any case: what is left when one of a few points is taken away is much coarser
// than they are together, and says too little about them.
func atLeast(points int) float64 {
	switch {
	case points >= 8:
		return 0
	case points >= 5:
		return 1
	}
	return 0.5
}

// few is what is kept of curves that are too short to leave a point out of them.
const few = 0.75

// keep takes the part of the curves that predicts points best which are left out of them, one at a time: all of it
// where neighbours agree, little where points scatter. It returns the part and the errors (logarithms) that are
// left on the points left out.
func keep(list []cluster.Residual) (part float64, left []float64) {
	type pair struct{ truth, said float64 }
	var pairs []pair
	longest := 0
	for _, c := range list {
		longest = max(longest, len(c.Points))
		for i := range c.Points {
			if len(c.Points) < 3 {
				continue
			}
			rest := c
			rest.Points = slices.Delete(slices.Clone(c.Points), i, i+1)
			pairs = append(pairs, pair{math.Log(c.Points[i].Factor), rest.At(c.Points[i].Size)})
		}
	}
	part = few
	if len(pairs) > 0 {
		best := math.Inf(1)
		for _, s := range strengths {
			if s < atLeast(longest) {
				continue
			}
			sum := 0.0
			for _, p := range pairs {
				sum += robust(math.Abs(p.truth - s*p.said))
			}
			if sum < best*(1-1e-9) {
				best, part = sum, s
			}
		}
	}
	for _, p := range pairs {
		left = append(left, math.Abs(p.truth-part*p.said))
	}
	for i := range list {
		for k := range list[i].Points {
			p := &list[i].Points[k]
			p.Factor = round(math.Pow(p.Factor, part))
		}
	}
	return part, left
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
