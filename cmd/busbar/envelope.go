package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

// envelopeCmd takes what step takes.
type envelopeCmd struct {
	common
	query.Envelope
}

// Help ends with examples.
func (envelopeCmd) Help() string {
	return "Back-of-the-envelope estimates, each line with its formula and numbers: memory, operations, compute, " +
		"gradient exchange inside and across nodes, and whether it is overlapped. " +
		"busbar step predicts the step itself.\n\n" +
		"Examples:\n" +
		"  busbar envelope -c dgx-a100:4 -m gpt3-2.7b --global-batch 64\n" +
		"  busbar envelope -c dgx-h100 -m llama3-8b --gpus 64 --json"
}

// Run prints the case.
func (c *envelopeCmd) Run(e *env) error {
	doc, err := c.Envelope.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return report.JSON(e.stdout, doc)
	}
	return report.Envelope(e.stdout, doc)
}
