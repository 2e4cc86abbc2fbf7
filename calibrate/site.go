package calibrate

import (
	"errors"
	"math"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/sim"
)

// Site is a calibration of one cluster.
type Site struct {
	Moved  []Moved     `json:"moved,omitempty"`
	Before truth.Score `json:"before"`
	After  truth.Score `json:"after"`
	// HeldOut scores points by figures that were fitted to every other size of the same sweeps only.
	HeldOut *Held       `json:"held_out,omitempty"`
	Sizes   []SizeScore `json:"sizes,omitempty"`
	Points  int         `json:"different_points"` // a size that was measured twice is one
	Loose   []string    `json:"not_constrained"`  // figures that the points depend on and do not pin down
	// Ends are figures that the points ask to go farther than any host explains: then the description of
	// the cluster or the run itself is more likely wrong than the figure.
	Ends []string `json:"at_their_ends"`
	// Part is how much of what the figures leave is kept: as much as predicts points best that are left out. Dropped says
	// why figures that were fitted are not kept, "" where they are.
	Part    float64 `json:"curve_kept"`
	Dropped string  `json:"figures_dropped,omitempty"`

	residuals []cluster.Residual
	figures   sim.Figures // that are kept
	cases     []*truth.Case
	held      []truth.Row // by figures and curves that were fitted without them
}

