package main

import (
	"busbar.dev/ask"
	"busbar.dev/query"
)

type stepCmd struct {
	common
	query.Step
	Nodes    string   `placeholder:"1-N" help:"The step on 1, 2, 4, … nodes up to N, or all: tokens/s, efficiency, and the last doubling that still gives 1.6 times as much."`
	Every    bool     `help:"With --nodes: every number of nodes, 3 and 5 too, up to 64."`
	Formulas bool     `help:"Estimate with simple formulas instead, each line with its formula and numbers."`
	MFU      *float64 `name:"mfu" placeholder:"SHARE" help:"With --formulas: share of peak FLOPS that compute reaches (default 0.5)."`
	GPUs     int      `name:"gpus" least:"1" placeholder:"N" help:"With --formulas: number of GPUs, on as few nodes as possible."`
	Output   []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file by its ending: .svg (timeline of one layout, curve of --nodes), .trace.json (Perfetto), .json (as --json), .txt (table). FORMAT=FILE names svg, trace, json or text explicitly; FORMAT=- replaces the table. Repeatable."`
}

// Run prices the step and writes what was asked for.
func (c *stepCmd) Run(e *env) error {
	q, question := ask.Named("step"), any(&c.Step)
	switch {
	case c.Formulas:
		q, question = ask.Named("envelope"), &query.Envelope{Job: c.Job, GPUs: c.GPUs, MFU: c.MFU}
	case c.Nodes != "":
		q, question = ask.Named("scale"), &query.Scale{Job: c.Job, Nodes: c.Nodes, Every: c.Every}
	}
	return e.answer(q, question, c.common, c.Output, "formulas")
}
