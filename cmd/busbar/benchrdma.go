package main

import (
	"busbar.dev/engine/ranks"
	"busbar.dev/query"
	"busbar.dev/report"
)

type benchRDMACmd struct {
	common
	ranks.Job
	keepFlag
	query.BenchRDMA
}

// Help ends with examples.
func (benchRDMACmd) Help() string {
	return "Runs perftest (ib_write_bw and ib_write_lat, or those of --verb) between the hosts of a job, one rank per host: every active port of a host with the same-numbered port of the others, in rounds of disjoint pairs, one rail at a time, each direction alone and both at once. " +
		"busbar starts servers and clients; the ranks meet as for bench pairs, and no ssh is needed between hosts. perftest is needed on every host (https://github.com/linux-rdma/perftest), with CUDA for --cuda. " +
		"It names a host, port or link that is slow beside the others, rails below the rate of their links, and hosts with fewer active ports. Exit code 1 when one of them is worse than a note. " +
		"Where something stands out, all rounds are measured up to twice more and the best of each counts.\n\n" +
		"Examples:\n" +
		"  srun -N 16 --ntasks-per-node 1 busbar bench rdma\n" +
		"  srun -N 4 --ntasks-per-node 1 busbar bench rdma --verb read --size 64K --qps 4 --devices mlx5_0,mlx5_3 --json\n" +
		"  srun -N 2 --ntasks-per-node 1 busbar bench rdma --cuda -o rdma.jsonl\n" +
		"  BUSBAR_SECRET=… busbar bench rdma -n 2 --rank 0 --meet 10.0.0.1:29500"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchRDMACmd) Run(e *env) error {
	_, err := c.BenchRDMA.RunOn(e.ctx, e.measuring(c.common), gpuPrograms(), query.Ranks[*query.BenchRDMADoc]{
		Job: c.Job, Process: e.process(c.common),
		Ready:  func() error { return c.refused(e, c.JSON) },
		Keep:   func(data []byte) error { return e.addTo(c.Output, data) },
		Answer: func(d *query.BenchRDMADoc, keep func([]byte) error) error { return c.answer(e, d, keep) },
	})
	return fromRanks(err)
}

func (c *benchRDMACmd) answer(e *env, d *query.BenchRDMADoc, keep func([]byte) error) (err error) {
	switch {
	case c.JSON:
		err = report.JSON(e.stdout, d)
	case !c.toStdout():
		err = report.BenchRDMA(e.stdout, d)
	}
	if err == nil {
		err = c.keep(e, d.Results, keep)
	}
	return wrong(d, err)
}