// Moved is a figure that the measurements changed.
type Moved struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Was   float64 `json:"was"`
	Value float64 `json:"is"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Measured is what measurements are about, and who says so.
type Measured struct {
	Op         string `json:"op"`
	OpFrom     string `json:"op_from"`
	Layout     string `json:"layout"`
	LayoutFrom string `json:"layout_from"`
	NCCL       string `json:"nccl"`
	NCCLFrom   string `json:"nccl_from"`
}

// moved is how far a figure must move (in logarithms) to be worth a word.
const moved = 0.02

// Cluster fits the figures that measurements on one cluster constrain. start are the
// figures that predictions there had so far.
func Cluster(cases []*truth.Case, start *sim.Figures) (*Site, error) {
	if len(cases) == 0 {
		return nil, errors.New("no measured points")
	}
	s := &Site{Loose: []string{}, Ends: []string{}, cases: cases}
	before, err := truth.Rows(cases, start)
	if err != nil {
		return nil, err
	}
	s.Before, s.Points = truth.Rate(before), distinct(cases)
	fit, err := s.fit(cases, start)
	if err != nil {
		return nil, err
	}
	s.figures = *fit
	if err := s.holdOut(cases, start); err != nil {
		return nil, err
	}
	after, err := truth.Rows(cases, &s.figures)
	if err != nil {
		return nil, err
	}
	if s.residuals, s.Part = keep(curves(cases, logs(after))); !plausible(s.residuals) {
		s.Part, s.residuals = 0, nil
	}
	if after, err = corrected(cases, &s.figures, s.residuals); err != nil {
		return nil, err
	}
	s.After = truth.Rate(after)
	s.Sizes = bySize(before, after)
	_, err = truth.Rows(cases, start) // as they were
	return s, err
}

// fit moves figures as far as the points ask for and as what is known about them allows: the most likely figures, where
// each is spread around start by a part of the error bar, and what they leave goes with the size (the curve). A figure
// that the points hardly feel hardly moves.
func (s *Site) fit(cases []*truth.Case, start *sim.Figures) (*sim.Figures, error) {
	var felt [nFigures]bool
	for _, c := range cases {
		one, err := Felt(c, start, nil)
		if err != nil {
			return nil, err
		}
		for i := range felt {
			felt[i] = felt[i] || one[i]
		}
	}
	var way [nFigures]float64 // from start, in logarithms
	var at *Slopes
	var asked, sd [nFigures]float64
	spread := spreads(cases)
	f := *start
	for range linearised {
		var err error
		if at, err = Slope(cases, &f, &felt); err != nil {
			return nil, err
		}
		asked, sd = at.solve(cases, &way, &spread)
		for i := range f {
			_, lo, hi := sim.FigureRange(i)
			if f[i], way[i] = min(max(start[i]*math.Exp(min(max(asked[i], -far), far)), lo), hi), 0; f[i] > 0 && start[i] > 0 {
				way[i] = math.Log(f[i] / start[i])
			}
		}
	}
	s.Moved, s.Loose, s.Ends = nil, []string{}, []string{}
	for i := range f {
		unit, lo, hi := sim.FigureRange(i)
		switch {
		case math.Abs(way[i]) > moved && at.points[i] > 0:
			f[i] = round(f[i])
			end := func(by float64) float64 { return round(min(max(f[i]*math.Exp(by*sd[i]), lo), hi)) }
			s.Moved = append(s.Moved, Moved{sim.FigureName(i), unit, start[i], f[i], end(-nineOfTen), end(nineOfTen)})
			if math.Abs(asked[i]) > 2*far {
				s.Ends = append(s.Ends, sim.FigureName(i))
			}
		default:
			if f[i] = start[i]; at.points[i] > 0 && sd[i] > unknown*spread[i] {
				s.Loose = append(s.Loose, sim.FigureName(i))
			}
		}
	}
	return &f, nil
}

// How often times are taken for straight lines of the figures, how far (in logarithms) a host explains a figure, how
// many standard deviations hold nine of ten values, and how much of what is not known about a figure must be left so
// that the points do not determine it.
const (
	linearised = 2
	far        = math.Ln2
	nineOfTen  = 1.64
	unknown    = 0.9
)

// spreads are the standard deviations of figures around the usual ones.
func spreads(cases []*truth.Case) (list [nFigures]float64) {
	bar, n := 0.0, 0.0
	for _, c := range cases {
		for _, op := range c.Ops {
			bar, n = bar+math.Log(max(c.Predictor.Margin(op), leastBar)), n+1
		}
	}
	for i := range list {
		if list[i] = ofLatency * bar / n; isFirm(sim.FigureName(i)) {
			list[i] = ofShare * bar / n
		}
	}
	return list
}

// solve are the most likely ways of figures, and how well they are known then: generalised least squares, where what
// sizes of a curve have in common is no evidence for a figure. was is the way at which the slopes were taken.
func (s *Slopes) solve(cases []*truth.Case, was, spread *[nFigures]float64) (way, sd [nFigures]float64) {
	var free []int
	for i := range s.By {
		if s.points[i] > 0 {
			free = append(free, i)
		}
	}
	a, inverse := make([][]float64, len(free)), make([][]float64, len(free))
	b := make([]float64, len(free))
	for i, f := range free {
		a[i], inverse[i] = make([]float64, len(free)), make([]float64, len(free))
		a[i][i], inverse[i][i] = 1/(spread[f]*spread[f]), 1
	}
	for _, c := range curves(cases, s.times) {
		n := len(c.spots)
		y := make([]float64, n)
		by := make([][]float64, len(free))
		for i, f := range free {
			by[i] = make([]float64, n)
			for k := range c.spots {
				for _, row := range c.spots[k].rows {
					by[i][k] += s.By[f][row] / float64(len(c.spots[k].rows))
				}
				y[k] += by[i][k] * was[f]
			}
		}
		for k := range c.spots {
			y[k] += c.spots[k].log
		}
		for k, row := range c.inverse() {
			for i := range free {
				w := by[i][k]
				if w == 0 {
					continue
				}
				b[i] += w * dot(row, y)
				for j := range free {
					a[i][j] += w * dot(row, by[j])
				}
			}
		}
	}
	invert(a, inverse)
	for i, f := range free {
		way[f], sd[f] = dot(inverse[i], b), math.Sqrt(max(inverse[i][i], 0))
	}
	return way, sd
}

// logs are those of measured over predicted.
func logs(rows []truth.Row) []float64 {
	list := make([]float64, len(rows))
	for i := range rows {
		list[i] = -math.Log(rows[i].Ratio())
	}
	return list
}

// round keeps four digits, as they are written.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	p := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*p) / p
}

// Calibration is the site in the form of the cluster file. Figures of an earlier
// calibration that did not move now stay.
func (s *Site) Calibration(old *cluster.Calibration, source string) *cluster.Calibration {
	c := &cluster.Calibration{Points: s.After.Points, Median: round(s.After.Median), P90: round(s.After.P90)}
	now := map[string]bool{}
	for _, m := range s.Moved {
		c.Figures = append(c.Figures, cluster.Calibrated{
			Name: m.Name, Value: m.Value, Unit: m.Unit, Low: m.Low, High: m.High, Source: source,
		})
		now[m.Name] = true
	}
	if len(s.Moved) > 0 || s.Part > 0 {
		c.Measured = s.measured()
	}
	if s.Part > 0 {
		c.Residuals = s.residuals
	}
	if old != nil {
		for _, f := range old.Figures {
			if !now[f.Name] {
				c.Figures = append(c.Figures, f)
			}
		}
	}
	return c
}
