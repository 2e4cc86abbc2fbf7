package main

import (
	"busbar.dev/ask"
	"busbar.dev/query"
)

type diffCmd struct {
	common
	settings
	query.Diff
}

// Run compares.
func (c *diffCmd) Run(e *env) error { return e.ask(ask.Named("diff"), &c.Diff, c.common) }
