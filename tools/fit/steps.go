package main

import (
	"maps"
	"math"
	"slices"

	"busbar.dev/calibrate"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// Of the fit of training steps: noise is what a run of an unseen cluster is off by where nothing is wrong with the
// figures, and rounds how often the fit goes on from where it got to.
const (
	stepNoise  = 0.12
	stepRounds = 3
)

// stepFit are figures that were fitted to training runs.
type stepFit struct {
	step.Figures

	guess   *step.Figures
	problem *stepProblem
	at      step.Figures // where the problem was worked out
}

// stepProblem are runs with the logarithms of their errors at some figures, and by how much each figure moves them.
type stepProblem struct {
	rows  []*runRow
	off   []float64   // ln predicted/measured
	moves [][]float64 // by run, of every figure's logarithm
}

// linear works that out at figures.
func linear(rows []*runRow, at *step.Figures) (*stepProblem, error) {
	p := &stepProblem{rows: rows, off: make([]float64, len(rows)), moves: make([][]float64, len(rows))}
	for i, r := range rows {
		if err := r.Predict(at); err != nil {
			return nil, err
		}
		p.off[i] = math.Log(r.Predicted / r.Seconds())
		p.moves[i] = make([]float64, len(at))
	}
	const nudge = 0.03
	for k := range at {
		if at[k] <= 0 {
			continue
		}
		f := *at
		f[k] *= 1 + nudge
		for i, r := range rows {
			if !step.Touches(k, r.GPU) {
				continue
			}
			if err := r.Predict(&f); err != nil {
				return nil, err
			}
			p.moves[i][k] = (math.Log(r.Predicted/r.Seconds()) - p.off[i]) / math.Log(1+nudge)
		}
	}
	return p, nil
}

// solve is the figures' logarithms that fit the runs of a selection best, from those that the problem was worked out
// at: least squares, runs far off weighing less and clusters by the root of their number of runs, with every figure
// held to its guess as firmly as that is known.
func (p *stepProblem) solve(guess, at *step.Figures, with func(*runRow) bool) *step.Figures {
	count := map[string]float64{}
	for _, r := range p.rows {
		if with(r) {
			count[r.Cluster]++
		}
	}
	n, known := len(at), step.FigureTable()
	move := make([]float64, n)
	for range 12 { // weights follow from errors, and errors from weights
		a, b := make([][]float64, n), make([]float64, n)
		for k := range a {
			a[k] = make([]float64, n)
			if at[k] <= 0 || guess[k] <= 0 {
				a[k][k] = 1
				continue
			}
			firm := 1 / (known[k].Doubt * known[k].Doubt)
			a[k][k], b[k] = firm, -firm*math.Log(at[k]/guess[k])
		}
		for i, r := range p.rows {
			if !with(r) {
				continue
			}
			e := p.off[i]
			for k, m := range p.moves[i] {
				e += m * move[k]
			}
			w := 1 / (stepNoise * stepNoise) / math.Sqrt(count[r.Cluster]) / (1 + e*e/(4*stepNoise*stepNoise))
			for k, mk := range p.moves[i] {
				if mk == 0 {
					continue
				}
				b[k] -= w * mk * p.off[i]
				for l, ml := range p.moves[i] {
					a[k][l] += w * mk * ml
				}
			}
		}
		move = calibrate.Solve(a, b)
	}
	f := *at
	for k := range f {
		f[k] = min(known[k].Most, max(known[k].Least, f[k]*math.Exp(min(0.7, max(-0.7, move[k])))))
	}
	return &f
}

// guessed is where a fit of steps begins.
func guessed() *step.Figures {
	f := &step.Figures{}
	for i, x := range step.FigureTable() {
		f[i] = x.Guess
	}
	return f
}

// fitSteps fits the figures of training steps to runs, from a guess.
func fitSteps(rows []*runRow, guess *step.Figures) (*stepFit, error) {
	s := &stepFit{Figures: *guess, guess: guess}
	for range stepRounds {
		var err error
		if s.problem, err = linear(rows, &s.Figures); err != nil {
			return nil, err
		}
		s.at = s.Figures
		s.Figures = *s.problem.solve(guess, &s.at, func(*runRow) bool { return true })
	}
	return s, nil
}

// ofCluster is what is left out of a fit at once.
func ofCluster(r *runRow) string { return r.Cluster }

// ofKind is what scores are of: dense models, adapters, or mixtures of experts, hybrids with experts among them.
func ofKind(r *runRow) string {
	j := r.Step.Job()
	switch {
	case slices.ContainsFunc(j.Model.Blocks, func(b workload.Block) bool {
		return slices.ContainsFunc(b.Parts, func(p workload.Part) bool { return p.Experts > 0 })
	}):
		return "experts"
	case j.LoRA.Frozen():
		return "adapters"
	}
	return "dense"
}

// predict prices every run of the fit by its figures.
func (s *stepFit) predict() error {
	for _, r := range s.problem.rows {
		if err := r.Predict(&s.Figures); err != nil {
			return err
		}
	}
	return nil
}

// cross predicts every run of the fit by figures fitted without those that have its name. Each fit solves without what
// it leaves out; that errors are linear in the figures' logarithms near the fit of all runs is what they share.
func (s *stepFit) cross(name func(*runRow) string) error {
	names := map[string][]*runRow{}
	for _, r := range s.problem.rows {
		names[name(r)] = append(names[name(r)], r)
	}
	for _, left := range slices.Sorted(maps.Keys(names)) {
		without := s.problem.solve(s.guess, &s.at, func(r *runRow) bool { return name(r) != left })
		for _, r := range names[left] {
			if err := r.Predict(without); err != nil {
				return err
			}
		}
	}
	for left, mine := range names { // and its bar by the errors of the others
		m := newStepMargins(slices.DeleteFunc(slices.Clone(s.problem.rows),
			func(r *runRow) bool { return name(r) == left }))
		for _, r := range mine {
			r.Margin = m.Of(r.Step.Job(), r.GPU)
		}
	}
	return nil
}
