package query

import (
	"context"
	"fmt"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/measure"
	"busbar.dev/unit"
)

// Check looks at nodes before a job starts on them: each by itself, then every pair, then all together.
type Check struct {
	Size   Size   `default:"4M" placeholder:"SIZE" help:"Message size for bandwidth (default 4M over TCP, 64M over NCCL)."`
	Warm   int    `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations per pair (default 2)."`
	Iters  int    `name:"iters" default:"10" least:"1" help:"Measured iterations per pair (default 10)."`
	Helper string `name:"busbar-gpu" placeholder:"PATH" help:"The program busbar-gpu, which reads GPUs' state (default: beside busbar, or in PATH). GPUs are only checked with it."`
	Hosts  string `placeholder:"HOSTLIST" help:"Check these hosts through ssh and NCCL, by busbar-gpu on each (default: the ranks of this job, over TCP)."`
	SSH    string `name:"ssh" default:"ssh -o BatchMode=yes" placeholder:"COMMAND" help:"With --hosts: what reaches a host (default ssh -o BatchMode=yes)."`
	// Cluster is what the nodes are: its calibration says what their GPUs and pairs do when they are well.
	Cluster  string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"The cluster that is checked: GPUs, and pairs by NCCL or RDMA, are compared with its predictions, with its calibration where it has one. A node with fewer GPUs, or fewer or slower active RDMA ports, is unhealthy, and so is one whose name the cluster does not have. RDMA ports do not count for a Slurm job on one node (default: GPUs as the catalogue has them, ports as most nodes have them)."`
	By       string `default:"best" enum:"best,rdma,tcp" help:"What pairs of a job's ranks are measured by: best is RDMA where every host has perftest and most have an active port, else TCP (default best)."`
	Perftest string `placeholder:"DIR" help:"Folder of the perftest programs on every host (default: PATH)."`
	Rounds   int    `least:"1" placeholder:"N" help:"Rounds of disjoint pairs, which is how many others each node is measured with (default all up to 128 nodes, 64 of more)."`
	NoLoad   bool   `name:"no-load" help:"Do not run products and copies on GPUs; read their state alone."`
	// Told is told the verdict on its own node by every rank of a job; nil for nobody.
	Told func(measure.CheckNode) `kong:"-"`
}

// checker is how the fields say that nodes are looked at.
func (q *Check) checker(ctx context.Context, env Env, with measure.Programs) (c *measure.Checker, err error) {
	c = &measure.Checker{
		With: with, Helper: q.Helper, NoLoad: q.NoLoad, Rounds: q.Rounds, By: q.By, Perftest: q.Perftest, SSH: q.SSH,
		Told: q.Told, Show: env.progress, Plan: bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Small: 8},
	}
	if c.Plan.Large, err = q.Size.bytes(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	c.Expect, err = q.expects(ctx, env)
	return c, err
}

// expects is what GPUs and pairs are held against.
func (q *Check) expects(ctx context.Context, env Env) (x measure.Expectation, err error) {
	if q.Cluster == "" {
		return x, nil
	}
	c, err := LoadAtLeast(ctx, env, q.Cluster, 1)
	return measure.NewExpectation(c), err
}

// RunOn checks the nodes of a job, one rank each, over TCP.
func (q Check) RunOn(ctx context.Context, env Env, with measure.Programs,
	on Ranks[*measure.Check],
) (doc *measure.Check, err error) {
	defer begin(&q, &env, &doc, &err)()
	c, err := q.checker(ctx, env, with)
	if err != nil {
		return nil, err
	}
	t := on.task()
	t.Valid = func(n int) error {
		if n == 1 { // it has no pairs, and is looked at by itself
			return nil
		}
		return c.Plan.Validate(n)
	}
	t.Memory, t.Advice = func(int) unit.Bytes { return c.Plan.Memory() }, "a smaller --size or fewer nodes"
	t.Same = fmt.Sprint("check", c.Plan)
	t.Star = func(s *engine.Star, keep func([]byte) error) error {
		d, err := c.Ranks(ctx, s)
		if err != nil || d == nil {
			return err
		}
		doc = d
		return on.answer(d, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

// RunWith checks hosts through ssh: their GPUs' state, then every pair of hosts by NCCL, one GPU each.
func (q Check) RunWith(ctx context.Context, env Env, with measure.Programs) (doc *measure.Check, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.Size == "4M" {
		q.Size = "64M"
	}
	c, err := q.checker(ctx, env, with)
	if err != nil {
		return nil, err
	}
	if c.Hosts, err = parseHosts(q.Hosts); err != nil {
		return nil, err
	}
	return c.OverSSH(ctx)
}
