package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// curve is what is left between measured and predicted times of calls that one curve holds for, from small to large
// sizes.
type curve struct {
	kind  coll.Kind
	p     *predict.Predictor
	spots []*spot
	noise float64   // by how much repeats differ at most
	was   []float64 // how far off sizes are without calibration, and when they are predicted from the others
	is    []float64

	kept     bool
	residual cluster.Residual
}

// spot is one size of a curve.
type spot struct {
	size unit.Bytes
	at   float64         // the size's logarithm
	bar  float64         // logarithm of the error bar before anything was measured
	part float64         // of the time that bytes move
	way  predict.Setting // by which NCCL does it
	raw  float64         // logarithm of measured over predicted
	log  float64         // the same within bounds
	rows []int           // that were measured, in the order of the cases
	logs []float64       // theirs
}

// Sizes are those to calibrate with, each measured twice: two that a launch and messages take, two between, and one
// that links take.
var Sizes = []unit.Bytes{8, 16 * unit.KiB, 512 * unit.KiB, 16 * unit.MiB, unit.GiB}

// steepest bounds the logarithm of a factor; what is farther off is no property of a cluster.
const steepest = 3

// curves groups the rows of cases.
func curves(cases []*truth.Case, rows []truth.Row) []*curve {
	var list []*curve
	n := 0
	for _, c := range cases {
		for i, op := range c.Ops {
			about := c.Predictor.Curve(op.Kind)
			k := slices.IndexFunc(list, func(x *curve) bool { return x.residual.Same(&about) })
			if k < 0 {
				k, list = len(list), append(list, &curve{kind: op.Kind, p: c.Predictor, residual: about})
			}
			x := list[k]
			j := slices.IndexFunc(x.spots, func(s *spot) bool { return s.size == op.Bytes })
			if j < 0 {
				j, x.spots = len(x.spots), append(x.spots, x.spot(op.Bytes))
				x.spots[j].way = c.Settings[i]
			}
			s := x.spots[j]
			s.rows, s.bar = append(s.rows, n), math.Log(max(rows[n].Margin, leastBar))
			n++
		}
	}
	for _, x := range list {
		slices.SortFunc(x.spots, func(a, b *spot) int { return cmp.Compare(a.size, b.size) })
		x.relog(rows)
	}
	return list
}

// relog takes what predictions leave; a size that was measured twice has the median.
func (c *curve) relog(rows []truth.Row) {
	for _, s := range c.spots {
		s.logs = s.logs[:0]
		for _, k := range s.rows {
			s.logs = append(s.logs, -math.Log(rows[k].Ratio()))
		}
		s.raw = stats.Median(s.logs)
		s.log = min(max(s.raw, -steepest), steepest)
	}
}

// spot is a size that nobody measured.
func (c *curve) spot(size unit.Bytes) *spot {
	op := coll.Op{Kind: c.kind, Bytes: size, Type: coll.Float}
	s := &spot{size: size, at: math.Log(float64(max(size, 1))), bar: math.Log(max(c.p.Margin(op), leastBar))}
	s.way, _ = c.p.Auto(op) // where nothing does it, no way is alike
	if run, err := c.p.Price(op, s.way); err == nil {
		s.part = float64(run.Parts.Moving) / float64(run.Time)
	}
	return s
}

// doubt is what is said of a size that does not count.
func (c *curve) doubt(s *spot, reason string) Doubt {
	return Doubt{c.residual.Op, c.residual.Layout, s.size, round(math.Exp(s.raw)), reason}
}

// sickBars is how many error bars off a run is that is no healthy one on this cluster.
const sickBars = 3

// sick says why a sweep is none of a healthy cluster as it is described, nil where it may be: two neighbouring sizes,
// or half of all, are farther off than three times their error bars, the same way. One such size alone is a slip.
func (c *curve) sick() *Doubt {
	far := func(s *spot) float64 {
		if math.Abs(s.log) > s.bar+math.Log(sickBars) {
			return s.log
		}
		return 0
	}
	var worst *spot
	many := 0
	for i, s := range c.spots {
		if far(s) == 0 {
			continue
		}
		many++
		if 2*many >= len(c.spots) || i > 0 && far(c.spots[i-1])*far(s) > 0 {
			worst = s
		}
	}
	if worst == nil {
		return nil
	}
	reason := "faster than this cluster can be: most likely another unit (ms for µs, Gb for GB) or another cluster"
	if worst.log > 0 {
		reason = "slower than a healthy cluster is; busbar doctor with the same file names what may be wrong"
	}
	x := c.doubt(worst, fmt.Sprintf("beyond %d times the error bar of ×%.2f: %s", sickBars, math.Exp(worst.bar), reason))
	return &x
}

