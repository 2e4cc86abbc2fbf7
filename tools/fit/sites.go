package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/internal/stats"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

const (
	// leastPoints is how many points a machine must have for a calibration of it to be scored.
	leastPoints = 10
	// sweepsEach bounds the sweeps of a machine that it is calibrated with, one at a time.
	sweepsEach = 3
)

// site is a machine that was calibrated with five sizes of each of some sweeps, and all its other points, before and
// after.
type site struct {
	machine       string
	before, after []truth.Row
	kept, tried   int
}

func (s *site) errors() (before, after float64) {
	return truth.Rate(s.before).Median, truth.Rate(s.after).Median
}

// sites calibrates every machine of the cases with the five sizes of calibrate.Sizes, by figures that are fitted
// without its publisher. spoil is what one of the five is multiplied by, each in turn; 1 is nothing.
func sites(cases []*truth.Case, full *sim.Figures, spoil float64) ([]*site, error) {
	var list []*site
	for _, name := range names(cases, publisher) {
		f, out, err := without(cases, name, full, publisher)
		if err != nil {
			return nil, err
		}
		for _, machine := range names(out, (*truth.Case).Machine) {
			own := slices.DeleteFunc(slices.Clone(out), func(c *truth.Case) bool { return c.Machine() != machine })
			points := 0
			for _, c := range own {
				points += len(c.Ops)
			}
			if points < leastPoints {
				continue
			}
			s := &site{machine: machine}
			if err := s.try(own, f, spoil); err != nil {
				return nil, err
			}
			if s.tried > 0 {
				list = append(list, s)
			}
		}
	}
	return list, nil
}

// try calibrates with the largest sweeps of a machine.
func (s *site) try(own []*truth.Case, f *sim.Figures, spoil float64) error {
	order := slices.Clone(own)
	slices.SortStableFunc(order, func(a, b *truth.Case) int { return cmp.Compare(len(b.Ops), len(a.Ops)) })
	for _, c := range order[:min(sweepsEach, len(order))] {
		at := nearest(c)
		if len(at) < len(calibrate.Sizes) && len(at) < len(c.Ops) || len(at) < 2 {
			continue
		}
		in := c.Pick(func(i int) bool { return slices.Contains(at, i) })
		var rest []*truth.Case
		for _, o := range own {
			if o != c {
				rest = append(rest, o)
			} else if o = c.Pick(func(i int) bool { return !slices.Contains(at, i) }); len(o.Ops) > 0 {
				rest = append(rest, o)
			}
		}
		if len(rest) == 0 {
			continue
		}
		s.tried++
		if spoil == 1 {
			if err := s.calibrate([]*truth.Case{in}, rest, f); err != nil {
				return fmt.Errorf("%s: %w", c.Sweep.ID, err)
			}
			continue
		}
		for k := range in.Times {
			was := in.Times[k]
			in.Times[k] = unit.Time(float64(was) * spoil)
			err := s.calibrate([]*truth.Case{in}, rest, f)
			in.Times[k] = was
			if err != nil {
				return fmt.Errorf("%s: %w", c.Sweep.ID, err)
			}
		}
	}
	return nil
}

// nearest are the points of a sweep at calibrate.Sizes, or the sizes nearest to them.
func nearest(c *truth.Case) (at []int) {
	off := func(i int, size unit.Bytes) float64 {
		return math.Abs(math.Log(float64(max(c.Ops[i].Bytes, 1)) / float64(size)))
	}
	for _, size := range calibrate.Sizes {
		best := -1
		for i := range c.Ops {
			if !slices.Contains(at, i) && (best < 0 || off(i, size) < off(best, size)) {
				best = i
			}
		}
		if best >= 0 {
			at = append(at, best)
		}
	}
	return at
}

// calibrate predicts the others of a machine before and after.
func (s *site) calibrate(in, rest []*truth.Case, f *sim.Figures) error {
	found, err := calibrate.Cluster(in, f, false)
	if err != nil {
		return err
	}
	before, err := truth.Rows(rest, f)
	if err != nil {
		return err
	}
	after := before
	if found.Better() {
		s.kept++
		kept := found.Calibration(nil, "")
		g := *f
		for _, x := range kept.Figures {
			i, err := sim.FigureByName(x.Name)
			if err != nil {
				return err
			}
			g[i] = x.Value
		}
		calibrated(rest, kept) // published machines have no calibration of their own
		after, err = truth.Rows(rest, &g)
		calibrated(rest, nil)
		if err != nil {
			return err
		}
	}
	s.before, s.after = append(s.before, before...), append(s.after, after...)
	return nil
}

func calibrated(cases []*truth.Case, by *cluster.Calibration) {
	for _, c := range cases {
		c.Predictor.Cluster.Calibration = by
	}
}

// calibrations prints how far off the other points of machines are that were calibrated with five.
func (q *question) calibrations(cases []*truth.Case) error {
	s := published(cases)
	if err := s.run(); err != nil {
		return err
	}
	list, err := sites(cases, &s.f, q.spoil)
	if err != nil {
		return err
	}
	var rows [][]string
	var was, is, worse []float64
	for _, x := range list {
		before, after := x.errors()
		was, is, worse = append(was, before), append(is, after), append(worse, after/before)
		rows = append(rows, []string{
			x.machine, fmt.Sprint(len(x.before)), percent(before), percent(after), fmt.Sprintf("%.2f", after/before),
			fmt.Sprintf("%d of %d", x.kept, x.tried),
		})
	}
	q.table([]string{"machine", "points", "before", "after", "ratio", "kept"}, rows)
	_, err = fmt.Fprintf(q.out, "%d machines: mean %s before, %s after; the worst of them has %.2f times its error\n",
		len(list), percent(mean(was)), percent(mean(is)), stats.Quantile(worse, 1))
	return err
}

func mean(list []float64) float64 {
	m, _ := spread(list)
	return m
}
