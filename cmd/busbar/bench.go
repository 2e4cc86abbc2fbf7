package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/engine/device"
	"busbar.dev/engine/health"
	"busbar.dev/engine/ranks"
	"busbar.dev/measure"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/result/pairs"
)

// benchCmd is what can be measured: collectives, when nothing else is named.
type benchCmd struct {
	Collectives benchRunCmd    `cmd:"" name:"run" default:"withargs" hidden:"" help:"Run collectives on real memory, between processes and hosts, and measure them."`
	Pairs       benchPairsCmd  `cmd:"" help:"Measure every pair of ranks and name slow hosts, links and directions."`
	Step        benchStepCmd   `cmd:"" help:"Measure the communication of a data-parallel training step."`
	GPU         benchGPUAllCmd `cmd:"" name:"gpu" help:"Measure GPUs: NCCL's collectives, pairs, everything inside a node."`
	RDMA        benchRDMACmd   `cmd:"" name:"rdma" help:"Measure RDMA between hosts with perftest, and name slow hosts, ports and links."`
	Diff        benchDiffCmd   `cmd:"" help:"Compare stored results and tell change from noise."`
}

type benchDiffCmd struct {
	common
	query.BenchDiff
	All bool `help:"Also list rows that only one file has."`
}

// Help ends with examples.
func (benchDiffCmd) Help() string {
	return "Compares results row by row: medians with their 95% intervals, the change, and the probability p that " +
		"chance alone makes such a difference (Mann-Whitney U test, Benjamini-Hochberg correction for the number of rows: " +
		"at most a share of --alpha of unchanged tables shows a change). " +
		"± is the distance from the median to the ends of its 95% interval, or to the outermost values with fewer than " +
		"six observations. " +
		"~ means no change: p is --alpha or more, the medians differ by less than 3%, or one median lies within the ± of " +
		"the other. " +
		"Keep at least six runs in each file (bench -o appends), eight for tables of many rows: runs are then compared " +
		"with runs, including the noise between them. " +
		"Output of nccl-tests has one value per row: put several runs into one file.\n\n" +
		"Examples:\n" +
		"  busbar bench diff docs/examples/before.jsonl docs/examples/after.jsonl\n" +
		"  busbar bench diff docs/examples/before.jsonl docs/examples/after.jsonl --threshold 10 --json\n" +
		"  for i in 1 2 3 4 5 6; do busbar bench -n 4 -o new.jsonl; done"
}

// Run compares.
func (c *benchDiffCmd) Run(e *env) error {
	c.Verbose = c.All
	return shown(e, c.common, report.BenchDiff)(
		c.BenchDiff.Run(e.ctx, e.query(c.common)))
}

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
	return "Runs NCCL's collectives on GPUs and prints nccl-tests' columns. busbar-gpu does it, one process per rank, " +
		"with the NCCL that it finds (BUSBAR_NCCL=FILE names it): no MPI, no Python, no nccl-tests. " +
		"With --by nccl-tests, or --algos and --channels, it runs once with NCCL's choice and then with every algorithm, " +
		"protocol and number of channels. It prints the best setting of each size and what NCCL's choice lost against it. " +
		"A setting that NCCL refuses is skipped, and NCCL's message is printed. Settings reach the ranks of other hosts " +
		"through env(1). Old releases of NCCL silently use another algorithm when the requested one is impossible.\n\n" +
		"Examples:\n" +
		"  busbar bench gpu --op all --check -o gpu.jsonl\n" +
		"  busbar bench gpu --hosts gpu[01-04] -b 1M -e 1G\n" +
		"  busbar bench gpu -n 16 --launch \"srun -N 2 --ntasks-per-node 8\" --op all_gather\n" +
		"  busbar bench gpu --nccl-tests /opt/nccl-tests/build -g 8 -o gpu.jsonl\n" +
		"  busbar bench gpu --by nccl-tests -g 8 --algos ring,tree --channels auto,8,16 --dry-run\n" +
		"  busbar bench gpu --by nccl-tests --launch \"mpirun -np 16 -H node0:8,node1:8\" --op all_gather -c dgx-h100:2 -o " +
		"gpu.jsonl"
}

