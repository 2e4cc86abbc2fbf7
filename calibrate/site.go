package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Site is a calibration of one cluster: curves of measured over predicted, each for what it was measured on alone, and
// the figures of launches and links, which hold for other calls too.
type Site struct {
	Moved  []Moved     `json:"moved,omitempty"`
	Before truth.Score `json:"before"` // of the points that count
	After  truth.Score `json:"after"`
	// HeldOut scores every size by what is kept of the others.
	HeldOut *Held `json:"held_out,omitempty"`
	Points  int   `json:"different_points"` // a size that was measured twice is one
	// Dropped are sizes whose measurements do not agree with each other or with their neighbours, Refused sweeps that
	// cannot be healthy runs on this cluster. Nothing is fitted to either.
	Dropped []Doubt `json:"dropped,omitempty"`
	Refused []Doubt `json:"refused,omitempty"`

	figures sim.Figures
	curves  []*curve // of which the helpful ones are kept
}

// Held is the error before and after a fit.
type Held struct {
	Before truth.Score `json:"before"`
	After  truth.Score `json:"after"`
}

// Doubt is a measurement that says nothing about the cluster, and why.
type Doubt struct {
	Op     string     `json:"op"`
	Layout string     `json:"layout"`
	Size   unit.Bytes `json:"size_bytes"`
	Factor float64    `json:"factor"` // measured over predicted
	Reason string     `json:"reason"`
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

const (
	moved = 0.02 // is how far a figure or sizes must be off (in logarithms) to be worth a word
	// mostSizes bounds the different sizes of all sweeps: the time grows with their third power.
	mostSizes = 1000
	// Fewest is how many sizes there must be to tell whether a curve helps at one that was left out.
	Fewest = 3
	// harm is how much worse, as a factor, sizes that are left out may be predicted from the others for a curve to be
	// kept: where one of five is left out, a gap of four decades is to be crossed, which the whole curve has not.
	harm = 1.2
)

// Cluster calibrates with measurements on one cluster. start are the figures that predictions there had so far. Firm
// ones stay: the curves of an earlier calibration were made beside them.
func Cluster(cases []*truth.Case, start *sim.Figures, firm bool) (*Site, error) {
	if len(cases) == 0 {
		return nil, errors.New("no measured points")
	}
	s := &Site{figures: *start}
	rows, err := truth.Rows(cases, start)
	if err != nil {
		return nil, err
	}
	for _, c := range curves(cases, rows) {
		if x := c.sick(); x != nil {
			s.Refused = append(s.Refused, *x)
			continue
		}
		s.Dropped = append(s.Dropped, c.settle()...)
		c.relog(rows)
		s.curves = append(s.curves, c)
	}
	n := 0
	for _, c := range s.curves {
		n += len(c.spots)
	}
	if n > mostSizes {
		return nil, fmt.Errorf("%d different sizes; expected at most %d", n, mostSizes)
	}
	var slopes []slope
	if !firm {
		if slopes, err = slopesOf(cases, start); err != nil {
			return nil, err
		}
	}
	x := s.estimate(slopes)
	s.judge(x, rows)
	if err := s.apply(x, cases); err != nil {
		return nil, err
	}
	_, err = truth.Rows(cases, start) // as they were
	return s, err
}

// judge keeps the curves by which sizes that are left out are not worse predicted than without.
func (s *Site) judge(x *estimate, rows []truth.Row) {
	var before, after []truth.Row
	for i, p := range x.spots {
		c := x.of[i]
		c.was, c.is = append(c.was, math.Abs(p.log)), append(c.is, math.Abs(x.leftOut(i)))
		for _, k := range p.rows {
			row := rows[k]
			before = append(before, row)
			after = append(after, row.With(unit.Time(float64(row.Measured())*math.Exp(-x.leftOut(i)))))
		}
	}
	s.Points = len(x.spots)
	if s.Before = truth.Rate(before); len(before) > 0 {
		s.HeldOut = &Held{s.Before, truth.Rate(after)}
	}
	for _, c := range s.curves {
		was := mean(c.was)
		c.kept = len(c.was) >= Fewest && was > moved && mean(c.is) < harm*was
	}
}

// Better tells whether there is something worth keeping.
func (s *Site) Better() bool {
	return slices.ContainsFunc(s.curves, func(c *curve) bool { return c.kept })
}

// apply takes the figures, and what they leave as curves.
func (s *Site) apply(x *estimate, cases []*truth.Case) error {
	s.After = s.Before
	if !s.Better() {
		return nil
	}
	s.move(x)
	rows, err := truth.Rows(cases, &s.figures)
	if err != nil {
		return err
	}
	var after []truth.Row
	for _, c := range s.curves {
		c.relog(rows)
		if c.kept {
			c.residual = c.smooth()
		}
		for _, p := range c.spots {
			for _, k := range p.rows {
				after = append(after, rows[k].With(unit.Time(float64(rows[k].Predicted)*math.Exp(c.residual.At(p.size)))))
			}
		}
	}
	s.After = truth.Rate(after)
	return nil
}

// move takes the figures that the estimate changes.
func (s *Site) move(x *estimate) {
	for _, f := range x.slopes {
		about := &sim.FigureTable()[f.figure]
		way, bar := x.figure(f)
		was := s.figures[f.figure]
		to := round(min(max(was*math.Exp(min(max(way, -far), far)), about.Least), about.Most))
		if math.Abs(math.Log(to/was)) <= moved {
			continue
		}
		s.figures[f.figure] = to
		end := func(by float64) float64 { return round(min(max(to*math.Exp(by*bar), about.Least), about.Most)) }
		s.Moved = append(s.Moved, Moved{about.Name, about.Unit, was, to, end(-1), end(1)})
	}
}

// round keeps four digits, as they are written.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	p := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*p) / p
}

// Calibration is the site in the form of the cluster file. What an earlier calibration has of other calls and other
// figures stays.
func (s *Site) Calibration(old *cluster.Calibration, source string) *cluster.Calibration {
	c := &cluster.Calibration{Points: s.After.Points, Median: round(s.After.Median), P90: round(s.After.P90)}
	for _, m := range s.Moved {
		c.Figures = append(c.Figures, cluster.Calibrated{
			Name: m.Name, Value: m.Value, Unit: m.Unit, Low: m.Low, High: m.High, Source: source,
		})
	}
	for _, x := range s.curves {
		if x.kept {
			x.residual.Source = source
			c.Residuals = append(c.Residuals, x.residual)
		}
	}
	if old == nil {
		return c
	}
	for _, f := range old.Figures {
		if !slices.ContainsFunc(c.Figures, func(x cluster.Calibrated) bool { return x.Name == f.Name }) {
			c.Figures = append(c.Figures, f)
		}
	}
	for i := range old.Residuals {
		r := &old.Residuals[i]
		if !slices.ContainsFunc(c.Residuals, func(x cluster.Residual) bool { return r.Same(&x) }) {
			c.Residuals = append(c.Residuals, *r)
		}
	}
	return c
}
