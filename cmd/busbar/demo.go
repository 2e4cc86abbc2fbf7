package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

type demoCmd struct {
	common
}

// Help ends with an example.
func (demoCmd) Help() string {
	return "Maps and audits this machine, then the reference cluster (nodes of four A100s that share one InfiniBand port), and predicts an all-reduce there for four GPUs placed three ways.\n\nExample:\n  busbar demo"
}

// Run asks the first questions.
func (c demoCmd) Run(e *env) error {
	doc, err := query.Demo{}.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return report.JSON(e.stdout, doc)
	}
	return report.Demo(e.stdout, doc, e.text(e.stdout, c.common))
}
