package step

import (
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Pricing is a price in two parts: all but the play of the pipeline, after which it is known how
// long the step takes at least, and the play, which takes most of the time of both.
type Pricing struct{ pricing }

// Begin does the first part. Of several sizes of buckets the best is taken; none is the job's own.
func (p *Prepared) Begin(g *GPU, buckets []unit.Bytes) (*Pricing, error) {
	own := *p
	j := *p.j
	own.j = &j
	x := &Pricing{pricing{Prepared: &own, g: g}}
	if len(buckets) > 0 {
		j.Bucket = buckets[0]
	}
	if err := x.begin(); err != nil {
		return nil, err
	}
	for _, size := range buckets[min(1, len(buckets)):] {
		if err := x.bucketed(size); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// bucketed takes another size of buckets where the step is shorter with it.
func (x *Pricing) bucketed(size unit.Bytes) error {
	old, was := x.pricing, x.j.Bucket
	x.j.Bucket = size
	for _, g := range []Group{Data, Shards, Copies, ToHost} {
		x.traffic[g] = Traffic{}
	}
	err := x.update()
	if err != nil || x.after >= old.after {
		x.pricing, x.j.Bucket = old, was
	}
	return err
}

// Bucket is the size of buckets that was taken.
func (x *Pricing) Bucket() unit.Bytes { return x.j.Bucket }

// Finish does the second part.
func (x *Pricing) Finish() (*Result, error) { return x.finish() }

// Least is what the step takes at least: what is known, and of the pipeline its slowest way
// through a rank's work.
func (x *Pricing) Least() (Bound, error) {
	b, err := x.least()
	return x.g.measure(x.j, b), err
}

func (x *Pricing) least() (Bound, error) {
	micros := unit.Span(x.j.Micros())
	late := unit.Span(x.g.spread(x.j.Split.Ranks()))
	b := Bound{Memory: x.g.beside(x.j, x.memory)}
	if x.shape.Ranks == 1 {
		b.Step = (x.work*micros*late + x.after) * rounding
		return b, nil
	}
	_, message, _, err := x.message()
	if err != nil {
		return b, err
	}
	alone, whole := x.through(micros, message)
	b.Step = ((late-1)*alone + whole + x.after) * rounding
	return b, nil
}

// through is the least that a play takes without messages and with them: forward to a rank, all
// its work, and backward from it. Where ranks wait for their messages, those of the micro-batches that are
// played count; the others are taken to be no faster than the work alone.
func (x *Pricing) through(micros, message unit.Span) (alone, whole unit.Span) {
	played := float64(x.shape.Played())
	fill := unit.Span(0)
	for r := range x.stages {
		work := micros * (x.stages[r].forward() + x.stages[r].backward())
		alone = max(alone, fill+work)
		sent := 0.0
		if !x.shape.Schedule.Splits() {
			sent = 2 * float64(r)
		}
		if x.shape.Schedule.Blocks() {
			each := 2.0
			if r == 0 || r == len(x.stages)-1 {
				each = 1
			}
			sent += each*played - 1 // the last one is on its way back
		}
		whole = max(whole, fill+work+unit.Span(sent)*message)
		if !x.shape.Schedule.Splits() {
			fill += x.times.Forward[r] + x.times.Backward[r] + x.times.Weight[r]
		}
	}
	return alone, max(alone, whole)
}

// Buckets are sizes of gradients that travel at once which are worth a try, the usual one first:
// up to what takes as long as its start no more.
func Buckets() []unit.Bytes {
	return []unit.Bytes{workload.DefaultBucket, 50 << 20, 100 << 20, 200 << 20, 400 << 20}
}
