package main

import (
	"busbar.dev/ask"
	"busbar.dev/query"
)

type diffCmd struct {
	common
	settings
	query.BenchDiff
}

// Run compares.
func (c *diffCmd) Run(e *env) error { return e.ask(ask.Named("diff"), &c.BenchDiff, c.common) }
