package main

import (
	"bytes"
	"fmt"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/step"
)

// runs are the training runs of the files.
func (c *calibrateCmd) runs(e *env) ([]*truth.Training, error) {
	var list []*truth.Training
	for _, name := range c.Files {
		if name == "-" {
			continue // read once, for collectives
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

// steps fits the figures of training steps to runs, or cross-validates them by clusters.
func (c *calibrateCmd) steps(e *env, runs []*truth.Training) error {
	done := e.later(c.common, "fitting the figures of training steps")
	defer done()
	rows, left := truth.PredictRuns(runs, step.Guess())
	if c.Cross {
		if err := calibrate.CrossSteps(rows, step.Guess()); err != nil {
			return err
		}
		done()
		t := &training{rows: rows, left: left, all: truth.RateRuns("all runs", rows)}
		if c.JSON {
			d := (&validation{}).document()
			t.fill(d)
			return writeIndented(e.stdout, d)
		}
		fmt.Fprintln(e.stdout, "Every cluster is predicted by figures that were fitted without its runs.")
		fmt.Fprintln(e.stdout)
		return t.print(e.stdout, c.Verbose)
	}
	f, err := calibrate.FitSteps(rows, step.Guess())
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := r.Predict(f); err != nil {
			return err
		}
	}
	done()
	s := truth.RateRuns("all runs", rows)
	if c.JSON {
		list := []map[string]any{}
		for i, v := range f {
			unit, _, _ := step.Range(i)
			list = append(list, map[string]any{"name": step.Name(i), "value": v, "unit": unit})
		}
		return writeIndented(e.stdout, map[string]any{"points": s.Points, "median_ape": s.Median, "p90_ape": s.P90, "figures": list})
	}
	for i, v := range f {
		unit, _, _ := step.Range(i)
		fmt.Fprintf(e.stdout, "%-22s %8.4g %s\n", step.Name(i), v, unit)
	}
	fmt.Fprintf(e.stdout, "%d runs: median %s, 90th percentile %s\n", s.Points, percent(s.Median), percent(s.P90))
	return nil
}