// apart is how far two measurements of one size may differ, as a factor, and alone how far one size from both of its
// neighbours that was measured once.
const (
	apart = 1.25
	alone = 1.7
)

// settle drops measurements that disagree with their repeats, the whole size where none is borne out by another, and
// sizes that were measured once and stand alone.
func (c *curve) settle() (list []Doubt) {
	all := slices.Clone(c.spots)
	c.spots = c.spots[:0]
	for i, s := range all {
		reason := ""
		switch least, most := slices.Min(s.logs), slices.Max(s.logs); {
		case most-least > math.Log(apart):
			var rows []int
			for k, row := range s.rows {
				if math.Abs(s.logs[k]-s.raw) <= math.Log(apart)/2 {
					rows = append(rows, row)
				}
			}
			if s.rows = rows; len(rows) < 2 {
				reason = fmt.Sprintf("measurements of it are ×%.2f apart; expected at most ×%.2f", math.Exp(most-least), apart)
			}
		case len(s.rows) == 1 && len(all) >= Fewest && standsAlone(all, i):
			reason = fmt.Sprintf("more than ×%.1f off both of its neighbours, and measured once; measure it twice", alone)
		default:
			c.noise = max(c.noise, most-least)
		}
		if reason == "" {
			c.spots = append(c.spots, s)
		} else {
			list = append(list, c.doubt(s, reason))
		}
	}
	return list
}

// standsAlone tells a size that is off both of its neighbours, and by much more than these are apart; beyond the ends
// predictions are right.
func standsAlone(all []*spot, i int) bool {
	left, right := 0.0, 0.0
	if i > 0 {
		left = all[i-1].log
	}
	if i+1 < len(all) {
		right = all[i+1].log
	}
	off := min(math.Abs(all[i].log-left), math.Abs(all[i].log-right))
	return off > max(math.Log(alone), 2*math.Abs(left-right))
}

// What a residual (a logarithm) is made of, each with the bar that holds nine of ten. The error bar says how well a
// class of machines and sizes is known before anything is measured there, so that all are parts of its logarithm
// (leastBar at the least) but the last: a launch of this cluster, a share of a line rate, what goes with the size,
// alike at sizes less than alikeSizes apart (in logarithms), where the parts of the time that bytes move are less than
// alikeParts apart, and less so by another algorithm or protocol, and what belongs to one measurement alone. Chosen by
// calibrating published machines with five of their sizes: without the parts what small messages take went into large
// ones.
const (
	leastBar   = 1.02
	ofLatency  = 0.75
	ofShare    = 0.1
	ofSize     = 0.7
	alikeSizes = 16.0
	alikeParts = 1 / 3.0
	alikeWays  = 0.3
	ofOne      = 0.05
)

// together is how residuals at two sizes of a curve go together.
func together(a, b *spot) float64 {
	v := ofSize * ofSize * a.bar * b.bar * math.Exp(-math.Abs(a.at-b.at)/alikeSizes-math.Abs(a.part-b.part)/alikeParts)
	if a.way.Algo != b.way.Algo || a.way.Proto != b.way.Proto {
		v *= alikeWays
	}
	return v
}

// smooth is what is expected at the curve's sizes and around them, all of its points considered: nearly all of what was
// measured where neighbours agree, less where they scatter or are far away.
func (c *curve) smooth() cluster.Residual {
	x := (&Site{curves: []*curve{c}}).estimate(nil)
	r := c.residual
	r.From, r.To = c.spots[0].size, c.spots[len(c.spots)-1].size
	if r.Noise = round(math.Exp(c.noise) - 1); len(c.is) > Fewest {
		r.Error = round(math.Exp(stats.Quantile(c.is, inside)) - 1)
	}
	for _, s := range c.between() {
		r.Points = append(r.Points, cluster.ResidualPoint{Size: s.size, Factor: round(math.Exp(x.at(s)))})
	}
	r.Points = thin(r.Points)
	return r
}

// inside is the share of errors that an error bar is to hold.
const inside = 0.9

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
func (c *curve) between() []*spot {
	const step, ends = 2, 10
	var list []*spot
	first, last := c.spots[0].size, c.spots[len(c.spots)-1].size
	for k, s := 0, first/step; k < ends && s > 0; k, s = k+1, s/step {
		list = append(list, c.spot(s))
	}
	slices.Reverse(list)
	for i, p := range c.spots {
		list = append(list, c.spot(p.size)) // of sums of floats: what was measured of another type may go another way
		for s := p.size * step; i+1 < len(c.spots) && s > 0 && s < c.spots[i+1].size-c.spots[i+1].size/4; s *= step {
			list = append(list, c.spot(s))
		}
	}
	for k, s := 0, last*step; k < ends && s > 0 && s < unit.Bytes(1)<<50; k, s = k+1, s*step {
		list = append(list, c.spot(s))
	}
	return list
}
