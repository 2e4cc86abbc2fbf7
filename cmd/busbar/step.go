package main

import (
	"io"

	"busbar.dev/ask"
	"busbar.dev/query"
	"busbar.dev/report"
)

type stepCmd struct {
	common
	query.Step
	Groups bool     `help:"Also print which ranks form each parallel group, and where they are placed."`
	Output []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file by its ending: .svg (timeline, one layout), .trace.json (Perfetto), .json (as --json), .txt (table). FORMAT=FILE names svg, trace, json or text explicitly; FORMAT=- replaces the table. Repeatable."`
}

// Help ends with examples.
func (stepCmd) Help() string {
	return "Predicts how long one training step takes and where the time goes: computing, waiting for the network, the " +
		"pipeline's bubble, the optimizer; how much memory each GPU needs; and what limits it. " +
		"With --slow: the cost of slow nodes. With --mtbf, --storage or --goodput: how much of a run's time is left after " +
		"failures and checkpoints, and how often to save. With --price, --energy and --tokens: what it costs. " +
		"docs/steps.md says what the model is and how far off it is on published runs. Exits with 1 where the job fits the " +
		"GPUs' memory on no layout.\n\n" +
		"Examples:\n" +
		"  busbar step -c dgx-h100:2 -m llama2-7b --parallel zero=3 --micro-batch 2\n" +
		"  busbar step -c dgx-a100:48 -m gpt3-175b --parallel tp=8,pp=12 --global-batch 1536 --recompute full\n" +
		"  busbar step -c dgx-h100:2 -m llama2-13b --parallel tp=4,pp=4 --global-batch 16 -o step.svg\n" +
		"  busbar step -c dgx-h100:16 -m llama3-8b --parallel zero=2 --slow node3=20%\n" +
		"  busbar step -c dgx-h100:2048 -m llama3-405b --parallel tp=8,pp=16 --global-batch 2048 --goodput --tokens 15.6T " +
		"--price 2.50/gpu-hour\n" +
		"  busbar step -c baskerville -m gpt2-large --compare 1x4,2x2,4x1 --micro-batch 8 --json"
}

// Run prices the step and writes what was asked for.
func (c *stepCmd) Run(e *env) error {
	q := *ask.Named("step")
	text := q.Text
	q.Text = func(w io.Writer, document any, o report.TextOptions) error {
		o.Groups = c.Groups
		return text(w, document, o)
	}
	return e.writeAnswer(&q, &c.Step, c.common, c.Output)
}
