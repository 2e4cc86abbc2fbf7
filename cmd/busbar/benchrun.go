package main

import (
	"fmt"

	"busbar.dev/engine/ranks"
	"busbar.dev/query"
	"busbar.dev/report"
)

// benchRunCmd measures collectives; it is what bench does when no subcommand is named.
type benchRunCmd struct {
	common
	ranks.Job
	keepFlag
	query.Bench
}

// Help ends with examples.
func (benchRunCmd) Help() string {
	return "Without a command, busbar bench runs the sweep: collectives on real memory, size after size, measured; no GPU, MPI or Python is needed. Columns are those of nccl-tests. " +
		"Under torchrun, srun, mpirun or in an indexed Kubernetes job the ranks are the launcher's; alone, the command starts -n processes of its own. " +
		"Ranks started manually take --rank, -n and --meet. The job's secret is read from BUSBAR_SECRET.\n\n" +
		"Examples:\n" +
		"  busbar bench -n 4\n" +
		"  busbar bench -n 8 --op all_gather -b 1K -e 256M -f 4 --algo ring --check\n" +
		"  busbar bench -n 4 --transport tcp --json\n" +
		"  busbar bench -n 4 -o before.jsonl\n" +
		"  srun -N 2 --ntasks-per-node 2 busbar bench -b 1M -e 1G\n" +
		"  BUSBAR_SECRET=… busbar bench -n 2 --rank 0 --meet 10.0.0.1:29500"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchRunCmd) Run(e *env) error {
	on := query.Ranks[*query.BenchDoc]{
		Job: c.Job, Process: e.process(c.common),
		Ready:  func() error { return c.keepFlag.refused(e, c.JSON) },
		Keep:   func(data []byte) error { return e.addTo(c.Output, data) },
		Answer: func(d *query.BenchDoc, keep func([]byte) error) error { return c.answer(e, d, keep) },
	}
	if !c.JSON && !c.toStdout() {
		on.Row = func(d *query.BenchDoc) error { return report.BenchRow(e.stdout, d, e.screen()) }
	}
	_, err := c.Bench.RunOn(e.ctx, e.measuring(c.common), on)
	return fromRanks(err)
}

// answer prints what comes after the rows, and keeps them.
func (c *benchRunCmd) answer(e *env, d *query.BenchDoc, keep func([]byte) error) (err error) {
	switch {
	case c.JSON:
		err = report.JSON(e.stdout, d)
	case !c.toStdout():
		err = report.BenchEnd(e.stdout, d)
	}
	if err == nil {
		err = c.keep(e, d.Sweeps, keep)
	}
	if err != nil {
		return err
	}
	for why, n := range d.Refusals {
		if !c.Quiet {
			fmt.Fprintf(e.stderr, "busbar: %d connections were refused: %s\n", n, why)
		}
	}
	return wrong(d, nil)
}
