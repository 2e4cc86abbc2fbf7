package main

import (
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
	"busbar.dev/lab"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// labStepTask is what ranks of lab check --step do.
type labStepTask struct {
	Plan    bench.StepPlan `json:"plan"`
	Overlap []bool         `json:"overlap"`
}

// labStepTimes is what rank 0 reports of steps.
type labStepTimes struct {
	Overlap  bool            `json:"overlap"`
	Steps    []time.Duration `json:"steps_ns"`
	Exposed  time.Duration   `json:"exposed_ns"`
	Computed time.Duration   `json:"computed_ns"`
}

// labStepRow is one way to take steps on a layout.
type labStepRow struct {
	lab.Point
	Compress         string    `json:"compress"`
	Overlap          bool      `json:"overlap"`
	Compute          unit.Time `json:"compute_us"`
	Exposed          unit.Time `json:"exposed_us"`
	PredictedExposed unit.Time `json:"predicted_exposed_us"`
}

// steps measures training steps on the layouts and predicts them.
func (c *labCheckCmd) steps(e *env) error {
	if c.Cluster == "" {
		c.Cluster = "baskerville:4"
	}
	if c.Points != "" {
		return errors.New("-o is for collectives, not for --step")
	}
	if c.Shrink < 1 || c.Shrink > 1e6 || c.Jobs != 1 {
		return fmt.Errorf("--shrink %d --jobs %d: expected 1 to 1000000, and one job", c.Shrink, c.Jobs)
	}
	list, err := c.scenarios(e)
	if err != nil {
		return err
	}
	s := list[0]
	s.algos = []string{c.StepAlgo}
	trials, skipped, err := s.trials()
	if err != nil {
		return err
	}
	var wires []engine.Wire
	for _, w := range strings.Split(c.Compress, ",") {
		x, err := engine.ParseWire(strings.TrimSpace(w))
		if err != nil {
			return fmt.Errorf("--compress: %w", err)
		}
		wires = append(wires, x)
	}
	d := labStepDoc{Shrink: c.Shrink, Rows: []labStepRow{}, Skipped: append([]string{}, skipped...), labVerdict: labVerdict{MaxMedian: c.Median, MaxWorst: c.Worst, MaxNoise: c.Noise}}
	if err := c.stepsIn(e, s, trials, wires, &d); err != nil {
		return err
	}
	if len(d.Rows) == 0 {
		return fmt.Errorf("nothing to measure: %s", strings.Join(skipped, "; "))
	}
	var points []lab.Point
	for i := range d.Rows {
		points = append(points, d.Rows[i].Point)
	}
	if d.Score = lab.Rate(points, orderMatters); d.Score.Points == 0 {
		return failure.Cannot(fmt.Errorf("all %d measurements differ from step to step by more than %.0f%%; the machine is too busy for a check", d.Score.Noisy, c.Noise*100))
	}
	if c.JSON {
		err = writeIndented(e.stdout, d)
	} else {
		err = printLabSteps(e, &d)
	}
	if err == nil && (d.Score.Median > c.Median || d.Score.Worst > c.Worst || len(d.Score.Wrong) > 0) {
		return errWrong
	}
	return err
}

// stepsIn makes the lab and goes through layouts and ways to take steps.
func (c *labCheckCmd) stepsIn(e *env, s scenario, trials []lab.Trial, wires []engine.Wire, d *labStepDoc) error {
	plan, err := c.stepPlan()
	if err != nil {
		return err
	}
	return c.inLab(e, s, nil, &labCheckDoc{}, func(x *labChecker) error {
		p := x.l.State.Plan
		// Bytes are divided by Shrink and rates by the scale: that makes transfers longer by the
		// second over the first, and so computing must be.
		longer := 1 / (p.Scale.Value() * float64(c.Shrink))
		stretch(&plan, c.Shrink, longer)
		d.Model, d.Scale, d.Longer, d.Inside = c.Step, p.Scale, longer, p.Inside
		d.Compute = unit.Seconds(plan.Compute().Seconds())
		for _, t := range trials {
			for _, w := range wires {
				plan.Algo, plan.Params, plan.Wire = t.Algo, t.Params, w
				rows, err := x.stepRows(&t, plan, p.Seats(t.Nodes, t.Each))
				if err != nil {
					return err
				}
				d.Rows = append(d.Rows, rows...)
			}
		}
		return nil
	})
}

// stepPlan is a step as bench step takes it, of the model's own size.
func (c *labCheckCmd) stepPlan() (bench.StepPlan, error) {
	m, err := new(env).modelOf(c.Step)
	if err != nil {
		return bench.StepPlan{}, fmt.Errorf("--step: %w", err)
	}
	b := benchStepCmd{Batch: c.Batch, Speed: c.Speed, Dtype: "float", Compress: "none", First: "1M", Cap: "25M", Algo: "ring", Channels: 1, Warm: 1, Iters: 3}
	if c.Iters > 0 {
		b.Iters = c.Iters
	}
	return b.plan(m)
}

// stretch makes a step's bytes smaller and its computing longer.
func stretch(p *bench.StepPlan, shrink int, longer float64) {
	less := func(n unit.Bytes) unit.Bytes { return max((n/unit.Bytes(shrink)+3)/4*4, 4) }
	more := func(d time.Duration) time.Duration { return time.Duration(math.Round(float64(d) * longer)) }
	for i := range p.Grads {
		p.Grads[i].Bytes, p.Grads[i].After = less(p.Grads[i].Bytes), more(p.Grads[i].After)
	}
	p.First, p.Cap, p.Forward = less(p.First), less(p.Cap), more(p.Forward)
}

// stepRows measures and predicts steps without and with overlap.
func (x *labChecker) stepRows(t *lab.Trial, plan bench.StepPlan, seats []lab.Seat) ([]labStepRow, error) {
	defer x.e.progress(x.c.common, fmt.Sprintf("steps on %s, compression %s", t.Layout, plan.Wire))()
	if err := plan.Validate(t.Nodes * t.Each); err != nil {
		return nil, err
	}
	rows, err := x.run(seats, labWork{Transport: x.s.transport, Step: &labStepTask{Plan: plan, Overlap: []bool{false, true}}})
	if err != nil {
		return nil, err
	}
	var out []labStepRow
	for _, r := range rows {
		if r.Step == nil || len(r.Step.Steps) == 0 {
			continue
		}
		end, limit, err := x.predictStep(t, plan, seats, r.Step.Overlap)
		if err != nil {
			return nil, err
		}
		row := labStepRow{Compress: plan.Wire.String(), Overlap: r.Step.Overlap, Compute: unit.Seconds(plan.Compute().Seconds())}
		slices.Sort(r.Step.Steps)
		low, mid := r.Step.Steps[0].Seconds(), r.Step.Steps[len(r.Step.Steps)/2].Seconds()
		row.Point = lab.Point{
			Layout: t.Layout, Op: "step", Algo: fmt.Sprintf("%s, overlap %s", plan.Wire, onOff(r.Step.Overlap)), Size: gradBytes(&plan),
			Measured: unit.Seconds(mid), Predicted: end, Error: end.Seconds()/mid - 1, Noise: mid/low - 1, Limit: limit, TooNoisy: mid/low-1 > x.c.Noise,
		}
		row.Exposed, row.PredictedExposed = unit.Seconds(r.Step.Exposed.Seconds()), end-row.Compute
		out = append(out, row)
	}
	if len(out) != 2 {
		return nil, failure.Cannot(errors.New("the ranks reported no steps"))
	}
	return out, nil
}

func gradBytes(p *bench.StepPlan) (sum unit.Bytes) {
	for _, g := range p.Grads {
		sum += g.Bytes
	}
	return sum
}

// predictStep plays the buckets of a step: each begins when the backward pass has filled it,
// or all of them behind it.
func (x *labChecker) predictStep(t *lab.Trial, plan bench.StepPlan, seats []lab.Seat, overlap bool) (unit.Time, string, error) {
	jobs, err := stepJobs(t, plan, overlap)
	if err != nil {
		return 0, "", err
	}
	w := x.l.State.Plan.Wire(seats)
	w.TCP, w.Slow = w.TCP || x.s.transport == engine.TCP, x.slow
	model := x.here.Model(gradBytes(&plan) * unit.Bytes(len(seats)))
	ends, busy, err := model.Once(x.e.ctx, w, jobs)
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
func stepJobs(t *lab.Trial, plan bench.StepPlan, overlap bool) ([]sim.Job, error) {
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
