package calibrate

import (
	"maps"
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/step"
)

// Of the fit of training steps: noise is what a run of an unseen cluster is off by where nothing is wrong with the figures, and rounds how
// often the fit goes on from where it got to.
const (
	stepNoise  = 0.12
	stepRounds = 3
)

// StepFit are figures that were fitted to training runs.
type StepFit struct {
	Figures step.Figures
	// Informed is how many clusters a figure matters to: where it moves the predicted time by a fiftieth of its own change.
	Informed []int

	guess   *step.Figures
	problem *stepProblem
	at      step.Figures // where the problem was worked out
}

// stepProblem are runs with the logarithms of their errors at some figures, and by how much each figure moves them.
type stepProblem struct {
	rows  []*truth.RunRow
	off   []float64   // ln predicted/measured
	moves [][]float64 // by run, of every figure's logarithm
}

// linear works that out at figures.
func linear(rows []*truth.RunRow, at *step.Figures) (*stepProblem, error) {
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

// solve is the figures' logarithms that fit the runs of a selection best, from those that the problem was worked out at: least squares,
// runs far off weighing less and clusters by the root of their number of runs, with every figure held to its guess as firmly as that
// is known.
func (p *stepProblem) solve(guess, at *step.Figures, with func(*truth.RunRow) bool) *step.Figures {
	count := map[string]float64{}
	for _, r := range p.rows {
		if with(r) {
			count[r.Cluster]++
		}
	}
	n := len(at)
	move := make([]float64, n)
	for range 12 { // weights follow from errors, and errors from weights
		a, b := make([][]float64, n), make([]float64, n)
		for k := range a {
			a[k] = make([]float64, n)
			if at[k] <= 0 || guess[k] <= 0 {
				a[k][k] = 1
				continue
			}
			firm := 1 / (step.Doubt(k) * step.Doubt(k))
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
		move = gauss(a, b)
	}
	f := *at
	for k := range f {
		_, lo, hi := step.Range(k)
		f[k] = min(hi, max(lo, f[k]*math.Exp(min(0.7, max(-0.7, move[k])))))
	}
	return &f
}

// gauss solves a system of linear equations with a positive diagonal.
func gauss(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		best := i
		for r := i + 1; r < n; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[best][i]) {
				best = r
			}
		}
		a[i], a[best], b[i], b[best] = a[best], a[i], b[best], b[i]
		for r := i + 1; r < n; r++ {
			k := a[r][i] / a[i][i]
			for c := i; c < n; c++ {
				a[r][c] -= k * a[i][c]
			}
			b[r] -= k * b[i]
		}
	}
	x := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		x[i] = b[i]
		for c := i + 1; c < n; c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}

// FitSteps fits the figures of training steps to runs, from a guess.
func FitSteps(rows []*truth.RunRow, guess *step.Figures) (*StepFit, error) {
	s := &StepFit{Figures: *guess, Informed: make([]int, len(guess)), guess: guess}
	for range stepRounds {
		var err error
		if s.problem, err = linear(rows, &s.Figures); err != nil {
			return nil, err
		}
		s.at = s.Figures
		s.Figures = *s.problem.solve(guess, &s.at, func(*truth.RunRow) bool { return true })
	}
	for k := range s.Figures {
		seen := map[string]bool{}
		for i, r := range rows {
			if math.Abs(s.problem.moves[i][k]) > 0.02 {
				seen[r.Cluster] = true
			}
		}
		s.Informed[k] = len(seen)
	}
	return s, nil
}

// ByCluster and BySource name what is left out of a fit at once.
func ByCluster(r *truth.RunRow) string { return r.Cluster }

// BySource is who published a run.
func BySource(r *truth.RunRow) string { return r.Publisher() }

// ByGPU is the GPU that it ran on.
func ByGPU(r *truth.RunRow) string { return r.GPU.Name }

// Cross predicts every run of the fit by figures fitted without those that have its name. Each fit solves without what it leaves out; that
// errors are linear in the figures' logarithms near the fit of all runs is what they share.
func (s *StepFit) Cross(name func(*truth.RunRow) string) error {
	names := map[string][]*truth.RunRow{}
	for _, r := range s.problem.rows {
		names[name(r)] = append(names[name(r)], r)
	}
	for _, left := range slices.Sorted(maps.Keys(names)) {
		without := s.problem.solve(s.guess, &s.at, func(r *truth.RunRow) bool { return name(r) != left })
		for _, r := range names[left] {
			if err := r.Predict(without); err != nil {
				return err
			}
		}
	}
	for left, mine := range names { // and its bar by the errors of the others
		m := NewStepMargins(slices.DeleteFunc(slices.Clone(s.problem.rows), func(r *truth.RunRow) bool { return name(r) == left }))
		for _, r := range mine {
			r.Margin = m.Margins.Of(r.Step.Job(), r.GPU)
		}
	}
	return nil
}
