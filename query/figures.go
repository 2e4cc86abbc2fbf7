package query

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/step"
)

// Figures fits all figures of the model to published points, or to training runs where the files hold no others.
type Figures struct {
	Files []string `arg:"" name:"measured" names:"files" help:"Measured points as JSON lines; - for standard input."`
}

// FiguresDoc is the answer to Figures.
type FiguresDoc struct {
	Figures []Figure `json:"figures"`
	Median  float64  `json:"median_ape"`
	P90     float64  `json:"p90_ape"`
	Points  int      `json:"points"` // or training runs

	// Fitted are the figures of collectives; nil where those of training steps were fitted.
	Fitted *sim.Figures `json:"-"`
}

// Figure is a fitted one.
type Figure struct {
	Name   string `json:"name"`
	Points *int   `json:"points,omitempty"` // that depend on it
	// Clusters is how many clusters' training runs a figure of steps matters to.
	Clusters *int `json:"clusters,omitempty"`
	// Machines is how many machines inform it.
	Machines *int `json:"machines,omitempty"`
	// Publishers is who measured those.
	Publishers *int    `json:"publishers,omitempty"`
	Unit       string  `json:"unit"`
	Value      float64 `json:"value"`
	Note       string  `json:"-"`
}

// Run fits.
func (q Figures) Run(_ context.Context, env Env) (doc *FiguresDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	cases, runs, err := env.published(q.Files, 0)
	if err != nil {
		return nil, err
	}
	if len(runs) > 0 {
		return stepFigures(&env, runs)
	}
	a, err := calibrate.Published(&calibrate.Problem{Cases: cases}).Solve()
	if err != nil {
		return nil, err
	}
	rows, err := truth.Rows(cases, &a.Figures)
	if err != nil {
		return nil, err
	}
	s := truth.Rate(rows)
	d := &FiguresDoc{Figures: []Figure{}, Median: s.Median, P90: s.P90, Points: s.Points, Fitted: &a.Figures}
	for i, v := range a.Figures {
		x := Figure{Name: sim.FigureName(i), Points: &a.Touch[i], Machines: &a.Machines[i], Publishers: &a.Publishers[i], Value: v}
		x.Unit, _, _ = sim.FigureRange(i)
		if calibrate.Held(x.Name) {
			x.Note = "from the reference case (docs/baskerville.md), not fitted here"
		} else if *x.Points == 0 {
			x.Note = "no point depends on it: from its neighbours or a typical value"
		}
		d.Figures = append(d.Figures, x)
	}
	return d, nil
}

// stepFigures fits the figures of training steps.
func stepFigures(env *Env, runs []*truth.Training) (*FiguresDoc, error) {
	defer env.working("fitting the figures of training steps")()
	rows, _ := truth.PredictRuns(runs, step.Guess())
	f, err := calibrate.FitSteps(rows, step.Guess())
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if err := r.Predict(&f.Figures); err != nil {
			return nil, err
		}
	}
	s := truth.RateRuns("all runs", rows)
	d := &FiguresDoc{Figures: []Figure{}, Median: s.Median, P90: s.P90, Points: s.Points}
	for i, v := range f.Figures {
		x := Figure{Name: step.Name(i), Value: v, Clusters: &f.Informed[i]}
		x.Unit, _, _ = step.Range(i)
		d.Figures = append(d.Figures, x)
	}
	return d, nil
}

// CrossValidate asks how far off predictions are of machines that the model has not seen: every machine is predicted by
// figures that were fitted without its points. Its document is that of Validate.
type CrossValidate struct {
	Files []string `arg:"" name:"measured" names:"files" help:"Measured points as JSON lines; - for standard input."`
	// Publishers leaves out everything that one publisher measured, and not a machine at a time.
	Publishers bool
	// Without are mechanisms of the model to leave out, with commas between them.
	Without string
	// Points calibrates every machine with so many points of one sweep before its others are predicted; 0 does not.
	Points int
}

