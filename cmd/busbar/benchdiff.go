package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

type benchDiffCmd struct {
	common
	query.BenchDiff
	All bool `help:"Also list rows that only one file has."`
}

// Help ends with examples.
func (benchDiffCmd) Help() string {
	return "Compares results row by row: medians with their 95% intervals, the change, and the probability p that chance alone makes such a difference (Mann-Whitney U test, corrected for the number of rows by Benjamini and Hochberg: of tables in which nothing changed, a share of --alpha at most show a change). " +
		"± is how far the ends of the median's 95% interval are from it, of fewer than six observations how far the outermost are. " +
		"~ is no change: p is --alpha or more, the medians differ by less than 3%, or one of them lies within the other side's ±. " +
		"Keep six runs or more in each file, eight for tables of many rows (bench -o adds to it): then runs are compared with runs, and the noise between them counts. " +
		"Outputs of nccl-tests hold one figure a row: put several runs into one file.\n\n" +
		"Examples:\n" +
		"  busbar bench diff docs/examples/before.jsonl docs/examples/after.jsonl\n" +
		"  busbar bench diff docs/examples/before.jsonl docs/examples/after.jsonl --threshold 10 --json\n" +
		"  for i in 1 2 3 4 5 6; do busbar bench -n 4 -o new.jsonl; done"
}

// Run compares.
func (c *benchDiffCmd) Run(e *env) error {
	doc, err := c.BenchDiff.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return wrong(doc, report.JSON(e.stdout, doc))
	}
	return wrong(doc, report.BenchDiff(e.stdout, doc, c.All))
}
