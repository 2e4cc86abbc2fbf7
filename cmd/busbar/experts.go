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
	return "How long the tokens of a mixture of experts take to the GPUs of their experts (dispatch) and back (combine), as DeepEP and its like exchange them over NVLink and RDMA; all GPUs of the layout are one expert-parallel group. " +
		"A token goes once to every node that holds one of its experts and is handed on there, or, with --mode low_latency, straight to each. Routing is taken as even.\n\n" +
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
