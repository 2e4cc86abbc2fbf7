package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

// envelopeCmd takes what step takes; without a cluster and a model it prints the documents' cases.
type envelopeCmd struct {
	common
	query.Envelope
}

// Help ends with examples.
func (envelopeCmd) Help() string {
	return "The arithmetic that one does on the back of an envelope, each line with its formula and its numbers: memory, operations, compute, exchange of gradients inside and across nodes, and whether it hides. " +
		"Without arguments: every figure of the documents it comes from that follows from others there, beside what is printed, with a note where a document prints something else than its formula gives. With -c and -m: your case, by the same rules. busbar step prices what really happens.\n\n" +
		"Examples:\n" +
		"  busbar envelope\n" +
		"  busbar envelope -c dgx-a100:4 -m gpt3-2.7b --global-batch 64\n" +
		"  busbar envelope -c dgx-h100 -m llama3-8b --gpus 64 --json"
}

// Run prints the documents' cases or the user's.
func (c *envelopeCmd) Run(e *env) error {
	doc, err := c.Envelope.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return report.JSON(e.stdout, doc)
	}
	return report.Envelope(e.stdout, doc, c.Verbose)
}
