package main

import (
	"errors"
	"fmt"

	"busbar.dev/query"
	"busbar.dev/report"
)

type validateCmd struct {
	common
	query.Validate
	Rows bool `help:"Print every point: measured, predicted, error."`
}

// Help says what is scored and ends with examples.
func (validateCmd) Help() string {
	return "Predicts every measured point from its description alone (GPU, joining, NICs, NCCL release, collective, " +
		"size) and prints how far off the predictions are: " +
		"|predicted − measured| / measured. Points marked anomalous or of grade C are not scored; what cannot be " +
		"predicted is listed with the reason. " +
		"Training runs are predicted as `busbar step` does, and compared by the time of a step. docs/manual/validate.md " +
		"describes the form of the file.\n\n" +
		"The built-in parameters were fitted on published sweeps: for those, and for others of the same machines, the " +
		"error printed here is smaller than for a machine that the model has not seen. " +
		"`make fit FILES=FILE` in a checkout of the source gives the error for unseen machines: every machine is predicted " +
		"by parameters fitted without any of its points.\n\n" +
		"Examples:\n" +
		"  busbar validate docs/examples/points.jsonl\n" +
		"  busbar validate docs/examples/points.jsonl --class nvlink-single-node --rows\n" +
		"  busbar validate docs/examples/points.jsonl --max-median 0.12 --max-p90 0.4 --json"
}

// Run predicts measured points, or examines faults, and says how good that is.
func (c *validateCmd) Run(e *env) error {
	doc, err := c.Validate.Run(e.ctx, e.query(c.common))
	c.Verbose = c.Verbose || c.Rows
	if errors.Is(err, query.ErrFaults) {
		return shown(e, c.common, report.ValidateDoctor)(
			query.ValidateDoctor{File: c.Files[0], Class: c.Class}.Run(e.ctx, e.query(c.common)))
	}
	if err == nil {
		err = show(e, c.common, doc, report.Validate)
	}
	if err == nil {
		err = doc.Err()
	}
	if err != nil {
		return err
	}
	for _, text := range doc.Missed {
		if !c.Quiet {
			fmt.Fprintln(e.stderr, text)
		}
	}
	return wrong(doc, nil)
}
