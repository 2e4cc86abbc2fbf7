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
	Moved         []Moved
	Before, After truth.Score
	// HeldBefore and HeldAfter score points by figures that were fitted to every
	// other size of the same sweeps only.
	HeldBefore, HeldAfter truth.Score
	Sizes                 []SizeScore
	Points                int      // different ones; a size that was measured twice is one
	Loose                 []string // figures that the points depend on and do not pin down
	// Ends are figures that went to an end of what is physical: then the description of
	// the cluster or the run itself is more likely wrong than the figure.
	Ends []string
	// Residuals are what the figures leave, and Part how much of it is kept: as much as predicts points best that are
	// left out. Dropped says why figures that were fitted are not kept, "" where they are.
	Residuals []cluster.Residual
	Part      float64
	Dropped   string

	figures sim.Figures // that are kept
	cases   []*truth.Case
	held    []truth.Row // by figures and curves that were fitted without them
	left    []float64   // errors of points that were left out of the curves
}

// Moved is a figure that the measurements changed.
type Moved struct {
	Name, Unit string
	Was, Value float64
	Low, High  float64
	Points     int // whose time depends on it
}

// How hard the usual figures hold a site's, how far a figure must move to be worth
// a word, and how much worse (mean error) points fit at the ends of its range.
const (
	sitePull = 0.05
	moved    = 0.01
	worse    = 0.005
	loose    = 4.0 // a range wider than this factor says nothing
)

// Cluster fits the figures that measurements on one cluster constrain. start are the
// figures that predictions there had so far.
func Cluster(cases []*truth.Case, start *sim.Figures) (*Site, error) {
	if len(cases) == 0 {
		return nil, errors.New("no measured points")
	}
	s := &Site{cases: cases}
	before, err := truth.Rows(cases, start)
	if err != nil {
		return nil, err
	}
	s.Before, s.Points = truth.Rate(before), distinct(cases)
	fit, err := s.fit(cases, start)
	if err != nil {
		return nil, err
	}
	s.figures = fit.f
	if err := s.holdOut(cases, start); err != nil {
		return nil, err
	}
	after, err := truth.Rows(cases, &s.figures)
	if err != nil {
		return nil, err
	}
	s.Residuals = curves(after)
	if s.Part, s.left = keep(s.Residuals); !plausible(s.Residuals) {
		s.Part, s.Residuals = 0, nil
	}
	if after, err = corrected(cases, &s.figures, s.Residuals); err != nil {
		return nil, err
	}
	s.After = truth.Rate(after)
	s.Sizes = bySize(before, after)
	_, err = truth.Rows(cases, start) // as they were
	return s, err
}

// drop goes back to the figures of before, and says why.
func (s *Site) drop(start *sim.Figures, why string) {
	s.figures, s.Moved, s.Ends, s.Dropped = *start, nil, nil, why
}

// fit moves the figures that the points pin down: a few that explain the error are
// chosen and fitted, then more at the fitted values, while there are points for
// them. What turns out to be loose goes back, and the rest is fitted once more.
func (s *Site) fit(cases []*truth.Case, start *sim.Figures) (*search, error) {
	p := &Problem{Cases: cases, Start: start, Prior: start, Pull: sitePull, Alone: true, Quick: true}
	felt, err := touches(cases, start)
	if err != nil {
		return nil, err
	}
	x, err := p.grow(&felt)
	if err != nil {
		return nil, err
	}
	for i := range p.Free {
		if p.Free[i] {
			lo, hi := x.bounds(i)
			p.Free[i] = hi/max(lo, 1e-9) < loose && math.Abs(x.f[i]/start[i]-1) > moved
		}
	}
	if p.Free == ([nFigures]bool{}) { // nothing is pinned down: all stays as it was
		x.f = *start
	} else if x, err = p.run(); err != nil {
		return nil, err
	}
	x.hold(start, distinct(cases))
	at, err := slope(cases, &x.f, &felt)
	if err != nil {
		return nil, err
	}
	s.Moved, s.Loose, s.Ends = nil, nil, nil
	for i := range x.f {
		unit, _, _ := sim.FigureRange(i)
		switch {
		case p.Free[i] && math.Abs(x.f[i]/start[i]-1) <= moved:
			x.f[i] = start[i]
		case p.Free[i]:
			lo, hi := x.bounds(i)
			s.Moved = append(s.Moved, Moved{sim.FigureName(i), unit, start[i], round(x.f[i]), round(lo), round(hi), at.points[i]})
			x.f[i] = round(x.f[i])
			if _, least, most := sim.FigureRange(i); (x.f[i] <= least && least > 0 || x.f[i] >= most) && strange(x.f[i], start[i]) {
				s.Ends = append(s.Ends, sim.FigureName(i))
			}
		case at.points[i] > 0:
			s.Loose = append(s.Loose, sim.FigureName(i))
		}
	}
	return x, nil
}

