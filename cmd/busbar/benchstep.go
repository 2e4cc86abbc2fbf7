package main

import (
	"fmt"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/schedule"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

type benchStepCmd struct {
	common
	ranks.Job
	Model    string        `short:"m" required:"" placeholder:"NAME" help:"The model whose gradients are reduced: a name (busbar models), or dimensions such as layers=4,hidden=512."`
	Layout   string        `short:"l" placeholder:"NxG" help:"Nodes and ranks of each; sets -n, and the groups of algorithms in levels."`
	Overlap  string        `enum:"on,off,both" default:"both" help:"on: buckets are reduced while the backward pass goes on; off: after it; both: one after the other."`
	Compute  time.Duration `least:"1us" help:"What a step computes, a third of it forwards; default: the model's operations at --speed."`
	Batch    int64         `default:"1" least:"1" most:"1048576" help:"Sequences of a rank in a step, for the default of --compute."`
	Seq      int64         `least:"1" most:"16777216" placeholder:"TOKENS" help:"Tokens of a sequence, for the default of --compute; default: the model's."`
	Speed    float64       `default:"150" least:"0.001" most:"1000000" placeholder:"TFLOPS" help:"What a rank computes, for the default of --compute; 150 is about half the dense bf16 peak of an A100 (312)."`
	Dtype    string        `short:"d" default:"float" help:"Of the gradients: float, bfloat16, half."`
	Compress string        `enum:"none,fp16,bf16,int8" default:"none" help:"How float32 travels: none, fp16, bf16 or int8, also within a host."`
	First    string        `name:"first-bucket" default:"1M" placeholder:"SIZE" help:"When the first bucket is full."`
	Cap      string        `name:"bucket-cap" default:"25M" placeholder:"SIZE" help:"When the other buckets are full."`
	Algo     string        `default:"auto" help:"An algorithm's name (busbar sched --list), or auto: by size."`
	Channels int           `default:"1" least:"1" help:"Parts of the data that go side by side, with --algo NAME."`
	Warm     int           `short:"w" name:"warmup" default:"1" least:"0" help:"Steps before those that count."`
	Iters    int           `name:"iters" default:"5" least:"1" help:"Steps that count."`
	Buckets  bool          `help:"List all buckets."`
	Trace    string        `placeholder:"FILE" help:"Write the median step as a trace for Perfetto or chrome://tracing."`
}

// Help ends with examples.
func (benchStepCmd) Help() string {
	return "Measures the communication of a step of data-parallel training: the model's real gradients, in the buckets of PyTorch's DistributedDataParallel (25 MiB, the first 1 MiB, from the last parameter to the first), " +
		"reduced by all ranks. Computing is only waited for. What counts is the exposed communication: how long a step goes on after it has computed.\n\n" +
		"Examples:\n" +
		"  busbar bench step --model gpt2 -n 2 --iters 3\n" +
		"  busbar bench step --model vit-b16 --layout 1x2 --compute 200ms --overlap on --json\n" +
		"  srun -N 2 --ntasks-per-node 2 busbar bench step --model gpt2-large --dtype bfloat16"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchStepCmd) Run(e *env) error {
	m, err := query.LoadModel(e.query(c.common), c.Model)
	if err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	p, err := c.plan(m)
	if err != nil {
		return err
	}
	trace := func(data []byte) error {
		return e.writeFile(c.Trace, bytesOf(data))
	}
	return e.onRanks(c.common, &c.Job, ranks.Task{
		Valid: p.Validate, Memory: func(int) unit.Bytes { return p.Memory() }, Advice: "fewer ranks, --dtype bfloat16, a smaller model or more hosts",
		Ready: func() error { return e.writable(c.Trace) },
		Work:  func(g *engine.Group, keep func([]byte) error) error { return c.measure(e, g, m, p, keep) },
		Keep:  trace,
		Same:  fmt.Sprint("step", m.Name, m.Params(), c.Overlap, c.Compute, c.Batch, c.Seq, c.Speed, c.Dtype, c.Compress, c.First, c.Cap, c.Algo, c.Channels, c.Warm, c.Iters),
	})
}

// plan is what the flags ask for.
func (c *benchStepCmd) plan(m *workload.Model) (p bench.StepPlan, err error) {
	p = bench.StepPlan{Algo: c.Algo, Params: schedule.Params{Channels: c.Channels}, Warm: c.Warm, Iters: c.Iters}
	if p.Type, err = coll.ParseDtype(c.Dtype); err != nil {
		return p, fmt.Errorf("--dtype: %w", err)
	}
	if p.Type != coll.Float && p.Type != coll.BFloat16 && p.Type != coll.Half {
		return p, fmt.Errorf("--dtype %s: gradients are float, bfloat16 or half", c.Dtype)
	}
	if p.Wire, err = engine.ParseWire(c.Compress); err != nil {
		return p, fmt.Errorf("--compress: %w", err)
	}
	for _, x := range []struct {
		flag, text string
		to         *unit.Bytes
	}{{"--first-bucket", c.First, &p.First}, {"--bucket-cap", c.Cap, &p.Cap}} {
		if *x.to, err = unit.ParseBytes(x.text); err != nil {
			return p, fmt.Errorf("%s: %w", x.flag, err)
		}
		if *x.to < 1 || *x.to > 16*unit.GiB {
			return p, fmt.Errorf("%s %s: expected up to 16 GiB", x.flag, x.text)
		}
	}
	if c.Layout != "" {
		nodes, per, err := predict.ParseLayout(c.Layout)
		switch {
		case err != nil:
			return p, err
		case c.Ranks > 0 && c.Ranks != nodes*per:
			return p, fmt.Errorf("-n %d and --layout %s; give one of them", c.Ranks, c.Layout)
		}
		c.Ranks = nodes * per
		for k := range nodes {
			var group []int
			for i := range per {
				group = append(group, k*per+i)
			}
			p.Params.Groups = append(p.Params.Groups, group)
		}
	}
	return p, p.SetModel(m, bench.Compute{Batch: c.Batch, Seq: c.Seq, Speed: c.Speed, Time: c.Compute})
}

// measure takes steps on a group; rank 0 prints.
func (c *benchStepCmd) measure(e *env, g *engine.Group, m *workload.Model, p bench.StepPlan, keep func([]byte) error) error {
	out := newStepOutput(c, e, g, m, p)
	s, err := bench.NewStepper(g, p)
	if err != nil {
		return failure.Cannot(err)
	}
	for _, overlap := range []bool{false, true} {
		if c.Overlap == "on" && !overlap || c.Overlap == "off" && overlap {
			continue
		}
		t, err := s.Run(e.ctx, overlap, func(k int) { out.progress(overlap, k) })
		out.clear()
		if err != nil {
			return failure.Cannot(err)
		}
		out.add(overlap, t)
	}
	if g.Rank() != 0 {
		return nil
	}
	if err := out.print(); err != nil || c.Trace == "" {
		return err
	}
	data, err := out.trace()
	if err != nil {
		return err
	}
	return keep(data)
}
