package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/engine/device"
	"busbar.dev/engine/health"
	"busbar.dev/engine/ranks"
	"busbar.dev/query"
	"busbar.dev/report"
)

// benchGPUAllCmd is what can be measured of GPUs: collectives, when nothing else is named.
type benchGPUAllCmd struct {
	Run   benchGPUCmd      `cmd:"" name:"run" default:"withargs" hidden:"" help:"Measure NCCL's collectives."`
	Pairs benchGPUPairsCmd `cmd:"" help:"Measure every pair of GPUs by NCCL's sends and receives."`
	Node  benchGPUNodeCmd  `cmd:"" help:"Measure everything inside this node: memory, copies, matrix products, pairs, collectives."`
}

type benchGPUCmd struct {
	common
	keepFlag
	query.BenchGPU
	DryRun bool `help:"Print the commands without running them."`
}

// Help ends with examples.
func (benchGPUCmd) Help() string {
	return "Runs NCCL's collectives on GPUs and prints nccl-tests' columns. busbar-gpu does it, one process per rank, with the NCCL that it finds (BUSBAR_NCCL=FILE names it): no MPI, no Python, no nccl-tests. " +
		"With --by nccl-tests, or --algos and --channels, it runs once with NCCL's choice and then with every algorithm, protocol and number of channels. It prints the best setting of each size and what NCCL's choice lost against it. " +
		"A setting that NCCL refuses is skipped, and NCCL's message is printed. Settings reach the ranks of other hosts through env(1). Old releases of NCCL silently use another algorithm when the requested one is impossible.\n\n" +
		"Examples:\n" +
		"  busbar bench gpu --op all --check -o gpu.jsonl\n" +
		"  busbar bench gpu --hosts gpu[01-04] -b 1M -e 1G\n" +
		"  busbar bench gpu -n 16 --launch \"srun -N 2 --ntasks-per-node 8\" --op all_gather\n" +
		"  busbar bench gpu --nccl-tests /opt/nccl-tests/build -g 8 -o gpu.jsonl\n" +
		"  busbar bench gpu --by nccl-tests -g 8 --algos ring,tree --channels auto,8,16 --dry-run\n" +
		"  busbar bench gpu --by nccl-tests --launch \"mpirun -np 16 -H node0:8,node1:8\" --op all_gather -c dgx-h100:2 -o gpu.jsonl"
}

// Run tries all settings, or prints what that would run.
func (c *benchGPUCmd) Run(e *env) error {
	with := gpuPrograms()
	with.Ready = func() error { return c.refused(e, c.JSON) }
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

// gpuPrograms are how questions about GPUs run other programs.
func gpuPrograms() query.Programs {
	return query.Programs{Sys: os.DirFS("/"), Alone: &query.PortsAlone{Prefix: "busbar-rdma/"}, Kernel: health.KernelLog, Find: ranks.FindProgram, Run: ranks.Program, Helper: findHelper, Worker: func(args, settings []string) (device.Process, error) {
		p, err := ranks.Pipe(args, settings)
		if err != nil { // not a nil pointer in an interface
			return nil, err
		}
		return p, nil
	}}
}

// findHelper is where busbar-gpu is: beside this program, or in PATH.
func findHelper() (string, error) {
	const name = "busbar-gpu"
	var tried []string
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		if path, err := ranks.FindProgram(dir, name); err == nil {
			return path, nil
		}
		tried = append(tried, filepath.Join(dir, name))
	}
	if path, err := ranks.FindProgram("", name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("the program busbar-gpu is not installed: it is neither %s nor in PATH; go install ./cmd/busbar-gpu in a checkout builds it", strings.Join(tried, ", "))
}

type benchGPUPairsCmd struct {
	common
	query.BenchGPUPairs
	SVG string `name:"svg" placeholder:"FILE" help:"Draw the bandwidths as a heat map, as SVG."`
}

// Help ends with examples.
func (benchGPUPairsCmd) Help() string {
	return "Sends and receives between every two GPUs through NCCL, each direction and both together, in rounds of disjoint pairs, and names what stands out, as bench pairs does for hosts.\n\n" +
		"Examples:\n" +
		"  busbar bench gpu pairs --check\n" +
		"  busbar bench gpu pairs --hosts gpu[01-08] -n 1 --size 256M --svg pairs.svg"
}

// Run measures.
func (c *benchGPUPairsCmd) Run(e *env) error {
	if err := e.drawable(c.SVG); err != nil {
		return err
	}
	d, err := c.BenchGPUPairs.RunWith(e.ctx, e.measuring(c.common), gpuPrograms())
	if err != nil {
		return err
	}
	like := benchPairsCmd{common: c.common, SVG: c.SVG}
	return like.answer(e, d, func(data []byte) error { return e.writeFile(c.SVG, bytesOf(data)) })
}

type benchGPUNodeCmd struct {
	common
	keepFlag
	query.BenchGPUNode
}

// Help ends with examples.
func (benchGPUNodeCmd) Help() string {
	return "Measures every GPU's memory rate, copies between host and GPU, matrix products with clocks and power while they run, and copies between GPUs. Then it runs three collectives over all of them and checks the values. All of it takes less than a minute. -o keeps the collectives.\n\n" +
		"Examples:\n" +
		"  busbar bench gpu node\n" +
		"  busbar bench gpu node --shapes 8192x8192x8192:bfloat16,4096x4096x4096:f8e4m3 --json"
}

// Run measures.
func (c *benchGPUNodeCmd) Run(e *env) error {
	if err := c.refused(e, c.JSON); err != nil {
		return err
	}
	d, err := c.BenchGPUNode.RunWith(e.ctx, e.measuring(c.common), gpuPrograms())
	switch {
	case err != nil:
		return err
	case c.JSON:
		err = report.JSON(e.stdout, d)
	case !c.toStdout():
		err = report.BenchGPUNode(e.stdout, d)
	}
	if err == nil {
		err = c.keep(e, d.Results, func(data []byte) error { return e.addTo(c.Output, data) })
	}
	return wrong(d, err)
}
