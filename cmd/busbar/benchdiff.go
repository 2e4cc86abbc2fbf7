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
	return "Compares results row by row: medians with their 95% intervals, the change, and the probability p that chance alone makes such a difference (Mann-Whitney U test, Benjamini-Hochberg correction for the number of rows: at most a share of --alpha of unchanged tables shows a change). " +
		"± is the distance from the median to the ends of its 95% interval, or to the outermost values with fewer than six observations. " +
		"~ means no change: p is --alpha or more, the medians differ by less than 3%, or one median lies within the ± of the other. " +
		"Keep at least six runs in each file (bench -o appends), eight for tables of many rows: runs are then compared with runs, including the noise between them. " +
		"Output of nccl-tests has one value per row: put several runs into one file.\n\n" +
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
