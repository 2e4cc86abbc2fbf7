package calibrate

import (
	"fmt"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// Folds are what is fitted without each publisher (or machine), to begin from where the model changes a little.
type Folds struct {
	cases []*truth.Case
	full  *sim.Figures
	by    By
	fits  map[string]*sim.Figures
	felt  map[*result.Sweep][nFigures]bool
	prior *sim.Figures
}

// Fold fits the figures of all cases, and those without each name.
func Fold(cases []*truth.Case, by By) (*Folds, error) {
	a, err := Published(&Problem{Cases: cases}).Solve()
	if err != nil {
		return nil, err
	}
	x := &Folds{cases: cases, full: &a.Figures, by: by, fits: map[string]*sim.Figures{}, felt: map[*result.Sweep][nFigures]bool{}, prior: Prior()}
	for _, name := range names(cases, by) {
		if x.fits[name], _, err = Without(cases, name, x.full, by); err != nil {
			return nil, fmt.Errorf("without %s: %w", name, err)
		}
	}
	return x, nil
}

// Rows predicts every case by figures without its name.
func (x *Folds) Rows() ([]truth.Row, error) {
	return x.rows(x.cases, x.fits)
}

func (x *Folds) rows(cases []*truth.Case, fits map[string]*sim.Figures) ([]truth.Row, error) {
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

// Again is Rows of the same sweeps under a changed model. Figures without a name are fitted anew, from those of the model before,
// where a sweep of somebody else changed that feels one of the figures that the name's own sweeps feel: no other fit can differ. refits
// is how many names that were. Names that scored refuses keep their figures: their rows only make error bars.
func (x *Folds) Again(cases []*truth.Case, scored func(name string) bool) (rows []truth.Row, refits int, err error) {
	was := map[*result.Sweep]*truth.Case{}
	for _, c := range x.cases {
		was[c.Sweep] = c
	}
	felt := map[*result.Sweep][nFigures]bool{} // under the changed model
	moved := map[string][nFigures]bool{}       // figures that a name's changed sweeps feel, before or now
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
		var own, others [nFigures]bool
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
	rows, err = x.rows(cases, fits)
	return rows, refits, err
}

// refit fits the figures that a name's sweeps feel to the sweeps of all others, beginning near the answer.
func (x *Folds) refit(cases []*truth.Case, name string, own [nFigures]bool, felt map[*result.Sweep][nFigures]bool) (*sim.Figures, error) {
	in := slices.DeleteFunc(slices.Clone(cases), func(c *truth.Case) bool { return x.by(c) == name })
	p := Published(&Problem{Cases: in})
	p.Near = true
	p.felt = func(c *truth.Case) [nFigures]bool { return felt[c.Sweep] }
	start := *x.full
	if x.fits[name] != nil {
		start = *x.fits[name]
	}
	var before [nFigures]bool
	for _, c := range x.cases {
		if x.by(c) == name {
			before = either(before, x.felt[c.Sweep])
		}
	}
	for i := range start {
		if p.Free[i] = p.Free[i] && own[i]; p.Free[i] && !before[i] {
			start[i] = x.prior[i]
		}
	}
	p.Start = &start
	a, err := p.run()
	if err != nil {
		return nil, err
	}
	return &a.f, nil
}

// same tells whether a sweep is predicted as before.
func (x *Folds) same(was, now *truth.Case) (bool, error) {
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
func (x *Folds) feels(c *truth.Case) ([nFigures]bool, error) {
	if c == nil {
		return [nFigures]bool{}, nil
	}
	if f, ok := x.felt[c.Sweep]; ok {
		return f, nil
	}
	f, err := touches([]*truth.Case{c}, x.full)
	x.felt[c.Sweep] = f
	return f, err
}

func either(a, b [nFigures]bool) [nFigures]bool {
	for i := range a {
		a[i] = a[i] || b[i]
	}
	return a
}

func both(a, b [nFigures]bool) bool {
	for i := range a {
		if a[i] && b[i] {
			return true
		}
	}
	return false
}
