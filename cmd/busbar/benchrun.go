package main

import (
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// benchRunCmd measures collectives; it is what bench does when no subcommand is named.
type benchRunCmd struct {
	common
	ranks.Job
	keepFlag
	Op string `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, all_to_all_v (with equal blocks), gather, scatter, sendrecv, hypercube, barrier."`
	//lint:ignore SA5008 the parser of flags takes several
	sweepFlags `set:"least=8" set:"most=64M" set:"factor=2"`
	Redop      string `default:"sum" help:"sum, prod, min, max, avg, mulsum."`
	Root       int    `least:"0" help:"The root of broadcast, reduce, gather, scatter."`
	Algo       string `default:"auto" help:"An algorithm's name (busbar sched --list), or auto: by size."`
	Channels   int    `default:"1" least:"1" help:"Parts of the data that go side by side, with --algo NAME."`
	Compress   string `enum:"none,fp16,bf16,int8" default:"none" help:"How float32 travels: none, fp16, bf16 or int8, also within a host. Bandwidths still count uncompressed bytes."`
	Check      bool   `help:"Check the results; wrong elements are counted, and make the exit code 1."`
	ranks.Elasticity
}

// Help ends with examples.
func (benchRunCmd) Help() string {
	return "Without a command, busbar bench runs the sweep: collectives on real memory, size after size, measured; no GPU, MPI or Python is needed. Columns are those of nccl-tests. " +
		"Under torchrun, srun, mpirun or in an indexed Kubernetes job the ranks are the launcher's; alone, the command starts -n processes of its own. " +
		"Ranks started by hand take --rank, -n and --meet. The job's secret is read from BUSBAR_SECRET.\n\n" +
		"Examples:\n" +
		"  busbar bench -n 4\n" +
		"  busbar bench -n 8 --op all_gather -b 1K -e 256M -f 4 --algo ring --check\n" +
		"  busbar bench -n 4 --transport tcp --json\n" +
		"  busbar bench -n 4 --transport tcp --compress bf16 --check\n" +
		"  busbar bench -n 4 -o before.jsonl\n" +
		"  busbar bench -n 8 --elastic --check\n" +
		"  srun -N 2 --ntasks-per-node 2 busbar bench -b 1M -e 1G\n" +
		"  BUSBAR_SECRET=… busbar bench -n 2 --rank 0 --meet 10.0.0.1:29500"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchRunCmd) Run(e *env) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if err := c.Elasticity.Check(); err != nil {
		return err
	}
	t := ranks.Task{
		Valid: plan.Validate, Memory: plan.Memory, Advice: "a smaller -e, fewer ranks or more hosts",
		Work: func(g *engine.Group, keep func([]byte) error) error {
			e.deliverTo = keep
			return c.measure(e, g, plan)
		},
		Ready: func() error { return c.keepFlag.refused(e, c.JSON) },
		Keep:  func(data []byte) error { return e.addTo(c.Output, data) },
		Same:  fmt.Sprint("bench", c.Op, plan.Sizes, c.Warm, c.Iters, c.Dtype, c.Redop, c.Root, c.Algo, c.Channels, c.Compress, c.Check, c.Elastic),
	}
	if c.Elastic {
		t.MinRanks = c.MinRanks
		t.Memory = func(n int) unit.Bytes { return plan.Memory(n) / 2 * 3 } // contributions are kept, to be repeated
		t.Elastic = func(x *engine.Elastic, newcomer bool, keep func([]byte) error) error {
			e.deliverTo = keep
			return c.measureElastic(e, x, plan, newcomer)
		}
	}
	return e.onRanks(c.common, &c.Job, t)
}

// plan is what the flags ask for.
func (c *benchRunCmd) plan() (bench.Plan, error) {
	p := bench.Plan{Algo: c.Algo, Warm: c.Warm, Iters: c.Iters, Check: c.Check, Params: schedule.Params{Channels: c.Channels}}
	var err error
	if p.Op.Kind, err = coll.ParseKind(c.Op); err != nil {
		return p, fmt.Errorf("--op: %w", err)
	}
	if p.Op.Type, err = coll.ParseDtype(c.Dtype); err != nil {
		return p, fmt.Errorf("--dtype: %w", err)
	}
	if p.Op.Reduce, err = coll.ParseRedop(c.Redop); err != nil {
		return p, fmt.Errorf("--redop: %w", err)
	}
	if p.Wire, err = engine.ParseWire(c.Compress); err != nil {
		return p, fmt.Errorf("--compress: %w", err)
	}
	if err := engine.CanCompress(p.Op, p.Wire); err != nil {
		return p, fmt.Errorf("--compress %s: %w", c.Compress, err)
	}
	if p.Transport, err = engine.ParseTransport(c.Transport); err != nil {
		return p, fmt.Errorf("--transport: %w", err)
	}
	p.Op.Root = c.Root
	p.Sizes, err = c.sizes(p.Op.Kind)
	return p, err
}

// measure runs the plan on a group; rank 0 prints.
func (c *benchRunCmd) measure(e *env, g *engine.Group, p bench.Plan) error {
	out := newBenchOutput(c, e, g, p)
	if err := bench.Run(e.ctx, g, p, out.add); err != nil {
		out.clear()
		return failure.Cannot(err)
	}
	if g.Rank() != 0 {
		return nil
	}
	return out.end()
}

// binary is the name of the program of nccl-tests whose table this is.
func binary(kind coll.Kind) string {
	if b := kind.Binary(); b != "" {
		return b
	}
	return strings.ReplaceAll(kind.String(), "_", "") + "_perf"
}
