package main

import (
	"bytes"

	"busbar.dev/engine/ranks"
	"busbar.dev/query"
	"busbar.dev/report"
)

type benchStepCmd struct {
	common
	ranks.Job
	query.BenchStep
	Buckets bool   `help:"List all buckets."`
	Trace   string `placeholder:"FILE" help:"Write the median step as a trace for Perfetto or chrome://tracing."`
}

// Help ends with examples.
func (benchStepCmd) Help() string {
	return "Measures the communication of a step of data-parallel training: the model's real gradients, in the buckets of PyTorch's DistributedDataParallel (25 MiB, the first 1 MiB, from the last parameter to the first), " +
		"reduced by all ranks. Compute is replaced by waiting. The result is the exposed communication: how long a step continues after its compute has ended.\n\n" +
		"Examples:\n" +
		"  busbar bench step --model gpt2 -n 2 --iters 3\n" +
		"  busbar bench step --model vit-b16 --layout 1x2 --compute 200ms --overlap on --json\n" +
		"  srun -N 2 --ntasks-per-node 2 busbar bench step --model gpt2-large --dtype bfloat16"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchStepCmd) Run(e *env) error {
	_, err := c.BenchStep.RunOn(e.ctx, e.measuring(c.common), query.Ranks[*query.BenchStepDoc]{
		Job: c.Job, Process: e.process(c.common),
		Ready:  func() error { return e.writable(c.Trace) },
		Keep:   func(data []byte) error { return e.writeFile(c.Trace, bytesOf(data)) },
		Answer: func(d *query.BenchStepDoc, keep func([]byte) error) error { return c.answer(e, d, keep) },
	})
	return fromRanks(err)
}

func (c *benchStepCmd) answer(e *env, d *query.BenchStepDoc, keep func([]byte) error) (err error) {
	if c.JSON {
		err = report.JSON(e.stdout, d)
	} else {
		err = report.BenchStep(e.stdout, d, c.Buckets)
	}
	if err != nil || c.Trace == "" {
		return err
	}
	var b bytes.Buffer
	if err := report.BenchStepTrace(&b, d); err != nil {
		return err
	}
	return keep(b.Bytes())
}
