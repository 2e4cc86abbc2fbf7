package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/stats"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Grad is a parameter's gradient in a step.
type Grad struct {
	Bytes unit.Bytes
	// After is what the backward pass computes for it, from the gradient that comes before it
	// (which is the next parameter's) on.
	After time.Duration
}

// StepPlan is a step of data-parallel training whose computing is only waited for: a forward
// pass, then a backward pass in which gradients come one after the other, the last parameter's
// first, and are reduced in buckets.
type StepPlan struct {
	Grads      []Grad // in the order of the parameters
	Forward    time.Duration
	Type       coll.Dtype
	First, Cap unit.Bytes // of buckets; 0 is PyTorch's 1 MiB and 25 MiB
	Algo       string     // "" or auto is the engine's choice by size
	Params     schedule.Params
	Warm       int
	Iters      int
}

// Validate reports what makes a plan impossible on n ranks.
func (p *StepPlan) Validate(n int) error {
	switch {
	case len(p.Grads) == 0:
		return fmt.Errorf("no gradients")
	case p.Iters < 1 || p.Iters > 1<<16 || p.Warm < 0 || p.Warm > 1<<16:
		return fmt.Errorf("%d steps after %d to warm up; 1 to %d and 0 to %d are possible", p.Iters, p.Warm, 1<<16, 1<<16)
	case p.Compute() > time.Hour:
		return fmt.Errorf("a step computes for %v; at most an hour", p.Compute())
	}
	op := coll.Op{Kind: coll.AllReduce, Type: p.Type, Reduce: coll.Avg, Bytes: engine.BucketCap}
	s, err := p.pick(n, op)
	if err != nil {
		return err
	}
	if s != nil && len(s.Switches) > 0 {
		return fmt.Errorf("%s computes in switches, which only hardware has; take another algorithm", s.Name)
	}
	return nil
}

// Compute is what a step computes, forwards and backwards.
func (p *StepPlan) Compute() time.Duration {
	sum := p.Forward
	for _, g := range p.Grads {
		sum += g.After
	}
	return sum
}

// Memory is what the gradients of a rank take.
func (p *StepPlan) Memory() (sum unit.Bytes) {
	for _, g := range p.Grads {
		sum += g.Bytes
	}
	return sum
}

// pick is the schedule of a bucket, nil for the engine's choice.
func (p *StepPlan) pick(n int, op coll.Op) (*schedule.Schedule, error) {
	if p.Algo == "" || p.Algo == "auto" {
		return nil, nil
	}
	q := p.Params
	q.Ranks = n
	return schedule.Build(op.Kind, p.Algo, q)
}

// StepBucket is one bucket, as rank 0 saw it; times are medians.
type StepBucket struct {
	Bytes   unit.Bytes `json:"size_bytes"`
	Tensors int        `json:"tensors"`
	Ready   unit.Time  `json:"ready_s"`    // from the beginning of the step until it was full
	Took    unit.Time  `json:"time_s"`     // from its start to its end
	BusBW   unit.Rate  `json:"busbw_GBps"` // its share, while others are under way
	Algo    string     `json:"algo"`
}

// StepTimes are what steps took with or without overlap, in seconds.
type StepTimes struct {
	Overlap string `json:"overlap"` // on or off
	// Step is the median; of an even number, the lower of the two, so that it is a step that was taken.
	Step float64 `json:"step_s"`
	Min  float64 `json:"min_step_s"`
	Max  float64 `json:"max_step_s"`
	// Computed is what the median step computed, and Exposed how long it went on after that; together they are it.
	Computed float64      `json:"compute_s"`
	Exposed  float64      `json:"exposed_comm_s"`
	Steps    []float64    `json:"steps_s"` // on the rank that took longest, sorted
	Buckets  []StepBucket `json:"buckets"`
}

// Stepper is a rank that takes steps.
type Stepper struct {
	g       *engine.Group
	p       StepPlan
	b       *engine.Buckets
	barrier *engine.Call
}

// NewStepper makes ready what steps need. All ranks must ask for the same.
func NewStepper(g *engine.Group, p StepPlan) (*Stepper, error) {
	p.Params = grouped(p.Params, g)
	how := engine.Bucketing{
		First: p.First, Cap: p.Cap, Type: p.Type, Reduce: coll.Avg,
		Pick: func(op coll.Op) (*schedule.Schedule, error) { return p.pick(g.Size(), op) },
	}
	for _, x := range p.Grads {
		how.Params = append(how.Params, x.Bytes)
	}
	b, err := g.Buckets(how)
	if err != nil {
		return nil, err
	}
	s := &Stepper{g: g, p: p, b: b}
	if s.barrier, err = g.Prepare(nil, coll.Op{Kind: coll.Barrier}); err != nil {
		return nil, err
	}
	return s, s.barrier.Bind(engine.Buffers{})
}