// Run tries all settings, or prints what that would run.
func (c *benchGPUCmd) Run(e *env) error {
	with := gpuPrograms()
	with.Ready = func() error { return c.refused(e, c.JSON) }
	if c.DryRun {
		return shown(e, c.common, report.BenchGPUCommands)(c.BenchGPU.Commands(e.ctx, e.measuring(c.common), with))
	}
	d, err := c.BenchGPU.RunWith(e.ctx, e.measuring(c.common), with)
	if err != nil {
		return err
	}
	return wrong(d, keepShown(e, c.common, &c.keepFlag, d, report.BenchGPU, d.Sweeps, c.append(e)))
}

// gpuPrograms are how questions about GPUs run other programs.
func gpuPrograms() measure.Programs {
	return measure.Programs{
		Sys: os.DirFS("/"), Alone: &measure.PortsAlone{Prefix: "busbar-rdma/"}, Kernel: health.KernelLog,
		Find: ranks.FindProgram, Run: ranks.Program, Helper: findHelper,
		Worker: func(args, settings []string) (device.Process, error) {
			p, err := ranks.Pipe(args, append(os.Environ(), settings...))
			if err != nil { // not a nil pointer in an interface
				return nil, err
			}
			return p, nil
		},
	}
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
	return "", fmt.Errorf("the program busbar-gpu is not installed: it is neither %s nor in PATH; go install "+
		"./cmd/busbar-gpu in a checkout builds it", strings.Join(tried, ", "))
}

type benchGPUPairsCmd struct {
	common
	query.BenchGPUPairs
	SVG string `name:"svg" placeholder:"FILE" help:"Draw the bandwidths as a heat map, as SVG."`
}

// Help ends with examples.
func (benchGPUPairsCmd) Help() string {
	return "Sends and receives between every two GPUs through NCCL, each direction and both together, in rounds of " +
		"disjoint pairs, and names what stands out, as bench pairs does for hosts.\n\n" +
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
	return "Measures every GPU's memory rate, copies between host and GPU, matrix products with clocks and power while " +
		"they run, and copies between GPUs. Then it runs three collectives over all of them and checks the values. All of " +
		"it takes less than a minute. -o keeps the collectives.\n\n" +
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
	if err != nil {
		return err
	}
	return wrong(d, keepShown(e, c.common, &c.keepFlag, d, report.BenchGPUNode, d.Results, c.append(e)))
}

type benchPairsCmd struct {
	common
	ranks.Job
	query.BenchPairs
	SVG string `name:"svg" placeholder:"FILE" help:"Draw the bandwidths as a heat map, as SVG."`
}

// Help ends with examples.
func (benchPairsCmd) Help() string {
	return "Measures latency and bandwidth between every two ranks, each direction and both together, in rounds of " +
		"disjoint pairs, " +
		"and names outliers: a host that is slow with all others, a slow pair, a slow direction. Exit code 1: an outlier " +
		"above a note. " +
		"When there is an outlier, all pairs are measured up to twice more and the best of each counts, so that only what " +
		"is slow every time remains. " +
		"Start one rank per host to test a network: pairs on one host share its memory. With --alone one pair uses the " +
		"network at a time; the default shows what a fabric can carry under load.\n\n" +
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
	err = show(e, c.common, d, report.BenchPairs)
	if err == nil && c.SVG != "" {
		var b bytes.Buffer
		if err = pictured(func() (*report.Picture, error) {
			return report.Heat(pairs.FromGrids(d.Names, d.Rate, d.Both, d.Latency))
		})(&b); err == nil {
			err = keep(b.Bytes())
		}
	}
	return wrong(d, err)
}

type benchRDMACmd struct {
	common
	ranks.Job
	keepFlag
	query.BenchRDMA
}

