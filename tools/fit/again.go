package main

import (
	"fmt"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// folds are what is fitted without each publisher (or machine), to begin from where the model changes a little.
type folds struct {
	cases []*truth.Case
	full  *sim.Figures
	by    by
	fits  map[string]*sim.Figures
	felt  map[*result.Sweep]which
}

// fold fits the figures of all cases, and those without each name.
func fold(cases []*truth.Case, of by) (*folds, error) {
	s := published(cases)
	if err := s.run(); err != nil {
		return nil, err
	}
	x := &folds{cases: cases, full: &s.f, by: of, fits: map[string]*sim.Figures{}, felt: map[*result.Sweep]which{}}
	for _, name := range names(cases, of) {
		var err error
		if x.fits[name], _, err = without(cases, name, x.full, of); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// rows predicts every case by figures without its name.
func (x *folds) rows() ([]truth.Row, error) {
	return x.predicted(x.cases, x.fits)
}

func (x *folds) predicted(cases []*truth.Case, fits map[string]*sim.Figures) ([]truth.Row, error) {
	var all []truth.Row
	for _, c := range cases {
		rows, err := c.Predict(fits[x.by(c)])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// again is rows of the same sweeps under a changed model. Figures without a name are fitted anew, from those of the
// model before, where a sweep of somebody else changed that feels one of the figures that the name's own sweeps feel:
// no other fit can differ. refits is how many names that were. Names that scored refuses keep their figures: their rows
// only make error bars.
func (x *folds) again(cases []*truth.Case, scored func(name string) bool) (rows []truth.Row, refits int, err error) {
	was := map[*result.Sweep]*truth.Case{}
	for _, c := range x.cases {
		was[c.Sweep] = c
	}
	felt := map[*result.Sweep]which{} // under the changed model
	moved := map[string]which{}       // figures that a name's changed sweeps feel, before or now
	for _, c := range cases {
		before, err := x.feels(was[c.Sweep])
		if err != nil {
			return nil, 0, err
		}
		felt[c.Sweep] = before
		if same, err := x.same(was[c.Sweep], c); err != nil {
			return nil, 0, err
		} else if same {
			continue
		}
		now, err := touches([]*truth.Case{c}, x.full)
		if err != nil {
			return nil, 0, err
		}
		felt[c.Sweep], moved[x.by(c)] = now, either(moved[x.by(c)], either(before, now))
	}
	fits := map[string]*sim.Figures{}
	for _, name := range names(cases, x.by) {
		fits[name] = x.fits[name]
		if fits[name] == nil {
			fits[name] = x.full // a name that the model before could not predict
		}
		if !scored(name) {
			continue
		}
		var own, others which
		for _, c := range cases {
			if x.by(c) == name {
				own = either(own, felt[c.Sweep])
			}
		}
		for other, figures := range moved {
			if other != name {
				others = either(others, figures)
			}
		}
		if !both(own, others) {
			continue
		}
		refits++
		if fits[name], err = x.refit(cases, name, own, felt); err != nil {
			return nil, 0, fmt.Errorf("without %s: %w", name, err)
		}
	}
	rows, err = x.predicted(cases, fits)
	return rows, refits, err
}

// refit fits the figures that a name's sweeps feel to the sweeps of all others, beginning near the answer.
func (x *folds) refit(cases []*truth.Case, name string, own which, felt map[*result.Sweep]which) (*sim.Figures, error) {
	in := slices.DeleteFunc(slices.Clone(cases), func(c *truth.Case) bool { return x.by(c) == name })
	s := published(in)
	s.near = true
	s.felt = func(c *truth.Case) which { return felt[c.Sweep] }
	s.f = *x.full
	if x.fits[name] != nil {
		s.f = *x.fits[name]
	}
	var before which
	for _, c := range x.cases {
		if x.by(c) == name {
			before = either(before, x.felt[c.Sweep])
		}
	}
	for i := range s.f {
		if s.free[i] = s.free[i] && own[i]; s.free[i] && !before[i] {
			s.f[i] = usual()[i]
		}
	}
	return &s.f, s.run()
}

// same tells whether a sweep is predicted as before.
func (x *folds) same(was, now *truth.Case) (bool, error) {
	if was == nil {
		return false, nil
	}
	before, err := was.Predictor.Times(nil, was.Ops, was.Settings, x.full)
	if err != nil {
		return false, err
	}
	after, err := now.Predictor.Times(nil, now.Ops, now.Settings, x.full)
	return slices.Equal(before, after), err
}

// feels are the figures that a sweep depends on.
func (x *folds) feels(c *truth.Case) (which, error) {
	if c == nil {
		return which{}, nil
	}
	if f, ok := x.felt[c.Sweep]; ok {
		return f, nil
	}
	f, err := touches([]*truth.Case{c}, x.full)
	x.felt[c.Sweep] = f
	return f, err
}

func either(a, b which) which {
	for i := range a {
		a[i] = a[i] || b[i]
	}
	return a
}

func both(a, b which) bool {
	for i := range a {
		if a[i] && b[i] {
			return true
		}
	}
	return false
}