// Run takes steps. With overlap, buckets are reduced as soon as they are full; without, after
// the backward pass. Rank 0 gets the times. done is called there after each step.
func (s *Stepper) Run(ctx context.Context, overlap bool, done func(k int)) (*StepTimes, error) {
	n, k := s.p.Iters, s.b.Len()
	mine := make([]float64, 3*n+n%2) // step, exposed, computed; blocks are multiples of 16 bytes
	ready, took := make([][]float64, k), make([][]float64, k)
	for i := range s.p.Warm + n {
		if i == s.p.Warm {
			if _, err := s.barrier.Run(ctx); err != nil {
				return nil, err
			}
		}
		at, computed, all, err := s.step(ctx, overlap)
		if err != nil {
			return nil, s.giveUp(ctx, err)
		}
		if s.g.Rank() == 0 && done != nil {
			done(i + 1)
		}
		if i < s.p.Warm {
			continue
		}
		j := i - s.p.Warm
		mine[3*j], mine[3*j+1], mine[3*j+2] = all.Seconds(), (all - computed).Seconds(), computed.Seconds()
		for b := range k {
			ready[b], took[b] = append(ready[b], at[b].Seconds()), append(took[b], s.b.Run(b).Time.Seconds())
		}
	}
	all, err := s.gather(ctx, mine)
	if err != nil || s.g.Rank() != 0 {
		return nil, err
	}
	t := s.slowest(all, len(mine))
	if t.Overlap = "off"; overlap {
		t.Overlap = "on"
	}
	for b := range k {
		x := StepBucket{
			Bytes: s.b.Bytes(b), Tensors: len(s.b.Params(b)), Algo: s.b.Run(b).Algo, Ready: median(ready[b]),
			Took: median(took[b]),
		}
		op := coll.Op{Kind: coll.AllReduce, Type: s.p.Type, Bytes: x.Bytes}
		x.BusBW = op.BusBW(s.g.Size(), x.Took)
		t.Buckets = append(t.Buckets, x)
	}
	return t, nil
}

// giveUp lets the others hear that this rank goes no further. A step that the context ends
// between two calls has failed none of them, and to leave without a word would let the others
// wait for this rank's gradients.
func (s *Stepper) giveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		s.barrier.Run(ctx) // which fails, and says so to all
	}
	return err
}

// step takes one: when each bucket was full, when all was computed, when all was done.
func (s *Stepper) step(ctx context.Context,
	overlap bool,
) (ready []time.Duration, computed, all time.Duration, err error) {
	begin := time.Now()
	due := begin.Add(s.p.Forward)
	pause(due)
	if err := ctx.Err(); err != nil {
		return nil, 0, 0, err
	}
	for b := range s.b.Len() {
		params := s.b.Params(b)
		for _, i := range params {
			due = due.Add(s.p.Grads[i].After)
			pause(due)
			if !overlap {
				continue
			}
			if err := s.b.Ready(i); err != nil {
				return nil, 0, 0, err
			}
		}
		ready = append(ready, time.Since(begin))
	}
	if rest := time.Until(due); rest > 0 {
		time.Sleep(rest)
	}
	computed = time.Since(begin)
	if !overlap {
		for i := len(s.p.Grads) - 1; i >= 0; i-- {
			if err := s.b.Ready(i); err != nil {
				return nil, 0, 0, err
			}
		}
	}
	if err := s.b.Wait(ctx); err != nil {
		return nil, 0, 0, err
	}
	return ready, computed, time.Since(begin), nil
}

// A wait shorter than least is left to the next one, so that small tensors cost no wake-up;
// the last part of a wait is spent awake, for sleeping ends late.
const (
	least = 250 * time.Microsecond
	awake = 60 * time.Microsecond
)

// pause stands in for computing until a moment. It leaves the processor to others.
func pause(until time.Time) {
	left := time.Until(until)
	if left < least {
		return
	}
	time.Sleep(left - awake)
	for time.Until(until) > 0 {
		runtime.Gosched()
	}
}

// gather brings every rank's figures to rank 0.
func (s *Stepper) gather(ctx context.Context, mine []float64) ([]float64, error) {
	n := s.g.Size()
	all := make([]float64, n*len(mine))
	op := coll.Op{Kind: coll.Gather, Type: coll.Double, Bytes: unit.Bytes(8 * len(all))}
	_, err := s.g.Run(ctx, nil, op, engine.Buffers{Send: engine.Bytes(mine), Recv: engine.Bytes(all)})
	return all, err
}

// slowest takes of each step the rank that took longest.
func (s *Stepper) slowest(all []float64, each int) *StepTimes {
	var list [][]float64 // step, exposed, computed
	for j := range s.p.Iters {
		worst := 0
		for r := range s.g.Size() {
			if all[r*each+3*j] > all[worst*each+3*j] {
				worst = r
			}
		}
		list = append(list, all[worst*each+3*j:][:3])
	}
	slices.SortFunc(list, func(a, b []float64) int { return cmp.Compare(a[0], b[0]) })
	n := len(list)
	mid := list[(n-1)/2]
	t := &StepTimes{Step: mid[0], Exposed: mid[1], Computed: mid[2], Min: list[0][0], Max: list[n-1][0]}
	for _, x := range list {
		t.Steps = append(t.Steps, x[0])
	}
	return t
}

// median is that of seconds; of an even number the lower one.
func median(list []float64) unit.Time { return unit.Seconds(stats.MedianLow(list)) }