// doubt is how many points what was known before counts for.
const doubt = 2

// hold lets figures go the part of the way that so many points have a right to: two points move one by half of what would explain
// them, in logarithms, twenty by nine tenths. The curve takes the rest.
func (s *search) hold(start *sim.Figures, points int) {
	part := float64(points) / float64(points+doubt)
	for i := range s.f {
		if s.Free[i] && s.f[i] > 0 && start[i] > 0 {
			s.f[i] = start[i] * math.Pow(s.f[i]/start[i], part)
		}
	}
}

// grow chooses figures and fits them, twice more from where the fit ended: what
// limits a transfer changes as figures move.
func (p *Problem) grow(felt *[nFigures]bool) (*search, error) {
	var chosen []int
	x := &search{Problem: p, f: *p.Start}
	points := distinct(p.Cases)
	for range 3 {
		s, err := slope(p.Cases, &x.f, felt)
		if err != nil {
			return nil, err
		}
		had := len(chosen)
		if chosen = s.choose(chosen, points); len(chosen) == had {
			break
		}
		for _, i := range chosen {
			p.Free[i] = true
		}
		if x, err = p.run(); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// strange is a change that no host explains.
func strange(now, was float64) bool { return now > 2*was || now < was/2 }

// round keeps four digits, as they are written.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	p := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*p) / p
}

// bounds are how far a figure may go up and down until the mean error of all points
// has grown by more than a little.
func (s *search) bounds(i int) (low, high float64) {
	_, lo, hi := sim.FigureRange(i)
	old := s.f[i]
	base := s.dataLoss()
	limit := worse * s.weight
	find := func(end float64) float64 {
		s.f[i] = end
		if s.dataLoss()-base < limit {
			return end
		}
		in, out := old, end
		for range 24 {
			s.f[i] = (in + out) / 2
			if s.dataLoss()-base < limit {
				in = s.f[i]
			} else {
				out = s.f[i]
			}
		}
		return in
	}
	low, high = find(lo), find(hi)
	s.f[i] = old
	return low, high
}

func (s *search) dataLoss() float64 {
	sum := 0.0
	for _, c := range s.Cases {
		if l, err := s.caseLoss(c); err == nil {
			sum += l
		}
	}
	return sum
}

// Calibration is the site in the form of the cluster file. Figures of an earlier
// calibration that did not move now stay.
func (s *Site) Calibration(old *cluster.Calibration, source string) *cluster.Calibration {
	c := &cluster.Calibration{Points: s.After.Points, Median: round(s.After.Median), P90: round(s.After.P90)}
	now := map[string]bool{}
	for _, m := range s.Moved {
		c.Figures = append(c.Figures, cluster.Calibrated{Name: m.Name, Value: m.Value, Unit: m.Unit, Low: m.Low, High: m.High, Source: source})
		now[m.Name] = true
	}
	if len(s.Moved) > 0 || s.Part > 0 {
		c.Measured = s.measured()
	}
	if s.Part > 0 {
		c.Residuals = s.Residuals
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