// Run fits and predicts, a machine at a time.
func (q CrossValidate) Run(_ context.Context, env Env) (doc *ValidateDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	_, runs, err := env.published(q.Files, 0)
	if err != nil {
		return nil, err
	}
	if len(runs) > 0 {
		return q.crossSteps(&env, runs)
	}
	without, err := sim.ParseMechanisms(q.Without)
	if err != nil {
		return nil, err
	}
	cases, _, err := env.published(q.Files, without)
	if err != nil {
		return nil, err
	}
	a, err := calibrate.Published(&calibrate.Problem{Cases: cases}).Solve()
	if err != nil {
		return nil, err
	}
	by := calibrate.Machines
	if q.Publishers {
		by = calibrate.Publishers
	}
	p := &ValidatePoints{}
	if q.Points > 0 {
		return q.calibrated(p, cases, &a.Figures, by)
	}
	p.Rows, err = calibrate.Cross(cases, &a.Figures, by, func(machine string, rows []truth.Row) {
		if s := truth.Rate(rows); env.Verbose != nil {
			env.Verbose(fmt.Sprintf("without %s: median %.1f%%, 90th percentile %.1f%% on its %d points", machine, 100*s.Median, 100*s.P90, s.Points))
		}
	})
	if err != nil {
		return nil, err
	}
	calibrate.Refit(p.Rows, by)
	return newValidateDoc(p.score(), nil), nil
}

// calibrated predicts machines after a calibration with a few points of each.
func (q *CrossValidate) calibrated(p *ValidatePoints, cases []*truth.Case, full *sim.Figures, by calibrate.By) (*ValidateDoc, error) {
	before, after, err := calibrate.CrossCalibrated(cases, full, by, q.Points)
	if err != nil {
		return nil, err
	}
	if len(after) == 0 {
		return nil, fmt.Errorf("%s: no sweep of more than %d points; give a smaller --points", strings.Join(q.Files, ", "), q.Points)
	}
	p.Rows = after
	s := truth.Rate(before)
	p.Notes = append(p.Notes, fmt.Sprintf("every machine was calibrated with %d points of one sweep, and all its other points are scored; without calibration their median is %.1f%%, averaged over machines %.1f%%", q.Points, 100*s.Median, 100*s.MachineMedian))
	return newValidateDoc(p.score(), nil), nil
}

// published reads points that describe their own machines; where there are no collectives among them, the training runs.
func (e *Env) published(files []string, without sim.Mechanisms) ([]*truth.Case, []*truth.Training, error) {
	sweeps, err := e.sweeps(files)
	if err != nil {
		return nil, nil, err
	}
	if len(sweeps) == 0 {
		if runs, err := e.trainingRuns(files); err != nil || len(runs) > 0 {
			return nil, runs, err
		}
	}
	cases, _ := truth.Gather(sweeps, nil, without)
	if len(cases) == 0 {
		return nil, nil, fmt.Errorf("%s: no measured collective that can be predicted", strings.Join(files, ", "))
	}
	return cases, nil, nil
}

// sweeps are the measured collectives of files.
func (e *Env) sweeps(files []string) (result.Sweeps, error) {
	var sweeps result.Sweeps
	for _, name := range files {
		data, err := e.measuredText(name)
		if err != nil {
			return nil, err
		}
		list, _, err := truth.Read(inputName(name), bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		sweeps = append(sweeps, list...)
	}
	return sweeps, nil
}

// trainingRuns are those of files. Standard input was read for collectives already.
func (e *Env) trainingRuns(files []string) ([]*truth.Training, error) {
	var list []*truth.Training
	for _, name := range files {
		if name == "-" {
			continue
		}
		data, err := e.measuredText(name)
		if err != nil {
			return nil, err
		}
		runs, err := truth.Runs(inputName(name), bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		list = append(list, runs...)
	}
	return list, nil
}
