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
}

// benchGPUAllCmd is what can be measured of GPUs: collectives, when nothing else is named.
type benchGPUAllCmd struct {
	Run   benchGPUCmd      `cmd:"" name:"run" default:"withargs" hidden:"" help:"Measure NCCL's collectives."`
	Pairs benchGPUPairsCmd `cmd:"" help:"Measure every pair of GPUs by NCCL's sends and receives."`
	Node  benchGPUNodeCmd  `cmd:"" help:"Measure everything inside this node: memory, copies, matrix products, pairs, collectives."`
}

type benchGPUCmd struct {
	common
	settings
	keepFlag
	query.BenchGPU
	DryRun bool `help:"Print the commands without running them."`
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
	settings
	query.BenchGPUPairs
	SVG string `name:"output" short:"o" placeholder:"FILE.svg" help:"Draw the bandwidths as a heat map."`
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
	return like.answer(e, d, e.into(c.SVG))
}

type benchGPUNodeCmd struct {
	common
	settings
	keepFlag
	query.BenchGPUNode
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
	settings
	ranks.Job
	query.BenchPairs
	SVG string `name:"output" short:"o" placeholder:"FILE.svg" help:"Draw the bandwidths as a heat map."`
}

// Run measures as a rank, or starts ranks that do.
func (c *benchPairsCmd) Run(e *env) error {
	ready := func() error { return e.drawable(c.SVG) }
	_, err := c.BenchPairs.RunOn(e.ctx, e.measuring(c.common),
		onRanks(e, c.common, c.Job, ready, e.into(c.SVG), c.answer))
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
	settings
	ranks.Job
	keepFlag
	query.BenchRDMA
}

// Run measures as a rank, or starts ranks that do.
func (c *benchRDMACmd) Run(e *env) error {
	ready := func() error { return c.refused(e, c.JSON) }
	_, err := c.BenchRDMA.RunOn(e.ctx, e.measuring(c.common), gpuPrograms(),
		onRanks(e, c.common, c.Job, ready, c.append(e), c.answer))
	return fromRanks(err)
}

func (c *benchRDMACmd) answer(e *env, d *measure.RDMA, keep func([]byte) error) error {
	return wrong(d, keepShown(e, c.common, &c.keepFlag, d, report.BenchRDMA, d.Results, keep))
}

// benchRunCmd measures collectives; it is what bench does when no subcommand is named.
type benchRunCmd struct {
	common
	settings
	ranks.Job
	keepFlag
	query.Bench
}

// Run measures as a rank, or starts ranks that do.
func (c *benchRunCmd) Run(e *env) error {
	ready := func() error { return c.refused(e, c.JSON) }
	on := onRanks(e, c.common, c.Job, ready, c.append(e), c.answer)
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
		c.say(e, "busbar: %s", text)
	}
	return wrong(d, nil)
}

type benchStepCmd struct {
	common
	settings
	ranks.Job
	query.BenchStep
	Trace string `name:"output" short:"o" placeholder:"FILE.trace.json" help:"Write the median step as a trace for Perfetto or chrome://tracing."`
}

// Run measures as a rank, or starts ranks that do.
func (c *benchStepCmd) Run(e *env) error {
	ready := func() error { return e.writable(c.Trace) }
	_, err := c.BenchStep.RunOn(e.ctx, e.measuring(c.common),
		onRanks(e, c.common, c.Job, ready, e.into(c.Trace), c.answer))
	return fromRanks(err)
}

func (c *benchStepCmd) answer(e *env, d *query.BenchStepDoc, keep func([]byte) error) error {
	err := show(e, c.common, d, report.BenchStep)
	if err != nil || c.Trace == "" {
		return err
	}
	var b bytes.Buffer
	if err := report.BenchStepTrace(&b, d); err != nil {
		return err
	}
	return keep(b.Bytes())
}
