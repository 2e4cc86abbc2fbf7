package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

type needCmd struct {
	common
	query.Need
}

// Help ends with examples.
func (needCmd) Help() string {
	return "The inverse of step: the slowest network between nodes, and the fewest NICs, for which the job stays within " +
		"5% of what it would take if nothing waited for other nodes; and which layer of the fabric to upgrade first, with " +
		"the gain of each. " +
		"The step is priced on variants of the cluster. Exits with 1 when no network that is sold is enough.\n\n" +
		"Examples:\n" +
		"  busbar need -c dgx-h100:4 -m llama2-7b --parallel zero=3\n" +
		"  busbar need -c dgx-a100:16 -m gpt3-13b --parallel tp=4 --micro-batch 2 --within 10\n" +
		"  busbar need -c baskerville -m gpt2-large -l 4x4 --micro-batch 8 --json"
}

// Run prints which network the job needs.
func (c *needCmd) Run(e *env) error {
	doc, err := c.Need.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return wrong(doc, report.JSON(e.stdout, doc))
	}
	return wrong(doc, report.Need(e.stdout, doc))
}
