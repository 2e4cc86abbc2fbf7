package query

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/failure"
	"busbar.dev/predict"
	"busbar.dev/schedule"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// BenchStep measures the communication of a step of data-parallel training: a model's gradients in buckets, reduced by
// all ranks. Computing is only waited for.
type BenchStep struct {
	Model    string        `short:"m" required:"" names:"model" placeholder:"NAME" help:"Model whose gradients are reduced: a name (see busbar list models), or dimensions such as layers=4,hidden=512."`
	Layout   Layout        `short:"l" placeholder:"NxG" help:"Layout, NODESxRANKS; sets -n and the groups of hierarchical algorithms."`
	Overlap  string        `enum:"on,off,both" default:"both" help:"Overlap: on reduces buckets during the backward pass, off after it, both measures each (default both)."`
	Compute  time.Duration `least:"1us" help:"Compute time of a step, a third of it forward (default: the model's FLOPs at --speed)."`
	Batch    int64         `default:"1" least:"1" most:"1048576" help:"Sequences per rank and step, for the default of --compute."`
	Seq      int64         `least:"1" most:"16777216" placeholder:"TOKENS" help:"Sequence length in tokens, for the default of --compute (default: the model's)."`
	Speed    float64       `default:"150" least:"0.001" most:"1000000" placeholder:"TFLOPS" help:"TFLOPS per rank, for the default of --compute; 150 is about half the dense bf16 peak of an A100 (312)."`
	Dtype    Dtype         `short:"d" default:"float" help:"Data type of the gradients: float, bfloat16, half (default float)."`
	First    Size          `name:"first-bucket" default:"1M" placeholder:"SIZE" help:"Size of the first bucket (default 1M)."`
	Cap      Size          `name:"bucket-cap" default:"25M" placeholder:"SIZE" help:"Size of the other buckets (default 25M)."`
	Algo     string        `default:"auto" help:"Algorithm (see busbar list algorithms), or auto to choose by size (default auto)."`
	Channels int           `default:"1" least:"1" help:"Number of channels, with --algo NAME (default 1)."`
	Warm     int           `short:"w" name:"warmup" default:"1" least:"0" help:"Warm-up steps (default 1)."`
	Iters    int           `name:"iters" default:"5" least:"1" help:"Measured steps (default 5)."`
}

// Run measures between ranks of this process, over plain memory.
func (q BenchStep) Run(ctx context.Context, env Env) (*BenchStepDoc, error) {
	return alone(ctx, env, q, BenchStep.RunOn)
}

