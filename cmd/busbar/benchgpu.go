package main

import (
	"busbar.dev/engine/ranks"
	"busbar.dev/query"
	"busbar.dev/report"
)

type benchGPUCmd struct {
	common
	keepFlag
	query.BenchGPU
	DryRun bool `help:"Print the commands without running them."`
}

// Help ends with examples.
func (benchGPUCmd) Help() string {
	return "Runs the programs of nccl-tests where they are installed, once by NCCL's own choice and then by every algorithm, protocol and number of channels, and prints the best setting of each size and what NCCL's choice lost against it. " +
		"A setting that NCCL refuses is left out, with its words. Settings reach the ranks of other hosts through env(1). Old releases of NCCL take another algorithm without a word where the one asked for is impossible.\n\n" +
		"Examples:\n" +
		"  busbar bench gpu --nccl-tests /opt/nccl-tests/build -g 8 -o gpu.jsonl\n" +
		"  busbar bench gpu -g 8 --algos ring,tree --channels auto,8,16 --dry-run\n" +
		"  busbar bench gpu --launch \"mpirun -np 16 -H node0:8,node1:8\" --op all_gather -c dgx-h100:2 -o gpu.jsonl"
}

// Run tries all settings, or prints what that would run.
func (c *benchGPUCmd) Run(e *env) error {
	with := query.Programs{Find: ranks.FindProgram, Run: ranks.Program, Ready: func() error { return c.refused(e, c.JSON) }}
	if c.DryRun {
		d, err := c.BenchGPU.Commands(e.ctx, e.measuring(c.common), with)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return report.JSON(e.stdout, d)
		}
		return report.BenchGPUCommands(e.stdout, d)
	}
	d, err := c.BenchGPU.RunWith(e.ctx, e.measuring(c.common), with)
	switch {
	case err != nil:
		return err
	case c.JSON:
		err = report.JSON(e.stdout, d)
	case !c.toStdout():
		err = report.BenchGPU(e.stdout, d)
	}
	if err == nil {
		err = c.keep(e, d.Results, func(data []byte) error { return e.addTo(c.Output, data) })
	}
	return wrong(d, err)
}
