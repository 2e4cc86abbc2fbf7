package main

import (
	"fmt"
	"strings"

	"busbar.dev/ask"
	"busbar.dev/query"
)

type predictCmd struct {
	common
	query.Predict
	query.MoE
	query.Program
	Machine string   `arg:"" optional:"" name:"cluster" help:"Cluster, as for -c."`
	Rounds  bool     `help:"Play the collective round by round instead: who sends what to whom, in which phase, and the load of every link (--algo, default ring)."`
	Output  []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file by its ending: .svg (picture), .json (as --json), .txt (table). FORMAT=FILE names svg, json or text explicitly; FORMAT=- replaces the table. Repeatable."`
}

// Run predicts and writes what was asked for.
func (c *predictCmd) Run(e *env) error {
	switch {
	case c.Machine == "":
	case c.Cluster != "":
		return fmt.Errorf("%s and -c %s: expected one cluster", c.Machine, c.Cluster)
	default:
		c.Cluster = c.Machine
	}
	q, question := ask.Named("predict"), any(&c.Predict)
	switch {
	case strings.HasPrefix(string(c.Op), "moe_"):
		experts := query.Experts{Cluster: c.Cluster, Layout: c.Layout, MoE: c.MoE, GPU: c.GPU, NIC: c.NIC, Set: c.Set}
		if e.given["dtype"] {
			experts.Dtype = string(c.Dtype)
		}
		q, question = ask.Named("experts"), &experts
	case c.Rounds:
		q = ask.Named("sched")
		question = &query.Sched{
			Op: c.Op, Algo: c.Algo, Root: c.Root, Cluster: c.Cluster, Layout: c.Layout, Size: c.Size, GPU: c.GPU, NIC: c.NIC,
			NCCL: c.NCCL, Devices: c.Devices, Set: c.Set, Program: c.Program,
		}
	}
	return e.answer(q, question, c.common, c.Output, "op", "rounds")
}
