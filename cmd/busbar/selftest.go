package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

type selfTestCmd struct {
	common
}

// Help ends with an example.
func (selfTestCmd) Help() string {
	return "Runs each part once on a case whose answer is known: presets, schedules, collectives in memory, " +
		"predictions, the doctor. " +
		"It needs no GPU, no network and no rights; it takes seconds. Exit code 1: a check failed.\n\nExample:\n  busbar " +
		"self-test"
}

// Run checks.
func (c selfTestCmd) Run(e *env) error {
	doc, err := query.SelfTest{}.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return wrong(doc, report.JSON(e.stdout, doc))
	}
	return wrong(doc, report.SelfTest(e.stdout, doc))
}
