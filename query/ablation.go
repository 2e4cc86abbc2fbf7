package query

import (
	"context"
	"fmt"

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
}

// Run fits all figures without every publisher, for every mechanism.
func (q Ablation) Run(ctx context.Context, env Env) (*AblationDoc, error) {
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
	for _, name := range append([]string{""}, sim.MechanismNames()...) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := q.without(&env, name)
		if err != nil {
			return nil, err
		}
		d.Rows = append(d.Rows, row)
		if env.Verbose != nil {
			env.Verbose(fmt.Sprintf("without %q: median %.1f%%", name, 100*row.Median))
		}
	}
	return d, nil
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

// without is one row.
func (q *Ablation) without(env *Env, name string) (AblationRow, error) {
	row := AblationRow{Without: name}
	off, err := sim.ParseMechanisms(name)
	if err != nil {
		return row, err
	}
	cases, runs, err := env.published(q.Files, off)
	if err != nil {
		return row, err
	}
	if len(runs) > 0 {
		return row, fmt.Errorf("training runs beside measured collectives; expected files of one kind")
	}
	p := calibrate.Published(&calibrate.Problem{Cases: cases})
	p.Quick = true
	a, err := p.Solve()
	if err != nil {
		return row, err
	}
	rows, err := calibrate.Cross(cases, &a.Figures, calibrate.Publishers, nil)
	if err != nil {
		return row, err
	}
	calibrate.Refit(rows, calibrate.Publishers)
	s := truth.Rate(rows)
	row.Points, row.Median, row.P90 = s.Points, s.Median, s.P90
	row.By = ValidateMachines{s.Machines, s.MachineMedian, s.MachineP90, s.MachineCovered}
	for _, half := range truth.Split(rows, truth.ByMiB) {
		if half.Name == "from 1 MiB" {
			row.Large, row.LargeP = half.Median, half.P90
		} else {
			row.Small = half.Median
		}
	}
	return row, nil
}
