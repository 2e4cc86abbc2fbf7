package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/stats"
	"busbar.dev/lab"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// steps measures training steps on the layouts and predicts them.
func (c *Check) steps(ctx context.Context, env Env) (*Steps, error) {
	c.Cluster = cmp.Or(c.Cluster, "baskerville:4")
	if c.Shrink < 1 || c.Shrink > 1e6 || c.Jobs != 1 {
		return nil, fmt.Errorf("--shrink %d --jobs %d: expected 1 to 1000000, and one job", c.Shrink, c.Jobs)
	}
	s, err := c.scenario(&env)
	if err != nil {
		return nil, err
	}
	s.algos = []string{c.StepAlgo}
	trials, skipped, err := s.trials()
	if err != nil {
		return nil, err
	}
	var wires []engine.Wire
	for _, w := range strings.Split(c.Compress, ",") {
		x, err := engine.ParseWire(strings.TrimSpace(w))
		if err != nil {
			return nil, fmt.Errorf("--compress: %w", err)
		}
		wires = append(wires, x)
	}
	d := &Steps{Verdict: c.verdict(), Shrink: c.Shrink, Rows: []StepRow{}, Skipped: append([]string{}, skipped...)}
	if err := c.stepsIn(ctx, &env, s, trials, wires, d); err != nil {
		return nil, err
	}
	if len(d.Rows) == 0 {
		return nil, fmt.Errorf("nothing to measure: %s", strings.Join(skipped, "; "))
	}
	var points []Point
	for i := range d.Rows {
		points = append(points, d.Rows[i].Point)
	}
	if d.Score = rate(points, orderMatters); d.Score.Points == 0 {
		return nil, failure.Cannot(fmt.Errorf("all %d measurements differ from step to step by more than %.0f%%; the machine is too busy for a check", d.Score.Noisy, c.Noise*100))
	}
	return d, nil
}

// stepsIn makes the lab and measures all layouts and compressions.
func (c *Check) stepsIn(ctx context.Context, env *Env, s scenario, trials []Trial, wires []engine.Wire, d *Steps) error {
	plan, err := c.stepPlan(env)
	if err != nil {
		return err
	}
	return c.inLab(ctx, env, s, nil, func(x *session) error {
		p := x.lab.State.Plan
		d.Model, d.Scale, d.Inside = c.Step, p.Scale, p.Inside
		d.Longer = c.stretch(&plan, p.Scale)
		d.Compute = unit.Seconds(plan.Compute().Seconds())
		for _, t := range trials {
			for _, w := range wires {
				plan.Algo, plan.Params, plan.Wire = t.Algo, t.Params, w
				rows, err := x.stepRows(&t, plan, p.Slots(t.Nodes, t.Each))
				if err != nil {
					return err
				}
				d.Rows = append(d.Rows, rows...)
			}
		}
		return nil
	})
}

// stepPlan is a step of the model's own size.
func (c *Check) stepPlan(env *Env) (bench.StepPlan, error) {
	m, err := env.Model(c.Step)
	if err != nil {
		return bench.StepPlan{}, fmt.Errorf("--step: %w", err)
	}
	p := bench.StepPlan{Type: coll.Float, First: unit.MiB, Cap: 25 * unit.MiB, Algo: "ring", Params: schedule.Params{Channels: 1}, Warm: 1, Iters: 3}
	if c.Iters > 0 {
		p.Iters = c.Iters
	}
	return p, p.SetModel(m, bench.Compute{Batch: c.Batch, Speed: c.Speed})
}

// stretch makes a step's bytes smaller and its computing longer, as much longer as transfers become: their bytes are
// divided by Shrink and the rates by the scale. It returns that factor.
func (c *Check) stretch(p *bench.StepPlan, scale lab.Scale) (longer float64) {
	longer = 1 / (scale.Value() * float64(c.Shrink))
	less := func(n unit.Bytes) unit.Bytes { return max((n/unit.Bytes(c.Shrink)+3)/4*4, 4) }
	more := func(d time.Duration) time.Duration { return time.Duration(math.Round(float64(d) * longer)) }
	for i := range p.Grads {
		p.Grads[i].Bytes, p.Grads[i].After = less(p.Grads[i].Bytes), more(p.Grads[i].After)
	}
	p.First, p.Cap, p.Forward = less(p.First), less(p.Cap), more(p.Forward)
	return longer
}

