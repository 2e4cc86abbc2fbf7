package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
)

// Ablation asks what every mechanism of the model is worth: published points are predicted by figures that were fitted
// without everything of their publisher, with all mechanisms and without one at a time.
type Ablation struct {
	Files []string `arg:"" name:"measured" names:"files" help:"Measured points as JSON lines."`
}

// AblationDoc is the answer to Ablation.
type AblationDoc struct {
	Rows  []AblationRow  `json:"rows"`            // the first with all mechanisms
	Steps []AblationStep `json:"steps,omitempty"` // of training runs, likewise; those of the last file are scored
}

// AblationStep is the left-out error of training runs without one mechanism, "" for none: each cluster left out, and each publisher.
type AblationStep struct {
	Without    string    `json:"without"`
	Meaning    string    `json:"meaning"`
	Clusters   StepScore `json:"clusters_left_out"`
	Publishers StepScore `json:"publishers_left_out"`
}

// AblationRow is the left-out error without one mechanism, "" for none.
type AblationRow struct {
	Without string           `json:"without"`
	Points  int              `json:"points"`
	Median  float64          `json:"median_ape"`
	P90     float64          `json:"p90_ape"`
	Large   float64          `json:"median_ape_from_mebibyte"`
	LargeP  float64          `json:"p90_ape_from_mebibyte"`
	Small   float64          `json:"median_ape_below_mebibyte"`
	By      ValidateMachines `json:"machine_mean"`
	// Refits is how many publishers' figures were fitted anew; those of the others cannot change.
	Refits int `json:"refits"`
}

// Run fits all figures without every publisher, for every mechanism.
func (q Ablation) Run(ctx context.Context, env Env) (doc *AblationDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	d := &AblationDoc{Rows: []AblationRow{}}
	if runs, err := env.trainingRuns(q.Files); err != nil || len(runs) > 0 {
		if err == nil {
			err = q.steps(ctx, &env, d, runs)
		}
		return d, err
	}
	return d, q.collectives(ctx, &env, d)
}

// collectives fits without every publisher with all mechanisms, and fits again without each what it can change. Points of the last file are scored.
func (q *Ablation) collectives(ctx context.Context, env *Env, d *AblationDoc) error {
	sweeps, err := env.sweeps(q.Files)
	if err != nil {
		return err
	}
	last, err := env.sweeps(q.Files[len(q.Files)-1:])
	if err != nil {
		return err
	}
	scored, publishers := map[string]bool{}, map[string]bool{}
	for _, s := range last {
		scored[fmt.Sprint(s.File, s.Line)] = true
	}
	counts := func(r *truth.Row) bool { return scored[fmt.Sprint(r.Case.Sweep.File, r.Case.Sweep.Line)] }
	cases, _ := truth.Gather(sweeps, nil, 0)
	if len(cases) == 0 {
		return fmt.Errorf("%s: no measured collective that can be predicted", strings.Join(q.Files, ", "))
	}
	folds, err := calibrate.Fold(cases, calibrate.Publishers)
	if err != nil {
		return err
	}
	rows, err := folds.Rows()
	if err != nil {
		return err
	}
	for i := range rows {
		if counts(&rows[i]) {
			publishers[rows[i].Case.Publisher()] = true
		}
	}
	for i, name := range append([]string{""}, sim.MechanismNames()...) {
		refits := len(publishers)
		if i > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			cases, _ = truth.Gather(sweeps, nil, 1<<(i-1))
			if rows, refits, err = folds.Again(cases, func(name string) bool { return publishers[name] }); err != nil {
				return err
			}
		}
		row := ablated(name, rows, counts)
		row.Refits = refits
		d.Rows = append(d.Rows, row)
		if env.Verbose != nil {
			env.Verbose(fmt.Sprintf("without %q: median %.1f%%, %d publishers fitted anew", name, 100*row.Median, refits))
		}
	}
	return nil
}

// steps fits the figures of training steps without each mechanism. Runs of the last file are scored.
func (q *Ablation) steps(ctx context.Context, env *Env, d *AblationDoc, runs []*truth.Training) error {
	last, err := env.trainingRuns(q.Files[len(q.Files)-1:])
	if err != nil {
		return err
	}
	scored := map[string]bool{}
	for _, r := range last {
		scored[r.ID] = true
	}
	_, err = calibrate.Ablate(ctx, runs, func(r *truth.RunRow) bool { return scored[r.ID] }, func(a *calibrate.Ablated) {
		d.Steps = append(d.Steps, AblationStep{a.Name, a.Meaning, newStepScore(&a.Clusters, a.Choices), newStepScore(&a.Sources, a.SourceChoices)})
		if env.Verbose != nil {
			env.Verbose(fmt.Sprintf("without %q: median %.1f%%", a.Name, 100*a.Clusters.Median))
		}
	})
	return err
}

// ablated is one row.
func ablated(name string, rows []truth.Row, counts func(*truth.Row) bool) AblationRow {
	calibrate.Refit(rows, calibrate.Publishers)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r truth.Row) bool { return !counts(&r) })
	s := truth.Rate(rows)
	row := AblationRow{Without: name, Points: s.Points, Median: s.Median, P90: s.P90}
	row.By = ValidateMachines{s.Machines, s.MachineMedian, s.MachineP90, s.MachineCovered}
	for _, half := range truth.Split(rows, truth.ByMiB) {
		if half.Name == "from 1 MiB" {
			row.Large, row.LargeP = half.Median, half.P90
		} else {
			row.Small = half.Median
		}
	}
	return row
}
