package main

import (
	"fmt"

	"busbar.dev/ask"
	"busbar.dev/query"
)

type predictCmd struct {
	common
	query.Predict
	Machine string   `arg:"" optional:"" name:"cluster" help:"Cluster, as for -c."`
	Output  []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file by its ending: .svg (picture), .trace.json (Perfetto), .json (as --json), .txt (table). FORMAT=FILE names svg, trace, json or text explicitly; FORMAT=- replaces the table. Repeatable."`
	Trace   string   `placeholder:"FILE" help:"Write the timeline of one run (one size, one algorithm) for ui.perfetto.dev or chrome://tracing; - writes to standard output instead of the table."`
}

// Help ends with examples.
func (predictCmd) Help() string {
	return "Predicts how long a collective takes, by which algorithm and protocol NCCL would do it, what limits it, and " +
		"which setting would help. " +
		"Sizes, algbw and busbw are those of nccl-tests. The parameters of the model were fitted on published " +
		"measurements; see docs/accuracy.md.\n\n" +
		"Examples:\n" +
		"  busbar predict dgx-h100:2\n" +
		"  busbar predict -c dgx-h100:4 --op all_gather -b 1M -e 1G -f 4 --algo all\n" +
		"  busbar predict -c baskerville --compare 1x4,2x2,4x1 --size 1.32GB -d bfloat16\n" +
		"  busbar predict -c dgx-h100:8 -l 4x8 --nccl 2.21 --env NCCL_ALGO=Ring --json\n" +
		"  busbar predict -c docs/examples/rails.yaml -l 2x8 --size 14GB\n" +
		"  busbar predict -c baskerville -l 2x2 --size 1G --links\n" +
		"  busbar predict -c dgx-a100:2 -b 8 -e 8G -o curve.svg"
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
	if c.Trace != "" {
		c.Output = append(c.Output, "trace="+c.Trace)
	}
	return e.writeAnswer(ask.Named("predict"), &c.Predict, c.common, c.Output)
}
