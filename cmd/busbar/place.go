package main

import (
	"busbar.dev/ask"
	"busbar.dev/query"
)

type placeCmd struct {
	common
	query.Place
	Output []string `short:"o" placeholder:"FORMAT[=FILE]" sep:"none" help:"Also write the nodes to take: nodelist, slurm, kueue, jobset, aws, gcp, azure or oci; FORMAT=FILE writes a file, FORMAT=- replaces the table. Repeatable."`
}

// Run finds the nodes and writes what was asked for.
func (c *placeCmd) Run(e *env) error {
	return e.writeAnswer(ask.Named("place"), &c.Place, c.common, c.Output)
}
