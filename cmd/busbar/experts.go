package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

type expertsCmd struct {
	common
	query.Experts
}

// Help ends with examples.
func (expertsCmd) Help() string {
	return "Predicts how long the tokens of a mixture of experts need to reach the GPUs of their experts (dispatch) and " +
		"to return (combine), exchanged over NVLink or xGMI and RDMA as DeepEP does. All GPUs of the layout form one " +
		"expert-parallel group. " +
		"A token is sent once to every node that holds one of its experts and forwarded there; with --mode low_latency it " +
		"is sent directly to every expert. Routing is assumed to be balanced.\n\n" +
		"Examples:\n" +
		"  busbar experts -c dgx-h100:4\n" +
		"  busbar experts -c dgx-h100:2 --mode low_latency --tokens 16,128\n" +
		"  busbar experts -c mi300x-8 --tokens 4096 --json"
}

// Run predicts and prints.
func (c *expertsCmd) Run(e *env) error {
	doc, err := c.Experts.Run(e.ctx, e.query(c.common))
	if err != nil {
		return err
	}
	if c.JSON {
		return report.JSON(e.stdout, doc)
	}
	return report.Experts(e.stdout, doc)
}
