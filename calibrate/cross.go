package calibrate

import (
	"fmt"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
)

// Cross is leave-one-machine-out cross-validation: every machine is predicted by
// figures that were fitted without any of its points. full are figures fitted on
// all cases. Figures that the machine's points depend on begin again from the
// prior, so that nothing of the machine is left in them; the others, which do not
// matter to its points, keep their values. done is told about every machine.
func Cross(cases []*truth.Case, full *sim.Figures, pull float64, done func(machine string, rows []truth.Row)) ([]truth.Row, error) {
	var names []string
	for _, c := range cases {
		if !slices.Contains(names, c.Machine()) {
			names = append(names, c.Machine())
		}
	}
	slices.Sort(names)
	var all []truth.Row
	for _, name := range names {
		rows, err := leaveOut(cases, name, full, pull)
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

// leaveOut predicts one machine from the others.
func leaveOut(cases []*truth.Case, name string, full *sim.Figures, pull float64) ([]truth.Row, error) {
	var in, out []*truth.Case
	for _, c := range cases {
		if c.Machine() == name {
			out = append(out, c)
		} else {
			in = append(in, c)
		}
	}
	p := Published(&Problem{Cases: in})
	p.Pull, p.Quick = pull, true
	start := *full
	touched, err := touches(out, full)
	if err != nil {
		return nil, err
	}
	for i := range start {
		if p.Free[i] = p.Free[i] && touched[i]; p.Free[i] {
			start[i] = p.Prior[i]
		}
	}
	p.Start = &start
	a, err := p.Solve()
	if err != nil {
		return nil, err
	}
	return truth.Rows(out, &a.Figures)
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
