package calibrate

import (
	"errors"
	"fmt"
	"math"

	"busbar/cluster"
	"busbar/predict"
	"busbar/sim"
	"busbar/truth"
)

// Site is a calibration of one cluster.
type Site struct {
	Moved         []Moved
	Before, After truth.Score
	// HeldBefore and HeldAfter score points by figures that were fitted to every
	// other size of the same sweeps only.
	HeldBefore, HeldAfter truth.Score
	Loose                 []string // figures that the points depend on and do not pin down
	// Ends are figures that went to an end of what is physical: then the description of
	// the cluster or the run itself is more likely wrong than the figure.
	Ends []string
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
	s := &Site{}
	before, err := truth.Rows(cases, start)
	if err != nil {
		return nil, err
	}
	s.Before = truth.Rate(before)
	fit, err := s.fit(cases, start)
	if err != nil {
		return nil, err
	}
	after, err := truth.Rows(cases, &fit.f)
	if err != nil {
		return nil, err
	}
	s.After = truth.Rate(after)
	if err := s.holdOut(cases, start); err != nil {
		return nil, err
	}
	_, err = truth.Rows(cases, start) // as they were
	return s, err
}

// fit fits twice: all figures that the points depend on, then those again that the
// points pin down, while the others are back at what is usual.
func (s *Site) fit(cases []*truth.Case, start *sim.Figures) (*search, error) {
	p := &Problem{Cases: cases, Start: start, Prior: start, Pull: sitePull, Alone: true, Quick: true}
	felt, err := touches(cases, start)
	if err != nil {
		return nil, err
	}
	p.Free = felt
	x, err := p.run()
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
	s.Moved, s.Loose, s.Ends = nil, nil, nil
	for i := range x.f {
		unit, _, _ := sim.FigureRange(i)
		switch lo, hi := x.bounds(i); {
		case p.Free[i] && math.Abs(x.f[i]/start[i]-1) <= moved:
			x.f[i] = start[i]
		case p.Free[i]:
			s.Moved = append(s.Moved, Moved{sim.FigureName(i), unit, start[i], round(x.f[i]), round(lo), round(hi), x.points[i]})
			x.f[i] = round(x.f[i])
			if _, least, most := sim.FigureRange(i); (x.f[i] <= least && least > 0 || x.f[i] >= most) && strange(x.f[i], start[i]) {
				s.Ends = append(s.Ends, sim.FigureName(i))
			}
		case felt[i] && hi/max(lo, 1e-9) >= loose:
			s.Loose = append(s.Loose, sim.FigureName(i))
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

// holdOut fits every other size and predicts the rest, both ways round.
func (s *Site) holdOut(cases []*truth.Case, start *sim.Figures) error {
	var before, after []truth.Row
	for half := range 2 {
		var in, out []*truth.Case
		for _, c := range cases {
			if len(c.Points) < 2 {
				continue
			}
			in = append(in, c.Pick(func(i int) bool { return i%2 == half }))
			out = append(out, c.Pick(func(i int) bool { return i%2 != half }))
		}
		if len(in) == 0 {
			return nil
		}
		x, err := (&Site{}).fit(in, start)
		if err != nil {
			return err
		}
		rows, err := truth.Rows(out, start)
		if err != nil {
			return err
		}
		before = append(before, rows...)
		if rows, err = truth.Rows(out, &x.f); err != nil {
			return err
		}
		after = append(after, rows...)
	}
	s.HeldBefore, s.HeldAfter = truth.Rate(before), truth.Rate(after)
	return nil
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
	if old != nil {
		for _, f := range old.Figures {
			if !now[f.Name] {
				c.Figures = append(c.Figures, f)
			}
		}
	}
	return c
}

// Start are the figures that predictions on a cluster have so far.
func Start(c *cluster.Cluster) (*sim.Figures, error) {
	f, err := predict.Figures(c)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return f, nil
}
