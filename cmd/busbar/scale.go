package main

import (
	"busbar.dev/ask"
	"busbar.dev/query"
)

type scaleCmd struct {
	common
	query.Scale
	Output []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file by its ending: .svg (picture), .json (as --json). FORMAT=FILE names svg, json or text explicitly. Repeatable."`
}

// Help ends with examples.
func (scaleCmd) Help() string {
	return "Predicts how a job scales from one node to N: tokens/s and efficiency relative to the smallest number of " +
		"nodes that it fits on, with the knee marked: the last doubling that still gives at least 1.6 times the tokens/s. " +
		"The work per node is constant (weak scaling); with --global-batch it is divided (strong scaling). Replicas fill " +
		"what --parallel leaves. With --goodput or a flag about failures, only useful tokens count: more GPUs fail more " +
		"often.\n\n" +
		"Examples:\n" +
		"  busbar scale -c dgx-h100 -m llama2-7b --parallel zero=3 --nodes 64\n" +
		"  busbar scale -c dgx-a100 -m gpt3-13b --parallel tp=8 --global-batch 512 --nodes 128 -o scale.svg\n" +
		"  busbar scale -c dgx-h100 -m llama3-70b --parallel tp=8,pp=4,zero=1 --nodes 16384 --goodput\n" +
		"  busbar scale -c baskerville -m gpt2-large --micro-batch 8 --nodes 16 --json"
}

// Run prices every doubling and writes what was asked for.
func (c *scaleCmd) Run(e *env) error {
	return e.writeAnswer(ask.Named("scale"), &c.Scale, c.common, c.Output)
}
