package calibrate

import (
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/step"
)

// stepPull is how firmly figures of steps are held to their guess: one that is twice or half
// of it weighs like a run that is off by 0.14.
const stepPull = 0.3

// FitSteps fits the figures of training steps to runs, from a guess: one figure after the other
// is moved while the sum of robust logarithmic errors falls, clusters weighted by the root of
// their number of runs.
func FitSteps(rows []*truth.RunRow, guess *step.Figures) (*step.Figures, error) {
	count := map[string]float64{}
	for _, r := range rows {
		count[r.Cluster]++
	}
	f := *guess
	part := make([]float64, len(rows)) // of the sum, by run
	// loss prices the runs that a figure touches again; -1 is all of them.
	loss := func(figure int) (float64, error) {
		sum := 0.0
		for i := range f {
			if guess[i] > 0 && f[i] > 0 {
				d := math.Log(f[i] / guess[i])
				sum += stepPull * d * d
			}
		}
		for i, r := range rows {
			if figure < 0 || step.Touches(figure, r.GPU) {
				if err := r.Predict(&f); err != nil {
					return 0, err
				}
				e := math.Abs(math.Log(r.Predicted / r.Seconds()))
				part[i] = min(e, 0.1+0.3*e) / math.Sqrt(count[r.Cluster])
			}
			sum += part[i]
		}
		return sum, nil
	}
	best, err := loss(-1)
	if err != nil {
		return nil, err
	}
	kept := slices.Clone(part)
	for width := 0.25; width > 0.01; {
		moved := false
		for i := range f {
			_, lo, hi := step.Range(i)
			for _, k := range []float64{1 + width, 1 / (1 + width)} {
				old := f[i]
				f[i] = min(hi, max(lo, old*k))
				v, err := loss(i)
				if err != nil {
					return nil, err
				}
				if v < best-1e-4 {
					best, moved = v, true
					copy(kept, part)
					break
				}
				f[i] = old
				copy(part, kept)
			}
		}
		if !moved {
			width /= 2.5
		}
	}
	return &f, nil
}

// CrossSteps predicts every cluster's runs by figures fitted without them.
func CrossSteps(rows []*truth.RunRow, guess *step.Figures) error {
	clusters := map[string]bool{}
	for _, r := range rows {
		clusters[r.Cluster] = true
	}
	fitted := map[string]*step.Figures{}
	for c := range clusters {
		var rest []*truth.RunRow
		for _, r := range rows {
			if r.Cluster != c {
				rest = append(rest, r)
			}
		}
		f, err := FitSteps(rest, guess)
		if err != nil {
			return err
		}
		fitted[c] = f
	}
	for _, r := range rows {
		if err := r.Predict(fitted[r.Cluster]); err != nil {
			return err
		}
	}
	return nil
}
