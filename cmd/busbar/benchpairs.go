package main

import (
	"bytes"

	"busbar.dev/engine/ranks"
	"busbar.dev/query"
	"busbar.dev/report"
)

type benchPairsCmd struct {
	common
	ranks.Job
	query.BenchPairs
	SVG string `name:"svg" placeholder:"FILE" help:"Draw the bandwidths as a heat map, as SVG."`
}

// Help ends with examples.
func (benchPairsCmd) Help() string {
	return "Measures latency and bandwidth between every two ranks, each direction and both together, in rounds of disjoint pairs, " +
		"and names outliers: a host that is slow with all others, a slow pair, a slow direction. Exit code 1: an outlier above a note. " +
		"When there is an outlier, all pairs are measured up to twice more and the best of each counts, so that only what is slow every time remains. " +
		"Start one rank per host to test a network: pairs on one host share its memory. With --alone one pair uses the network at a time; the default shows what a fabric can carry under load.\n\n" +
		"Examples:\n" +
		"  busbar bench pairs -n 4 --transport tcp\n" +
		"  busbar bench pairs -n 3 --alone --svg pairs.svg --json\n" +
		"  srun -N 16 --ntasks-per-node 1 busbar bench pairs --size 16M"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchPairsCmd) Run(e *env) error {
	_, err := c.BenchPairs.RunOn(e.ctx, e.measuring(c.common), query.Ranks[*query.BenchPairsDoc]{
		Job: c.Job, Process: e.process(c.common),
		Ready:  func() error { return e.drawable(c.SVG) },
		Keep:   func(data []byte) error { return e.writeFile(c.SVG, bytesOf(data)) },
		Answer: func(d *query.BenchPairsDoc, keep func([]byte) error) error { return c.answer(e, d, keep) },
	})
	return fromRanks(err)
}

func (c *benchPairsCmd) answer(e *env, d *query.BenchPairsDoc, keep func([]byte) error) (err error) {
	if c.JSON {
		err = report.JSON(e.stdout, d)
	} else {
		err = report.BenchPairs(e.stdout, d)
	}
	if err == nil && c.SVG != "" {
		var b bytes.Buffer
		if err = pictured(func() (*report.Picture, error) { return report.Heat(d.Table) })(&b); err == nil {
			err = keep(b.Bytes())
		}
	}
	return wrong(d, err)
}
