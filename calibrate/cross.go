package calibrate

import (
	"fmt"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// By says which points belong together, so that they are left out of a fit together.
type By func(*truth.Case) string

// What is left out at a time: a machine, or everything that one publisher measured.
var (
	Machines   By = (*truth.Case).Machine
	Publishers By = (*truth.Case).Publisher
)

// Cross is cross-validation: every machine (or all machines of a publisher) is predicted by
// figures that were fitted without any of its points. full are figures fitted on
// all cases. Figures that the points left out depend on begin again from the
// prior, so that nothing of them is left; the others, which do not
// matter to those points, keep their values. done is told about every one.
func Cross(cases []*truth.Case, full *sim.Figures, by By, done func(name string, rows []truth.Row)) ([]truth.Row, error) {
	var all []truth.Row
	for _, name := range names(cases, by) {
		f, out, err := Without(cases, name, full, by)
		if err != nil {
			return nil, fmt.Errorf("without %s: %w", name, err)
		}
		rows, err := truth.Rows(out, f)
		if err != nil {
			return nil, fmt.Errorf("without %s: %w", name, err)
		}
		if done != nil {
			done(name, rows)
		}
		all = append(all, rows...)
	}
	return all, nil
}

const (
	// sweepsEach bounds the sweeps of a machine that CrossCalibrated calibrates with, one at a time.
	sweepsEach = 3
	// leastLeft is how many points a calibration must leave until they are scored: the median of fewer is chance, not a machine's error.
	leastLeft = 5
)

// CrossCalibrated is Cross where every machine is then calibrated with a few points of one sweep, those that Suggest takes, and
// all its other points are predicted: by what the calibration keeps, and by figures as they were before. Machines without a sweep of more
// points, and those with fewer than leastLeft others, are left out.
func CrossCalibrated(cases []*truth.Case, full *sim.Figures, by By, points int) (before, after []truth.Row, err error) {
	for _, name := range names(cases, by) {
		f, out, err := Without(cases, name, full, by)
		if err != nil {
			return nil, nil, fmt.Errorf("without %s: %w", name, err)
		}
		tried := map[string]int{}
		for _, c := range out {
			if len(c.Ops) <= points || tried[c.Machine()] == sweepsEach {
				continue
			}
			tried[c.Machine()]++
			in, rest, err := suggested(c, out, f, points)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
			}
			if left(rest) < leastLeft {
				continue
			}
			rows, err := Evaluate(in, rest, f)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
			}
			before, after = append(before, rows[0]...), append(after, rows[3]...)
		}
	}
	return before, after, nil
}

// left is how many points cases have.
func left(cases []*truth.Case) int {
	n := 0
	for _, c := range cases {
		n += len(c.Ops)
	}
	return n
}

// suggested are the points of a sweep that Suggest takes, and all other points of its machine.
func suggested(c *truth.Case, cases []*truth.Case, f *sim.Figures, points int) (in, rest []*truth.Case, err error) {
	var sizes []unit.Bytes
	for _, op := range c.Ops {
		sizes = append(sizes, op.Bytes)
	}
	c.Predictor.Figures = f
	list, err := Suggest(c.Predictor, c.Ops[0].Kind, sizes, points)
	if err != nil {
		return nil, nil, err
	}
	picked := map[unit.Bytes]bool{}
	for _, x := range list {
		picked[x.Size] = true
	}
	in = []*truth.Case{c.Pick(func(i int) bool { return picked[sizes[i]] })}
	if other := c.Pick(func(i int) bool { return !picked[sizes[i]] }); len(other.Ops) > 0 {
		rest = append(rest, other)
	}
	for _, o := range cases {
		if o != c && o.Machine() == c.Machine() {
			rest = append(rest, o)
		}
	}
	return in, rest, nil
}

// names are the different names of cases, in order.
func names(cases []*truth.Case, by By) []string {
	var list []string
	for _, c := range cases {
		if !slices.Contains(list, by(c)) {
			list = append(list, by(c))
		}
	}
	slices.Sort(list)
	return list
}

// Without are figures fitted without the cases of a name, and those cases.
func Without(cases []*truth.Case, name string, full *sim.Figures, by By) (*sim.Figures, []*truth.Case, error) {
	var in, out []*truth.Case
	for _, c := range cases {
		if by(c) == name {
			out = append(out, c)
		} else {
			in = append(in, c)
		}
	}
	p := Published(&Problem{Cases: in})
	p.Quick = true
	start := *full
	touched, err := touches(out, full)
	if err != nil {
		return nil, nil, err
	}
	for i := range start {
		if p.Free[i] = p.Free[i] && touched[i]; p.Free[i] {
			start[i] = p.Prior[i]
		}
	}
	p.Start = &start
	a, err := p.Solve()
	if err != nil {
		return nil, nil, err
	}
	return &a.Figures, out, nil
}

// touches tells which figures cases depend on.
func touches(cases []*truth.Case, f *sim.Figures) ([nFigures]bool, error) {
	var felt [nFigures]bool
	s := &search{Problem: &Problem{Cases: cases}, f: *f, loss: make([]float64, len(cases))}
	for i := range s.Free {
		s.Free[i] = true
	}
	for i, c := range cases {
		var err error
		if s.loss[i], err = s.caseLoss(c); err != nil {
			return felt, err
		}
	}
	s.find()
	for i := range felt {
		felt[i] = len(s.touch[i]) > 0
	}
	return felt, nil
}
