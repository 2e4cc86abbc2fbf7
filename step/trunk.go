package step

import (
	"math"

	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Trunk bounds jobs that differ only in what replicas divide and among how many, in the pipeline's
// schedule and chunks, in buckets, compression and what the host keeps: what a rank computes in
// all, and the traffic inside layers, is the same for them.
type Trunk struct {
	b       *Bounds
	job     workload.Job
	late    unit.Span
	host    unit.Span
	updates unit.Rate      // of the host's update, of a rank; 0 is not known
	blocks  [2]*bounded    // with parameters whole, and divided (ZeRO 3)
	shapes  [2][]shapeTime // that were asked for
}

// shapeTime is a pipeline's bound.
type shapeTime struct {
	schedule pipeline.Schedule
	chunks   int
	longest  unit.Span
	params   float64
}

// rounding is what sums in another order may differ by: a bound stays below a price all the same.
const rounding = 1 - 1e-12

// Trunk is that of a job. It is for one goroutine at a time.
func (b *Bounds) Trunk(j *workload.Job) *Trunk {
	t := &Trunk{b: b, job: *j, late: unit.Span(b.g.spread(j.Split.Ranks())), host: unit.Span(b.g.f.of(stepHost) * 1e-3)}
	if j.Framework == workload.Eager {
		t.host *= 2
	}
	return t
}

// Job is the one that it was made for.
func (t *Trunk) Job() *workload.Job { return &t.job }

// variant is the job as a branch of it has its blocks.
func (t *Trunk) variant(whole int) workload.Job {
	j := t.job
	j.Split.ZeRO = 3 * whole
	return j
}

// of are the blocks of a branch.
func (t *Trunk) of(whole int) *bounded {
	if t.blocks[whole] == nil {
		j := t.variant(whole)
		t.blocks[whole] = t.b.blocks(&j)
	}
	return t.blocks[whole]
}

// Hear adds the traffic inside layers, as a fabric prices it, and the host's update.
func (t *Trunk) Hear(f *Fabric) error {
	for whole := range t.blocks {
		if whole == 1 && t.job.Split.PP > 1 {
			break
		}
		j := t.variant(whole)
		x, err := t.b.talking(&j, f)
		if err != nil {
			return err
		}
		t.blocks[whole], t.shapes[whole] = x, nil
	}
	if h, err := f.hostSide(); err == nil {
		t.updates = h.update
	}
	return nil
}

// Least is below the bounds of all its jobs; its memory is nobody's.
func (t *Trunk) Least() Bound {
	least := Bound{Step: unit.Span(math.Inf(1)), Computing: unit.Span(math.Inf(1))}
	for whole := range t.blocks {
		if whole == 1 && t.job.Split.PP > 1 { // which is never divided so
			break
		}
		x := t.of(whole)
		n := len(x.fwd) - 1
		each := unit.Span(t.job.Micros()) / unit.Span(max(1, t.job.Split.PP)) * t.late
		least.Step = min(least.Step, ((x.fwd[n]+x.bwd[n])*each+t.host)*rounding)
		least.Computing = min(least.Computing, x.quiet*each*rounding)
	}
	return least
}

// Bound is that of one of its jobs. The computing of the stage that takes longest is no less than
// that of all stages on average.
func (t *Trunk) Bound(j *workload.Job) Bound {
	whole := 0
	if j.Split.ZeRO == 3 {
		whole = 1
	}
	x := t.of(whole)
	s := t.shape(whole, j)
	params := s.params
	if j.Split.ZeRO > 0 {
		params /= float64(max(1, j.Split.Shard))
	}
	update := unit.Span(0)
	switch {
	case !j.Offloads():
		update = unit.Volume(params * j.UpdateBytes()).At(t.b.g.bandwidth())
	case t.updates > 0:
		update = unit.Volume(params * workload.HostUpdate).At(t.updates)
	}
	return Bound{
		Step:      (s.longest*t.late + update + t.host) * rounding,
		Computing: (x.quiet*unit.Span(j.Micros())/unit.Span(max(1, j.Split.PP))*t.late + update) * rounding,
		Memory:    j.MemoryOf(x.holding),
	}
}

// Memory is what a GPU needs for one of its jobs.
func (t *Trunk) Memory(j *workload.Job) workload.Memory { return j.MemoryOf(t.of(0).holding) }

// shape is the bound of a job's pipeline.
func (t *Trunk) shape(whole int, j *workload.Job) *shapeTime {
	list := t.shapes[whole]
	for i := range list {
		if list[i].schedule == j.Schedule && list[i].chunks == j.Split.Chunks {
			return &list[i]
		}
	}
	shape := j.Pipeline()
	x := t.of(whole)
	s := shapeTime{schedule: j.Schedule, chunks: j.Split.Chunks}
	s.longest, s.params = x.stages(shape, t.b.edges(shape, x))
	t.shapes[whole] = append(list, s)
	return &t.shapes[whole][len(list)]
}
