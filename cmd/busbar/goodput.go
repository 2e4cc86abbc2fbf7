package main

import (
	"busbar.dev/fleet/client"
	"busbar.dev/query"
	"busbar.dev/report"
)

type goodputCmd struct {
	common
	query.Goodput
	client.Options
}

// Help ends with examples.
func (goodputCmd) Help() string {
	return "How much of a run's time goes into steps that count when nodes fail, and how often to save: with " +
		"synchronous and asynchronous checkpoints, with spare nodes, and with jobs that continue with fewer replicas. " +
		"What is not given comes from published figures, whose sources are printed. With --mtbf fleet the time between " +
		"failures is that of the fleet's own nodes, as busbar serve has seen them.\n\n" +
		"Examples:\n" +
		"  busbar goodput -c dgx-h100:2048 -m llama3-405b --parallel tp=8,pp=16,zero=1 --global-batch 2048\n" +
		"  busbar goodput -c dgx-h100:128 -m llama3-70b --parallel tp=8,pp=4,zero=1 --async-checkpoint --storage 200GB/s " +
		"--spares 2\n" +
		"  busbar goodput -c dgx-h100:16 -m llama3-8b --parallel zero=1 --mtbf 90d/node --repair-time 3d --elastic"
}

// Run answers the question and prints it.
func (c *goodputCmd) Run(e *env) error {
	env := e.query(c.common)
	if c.MTBF == "fleet" {
		env = e.fleet(c.common, c.Options)
	}
	return shown(e, c.common, report.Goodput)(c.Goodput.Run(e.ctx, env))
}