// RunOn measures on the ranks of a job. All fields count as they are: a Warm of 0 is none.
func (q BenchStep) RunOn(ctx context.Context, env Env, on Ranks[*BenchStepDoc]) (doc *BenchStepDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	m, err := LoadModel(env, q.Model)
	if err != nil {
		return nil, fmt.Errorf("--model: %w", err)
	}
	p, err := q.plan(m, &on.Job.Ranks)
	if err != nil {
		return nil, err
	}
	t := on.task()
	t.Valid, t.Memory, t.Advice = p.Validate, func(int) unit.Bytes { return p.Memory() },
		"fewer ranks, --dtype bfloat16, a smaller model or more hosts"
	t.Same = fmt.Sprint("step", m.Name, m.Params(), q)
	t.Work = func(g *engine.Group, keep func([]byte) error) error {
		d, err := q.measure(ctx, &env, g, m, p)
		if err != nil || d == nil {
			return err
		}
		doc = d
		return on.answer(doc, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

// measure takes steps on a group; rank 0 gets the document.
func (q *BenchStep) measure(ctx context.Context, env *Env, g *engine.Group, m *workload.Model,
	p bench.StepPlan,
) (*BenchStepDoc, error) {
	d := newBenchStepDoc(g, m, p)
	if g.Rank() == 0 {
		env.progress("memory for the gradients of " + m.Name)
	}
	s, err := bench.NewStepper(g, p)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	for _, overlap := range []string{"off", "on"} {
		if q.Overlap != "both" && q.Overlap != overlap {
			continue
		}
		times, err := s.Run(ctx, overlap == "on", func(k int) {
			env.progress(fmt.Sprintf("%s, overlap %s, step %d of %d", m.Name, overlap, k+1, p.Warm+p.Iters))
		})
		if g.Rank() == 0 {
			env.progress("")
		}
		if err != nil {
			return nil, failure.Cannot(err)
		}
		if times != nil {
			d.Rows = append(d.Rows, *times)
		}
	}
	if g.Rank() != 0 {
		return nil, nil
	}
	return d, nil
}

// plan is what the fields ask for; the layout says how many ranks there are.
func (q *BenchStep) plan(m *workload.Model, ranks *int) (p bench.StepPlan, err error) {
	p = bench.StepPlan{Algo: q.Algo, Params: schedule.Params{Channels: q.Channels}, Warm: q.Warm, Iters: q.Iters}
	if p.Type, err = q.Dtype.dtype(); err != nil {
		return p, err
	}
	if p.Type != coll.Float && p.Type != coll.BFloat16 && p.Type != coll.Half {
		return p, fmt.Errorf("--dtype %s: gradients are float, bfloat16 or half", q.Dtype)
	}
	for _, x := range []struct {
		flag, text string
		to         *unit.Bytes
	}{{"--first-bucket", string(q.First), &p.First}, {"--bucket-cap", string(q.Cap), &p.Cap}} {
		if *x.to, err = unit.ParseBytes(x.text); err != nil {
			return p, fmt.Errorf("%s: %w", x.flag, err)
		}
		if *x.to < 1 || *x.to > 16*unit.GiB {
			return p, fmt.Errorf("%s %s: expected up to 16 GiB", x.flag, x.text)
		}
	}
	if q.Layout != "" {
		nodes, per, err := predict.ParseLayout(string(q.Layout))
		switch {
		case err != nil:
			return p, err
		case *ranks > 0 && *ranks != nodes*per:
			return p, fmt.Errorf("-n %d and --layout %s; give one of them", *ranks, q.Layout)
		}
		*ranks = nodes * per
		if p.Params.Groups, err = equalGroups(per, *ranks); err != nil {
			return p, err
		}
	}
	return p, p.SetModel(m, bench.Compute{Batch: q.Batch, Seq: q.Seq, Speed: q.Speed, Time: q.Compute})
}

// BenchStepDoc is the answer of BenchStep.
type BenchStepDoc struct {
	Dtype         string            `json:"dtype"`
	GradientBytes unit.Bytes        `json:"gradient_bytes"` // of all tensors
	Hosts         []string          `json:"hosts"`
	Iters         int               `json:"iters"`
	Model         string            `json:"model"`
	Title         string            `json:"title"` // of the model
	Params        int64             `json:"params"`
	Compute       float64           `json:"planned_compute_s"` // of a step
	Forward       float64           `json:"planned_forward_s"` // of that
	Ranks         int               `json:"ranks"`
	Rows          []bench.StepTimes `json:"rows"`
	Tensors       int               `json:"tensors"`
	Transport     engine.Transport  `json:"transport"`
	Warmup        int               `json:"warmup"`
	Noted
}

func newBenchStepDoc(g *engine.Group, m *workload.Model, p bench.StepPlan) *BenchStepDoc {
	return &BenchStepDoc{
		Model: m.Name, Title: m.Title, Params: m.Params(), Tensors: len(p.Grads), GradientBytes: p.Memory(),
		Dtype: p.Type.String(),
		Ranks: g.Size(), Hosts: g.Hosts(), Transport: g.Transport(), Iters: p.Iters, Warmup: p.Warm,
		Compute: p.Compute().Seconds(), Forward: p.Forward.Seconds(), Rows: []bench.StepTimes{},
	}
}
