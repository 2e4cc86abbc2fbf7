package main

import (
	"bufio"

	"busbar.dev/ask"
	"busbar.dev/query"
)

// doctorCmd says why a job is slow, broken or hung.
type doctorCmd struct {
	common
	query.Doctor
	query.Job
	Explain bool       `help:"Show the rings, trees and channels that NCCL set up in a run, from its log, and what passes each NIC."`
	Comm    string     `placeholder:"ID" help:"With --explain: communicator, its id, or its index in the log from 0 (default: the largest)."`
	Size    query.Size `default:"1G" placeholder:"SIZE" help:"With --explain: size of the all-reduce to count bytes for (default 1G)."`
	Op      query.Op   `placeholder:"OP" help:"Of a table: the collective, when the output does not name it."`
	Output  []string   `short:"o" name:"output" aliases:"format" placeholder:"FILE" sep:"none" help:"Write findings to a file by its ending: .md, .json, .txt; .svg draws a table's curve. FORMAT, or FORMAT=FILE, names text, json, markdown or svg. Repeatable."`
	Width   int        `default:"0" hidden:""`
}

// Run recognises what it gets, examines it and reports.
func (c *doctorCmd) Run(e *env) error {
	stdin := bufio.NewReaderSize(e.stdin, 1<<16) // so that it can be looked at first
	e.stdin = stdin
	kind := c.Kind(e.ctx, e.query(c.common), c.Cluster)
	switch {
	case c.Explain:
		question := &query.Explain{Logs: c.Sources, Comm: c.Comm, Size: c.Size}
		return e.answer(ask.Named("explain"), question, c.common, c.Output, "explain")
	case kind == "trace":
		question := &query.Trace{Sources: c.Sources, Job: c.Job, FailOn: c.FailOn}
		return e.answer(ask.Named(kind), question, c.common, c.Output)
	case kind == "measured":
		return e.answer(ask.Named(kind), &query.DoctorBench{
			Result: c.Sources[0], Cluster: c.Cluster, Layout: c.Layout, Op: c.Op, NCCL: c.NCCL, FailOn: c.FailOn,
		}, c.common, c.Output)
	}
	c.Against = &c.Job
	var known []string
	for _, p := range query.Params(&c.Job) { // without use for any input they are refused there
		known = append(known, p.Name)
	}
	return e.answer(ask.Named(kind), &c.Doctor, c.common, c.Output, known...)
}