// stepRows measures and predicts steps without and with overlap.
func (x *session) stepRows(t *Trial, plan bench.StepPlan, slots []lab.Slot) ([]StepRow, error) {
	defer x.env.Progress(fmt.Sprintf("steps on %s, compression %s", t.Layout, plan.Wire))()
	if err := plan.Validate(t.Nodes * t.Each); err != nil {
		return nil, err
	}
	rows, err := x.run(slots, work{Transport: x.s.transport, Step: &stepTask{Plan: plan, Overlap: []bool{false, true}}})
	if err != nil {
		return nil, err
	}
	var out []StepRow
	for _, r := range rows {
		if r.Step == nil || len(r.Step.Steps) == 0 {
			continue
		}
		end, limit, err := x.predictStep(t, plan, slots, r.Step.Overlap)
		if err != nil {
			return nil, err
		}
		row := StepRow{Compress: plan.Wire.String(), Overlap: r.Step.Overlap, Compute: unit.Seconds(plan.Compute().Seconds())}
		overlap := "off"
		if row.Overlap {
			overlap = "on"
		}
		slices.Sort(r.Step.Steps)
		low, mid := r.Step.Steps[0].Seconds(), stats.Nearest(r.Step.Steps, 0.5).Seconds()
		row.Point = Point{
			Layout: t.Layout, Op: "step", Algo: fmt.Sprintf("%s, overlap %s", plan.Wire, overlap), Size: plan.Memory(),
			Measured: unit.Seconds(mid), Predicted: end, Error: end.Seconds()/mid - 1, Noise: mid/low - 1, Limit: limit, TooNoisy: mid/low-1 > x.check.Noise,
		}
		row.Exposed, row.PredictedExposed = unit.Seconds(r.Step.Exposed.Seconds()), end-row.Compute
		out = append(out, row)
	}
	if len(out) != 2 {
		return nil, failure.Cannot(errors.New("the ranks reported no steps"))
	}
	return out, nil
}

// predictStep plays the buckets of a step: each begins when the backward pass has filled it,
// or all of them behind it.
func (x *session) predictStep(t *Trial, plan bench.StepPlan, slots []lab.Slot, overlap bool) (unit.Time, string, error) {
	jobs, err := stepJobs(t, plan, overlap)
	if err != nil {
		return 0, "", err
	}
	w := x.wiring(slots)
	model := x.machine.Model(plan.Memory() * unit.Bytes(len(slots)))
	ends, busy, err := model.Once(x.ctx, w, jobs)
	if err != nil {
		return 0, "", err
	}
	end := unit.Seconds(plan.Compute().Seconds())
	for _, t := range ends {
		end = max(end, t)
	}
	if busy < 0 { // no link carries for half of the step
		return end, "computing", nil
	}
	return end, w.Name(busy), nil
}

// stepJobs are the buckets of a step as jobs of the simulator.
func stepJobs(t *Trial, plan bench.StepPlan, overlap bool) ([]sim.Job, error) {
	s, err := schedule.Build(coll.AllReduce, t.Algo, t.Params)
	if err != nil {
		return nil, err
	}
	var ranks []int
	for r := range t.Params.Ranks {
		ranks = append(ranks, r)
	}
	how := engine.Bucketing{First: plan.First, Cap: plan.Cap}
	for _, g := range plan.Grads {
		how.Params = append(how.Params, g.Bytes)
	}
	at := plan.Forward
	var jobs []sim.Job
	for _, params := range how.Plan() {
		j := sim.Job{Schedule: s, Ranks: ranks, Op: coll.Op{Kind: coll.AllReduce, Type: coll.Float}}
		for _, i := range params {
			j.Op.Bytes += plan.Grads[i].Bytes
			at += plan.Grads[i].After
		}
		switch plan.Wire {
		case engine.FP16, engine.BF16:
			j.Op.Type, j.Op.Bytes = coll.Half, j.Op.Bytes/2
		case engine.Int8: // and a scale of four bytes for 256 elements
			j.Op.Type, j.Op.Bytes = coll.Int8, j.Op.Bytes/4*65/64
		}
		if j.Start = unit.Seconds(at.Seconds()); !overlap {
			j.Start = unit.Seconds(plan.Compute().Seconds())
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