// Help ends with examples.
func (benchRDMACmd) Help() string {
	return "Runs perftest (ib_write_bw and ib_write_lat, or those of --verb) between the hosts of a job, one rank per " +
		"host: every active port of a host with the same-numbered port of the others, in rounds of disjoint pairs, one " +
		"rail at a time, each direction alone and both at once. " +
		"busbar starts servers and clients; the ranks meet as for bench pairs, and no ssh is needed between hosts. " +
		"perftest is needed on every host (https://github.com/linux-rdma/perftest), with CUDA for --cuda. " +
		"It names a host, port or link that is slow beside the others, rails below the rate of their links, and hosts with " +
		"fewer active ports. Exit code 1 when one of them is worse than a note. " +
		"Where something stands out, all rounds are measured up to twice more and the best of each counts.\n\n" +
		"Examples:\n" +
		"  srun -N 16 --ntasks-per-node 1 busbar bench rdma\n" +
		"  srun -N 4 --ntasks-per-node 1 busbar bench rdma --verb read --size 64K --qps 4 --devices mlx5_0,mlx5_3 --json\n" +
		"  srun -N 2 --ntasks-per-node 1 busbar bench rdma --cuda -o rdma.jsonl\n" +
		"  BUSBAR_SECRET=… busbar bench rdma -n 2 --rank 0 --meet 10.0.0.1:29500"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchRDMACmd) Run(e *env) error {
	_, err := c.BenchRDMA.RunOn(e.ctx, e.measuring(c.common), gpuPrograms(), query.Ranks[*measure.RDMA]{
		Job: c.Job, Process: e.process(c.common),
		Ready:  func() error { return c.refused(e, c.JSON) },
		Keep:   c.append(e),
		Answer: func(d *measure.RDMA, keep func([]byte) error) error { return c.answer(e, d, keep) },
	})
	return fromRanks(err)
}

func (c *benchRDMACmd) answer(e *env, d *measure.RDMA, keep func([]byte) error) error {
	return wrong(d, keepShown(e, c.common, &c.keepFlag, d, report.BenchRDMA, d.Results, keep))
}

// benchRunCmd measures collectives; it is what bench does when no subcommand is named.
type benchRunCmd struct {
	common
	ranks.Job
	keepFlag
	query.Bench
}

// Help ends with examples.
func (benchRunCmd) Help() string {
	return "Without a command, busbar bench runs the sweep: collectives on real memory, size after size, measured; no " +
		"GPU, MPI or Python is needed. Columns are those of nccl-tests. " +
		"Under torchrun, srun, mpirun or in an indexed Kubernetes job the ranks are the launcher's; alone, the command " +
		"starts -n processes of its own. " +
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
		Keep:   c.append(e),
		Answer: func(d *query.BenchDoc, keep func([]byte) error) error { return c.answer(e, d, keep) },
	}
	if !c.JSON && !c.toStdout() {
		on.Row = func(d *query.BenchDoc) error {
			return report.Print(e.stdout, report.TextOptions{Width: e.screen()}, report.BenchRow, d)
		}
	}
	_, err := c.Bench.RunOn(e.ctx, e.measuring(c.common), on)
	return fromRanks(err)
}

// answer prints what comes after the rows, and keeps them.
func (c *benchRunCmd) answer(e *env, d *query.BenchDoc, keep func([]byte) error) error {
	if err := keepShown(e, c.common, &c.keepFlag, d, report.BenchEnd, d.Results, keep); err != nil {
		return err
	}
	for _, text := range d.Refusals {
		if !c.Quiet {
			fmt.Fprintf(e.stderr, "busbar: %s\n", text)
		}
	}
	return wrong(d, nil)
}

type benchStepCmd struct {
	common
	ranks.Job
	query.BenchStep
	Buckets bool   `help:"List all buckets."`
	Trace   string `placeholder:"FILE" help:"Write the median step as a trace for Perfetto or chrome://tracing."`
}

// Help ends with examples.
func (benchStepCmd) Help() string {
	return "Measures the communication of a step of data-parallel training: the model's real gradients, in the buckets " +
		"of PyTorch's DistributedDataParallel (25 MiB, the first 1 MiB, from the last parameter to the first), " +
		"reduced by all ranks. Compute is replaced by waiting. The result is the exposed communication: how long a step " +
		"continues after its compute has ended.\n\n" +
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
	c.Verbose = c.Buckets
	err = show(e, c.common, d, report.BenchStep)
	if err != nil || c.Trace == "" {
		return err
	}
	var b bytes.Buffer
	if err := report.BenchStepTrace(&b, d); err != nil {
		return err
	}
	return keep(b.Bytes())
}
