package main

import (
	"context"
	"errors"

	"busbar.dev/ask"
	"busbar.dev/cluster"
	"busbar.dev/query"
)

type mapCmd struct {
	common
	Sources []string `arg:"" optional:"" name:"source" help:"Files in any known format, - for standard input, a preset (dgx-h100:16), a folder of such files or with a copy of /sys and /proc, HOSTLIST=FILE, FILE:COUNT (default: this machine)."`
	query.Given
	Output []string   `short:"o" placeholder:"FILE" sep:"none" help:"Write a file by its ending: .yaml (cluster file), .svg, .xml (NCCL), .conf (Slurm), .json, .txt. FORMAT, or FORMAT=FILE, names text, yaml, json, matrix, svg, nccl-xml, slurm, slurm-yaml, kube or kueue. Repeatable."`
	Audit  bool       `help:"Print findings only; exit 1 when there are any above note."`
	Floors bool       `help:"Print what bandwidth every node, pair, rail, leaf and the whole should reach at least."`
	Op     query.Op   `default:"all_reduce" help:"With --floors: the collective (default all_reduce)."`
	Size   query.Size `placeholder:"SIZE" help:"With --floors: its size (default 1G)."`
	Path   []string   `placeholder:"FROM,TO" sep:"none" help:"Print the path between two devices: node0/gpu0,node1/gpu3. Repeatable."`
	Width  int        `default:"0" hidden:""`
}

// Run answers one of map's three questions.
func (c *mapCmd) Run(e *env) error {
	q, question := ask.Map, any(&query.Map{Sources: c.Sources, Given: c.Given})
	switch {
	case c.Audit && len(c.Path) > 0 || c.Floors && (c.Audit || len(c.Path) > 0):
		return errors.New("--audit, --path and --floors are different questions; ask one at a time")
	case !c.Floors && (e.given["op"] || e.given["size"]):
		return errors.New("--op and --size are those of --floors, and have no effect otherwise")
	case c.Floors:
		q = ask.Floors
		question = &query.Floors{Sources: c.Sources, Op: c.Op, Size: c.Size, Given: c.Given}
	case c.Audit:
		q, question = ask.Audit, &query.Audit{Sources: c.Sources, Given: c.Given}
	case len(c.Path) > 0:
		q, question = ask.Path, &query.Path{Sources: c.Sources, Path: c.Path, Given: c.Given}
	}
	noting := *q
	noting.Run = func(ctx context.Context, question any, env query.Env) (any, error) {
		doc, err := q.Run(ctx, question, env)
		var warnings []cluster.Warning // that what is written does not have
		switch d := doc.(type) {
		case *query.AuditDoc:
			warnings = d.Warnings
		case *query.MapDoc:
			if len(c.Output) > 0 {
				warnings = d.Warnings
			}
		}
		for _, w := range warnings {
			c.note(e, w.String())
		}
		return doc, err
	}
	return e.answer(&noting, question, c.common, c.Output, "audit", "floors")
}
