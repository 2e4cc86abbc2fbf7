package step

import (
	"math"

	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Family bounds jobs that differ only in what replicas divide and among how many, in the pipeline's
// schedule and chunks, in buckets, compression and what the host keeps: what a rank computes in
// all, and the traffic inside layers, is the same for them.
type Family struct {
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
	places   []int
}

// rounding is what sums in another order may differ by: a bound stays below a price all the same.
const rounding = 1 - 1e-12

// Family is that of a job. It is for one goroutine at a time.
func (b *Bounds) Family(j *workload.Job) *Family {
	t := &Family{b: b, job: *j, late: unit.Span(b.g.spread(j.Split.Ranks())), host: b.g.hostOf(j)}
	return t
}

// Job is the one that it was made for.
func (t *Family) Job() *workload.Job { return &t.job }

// variant is the job as a branch of it has its blocks.
func (t *Family) variant(divided int) workload.Job {
	j := t.job
	j.Split.ZeRO = 3 * divided
	return j
}

// blocksOf are the blocks of a branch.
func (t *Family) blocksOf(divided int) *bounded {
	if t.blocks[divided] == nil {
		j := t.variant(divided)
		t.blocks[divided] = t.b.computeBlocks(&j)
	}
	return t.blocks[divided]
}

// AddTraffic adds the traffic inside layers, as a fabric prices it, and the host's update.
func (t *Family) AddTraffic(f *Fabric) error {
	for divided := range t.blocks {
		if divided == 1 && t.job.Split.PP > 1 {
			break
		}
		j := t.variant(divided)
		x, err := t.b.trafficBlocks(&j, f)
		if err != nil {
			return err
		}
		t.blocks[divided], t.shapes[divided] = x, nil
	}
	if h, err := f.hostSide(); err == nil {
		t.updates = h.update
	}
	return nil
}

// Least is below the bounds of all its jobs; its memory is nobody's.
func (t *Family) Least() Bound {
	least := Bound{Step: unit.Span(math.Inf(1))}
	for divided := range t.blocks {
		if divided == 1 && t.job.Split.PP > 1 { // which is never divided so
			break
		}
		x := t.blocksOf(divided)
		n := len(x.fwd) - 1
		each := unit.Span(t.job.Micros()) / unit.Span(max(1, t.job.Split.PP)) * t.late
		least.Step = min(least.Step, ((x.fwd[n]+x.bwd[n])*each+t.host)*rounding)
	}
	return t.b.g.measure(&t.job, least)
}

// Bound is that of one of its jobs, which never exceeds its price: collectives between layers, what the host updates
// and all waiting for other ranks but for the pipeline bubble count nothing.
func (t *Family) Bound(j *workload.Job) Bound {
	divided := 0
	if j.Split.ZeRO == 3 {
		divided = 1
	}
	x := t.blocksOf(divided)
	s := t.shape(divided, j)
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
	return t.b.g.measure(j, Bound{
		Step:   (s.longest*t.late + update + t.host) * rounding,
		Memory: t.b.g.beside(j, j.MemoryOf(x.holding, s.places)),
	})
}

// Memory is what a GPU needs for one of its jobs.
func (t *Family) Memory(j *workload.Job) workload.Memory {
	return t.b.g.beside(j, j.MemoryOf(t.blocksOf(0).holding, t.b.places(j)))
}

// shape is the bound of a job's pipeline.
func (t *Family) shape(divided int, j *workload.Job) *shapeTime {
	list := t.shapes[divided]
	for i := range list {
		if list[i].schedule == j.Schedule && list[i].chunks == j.Split.Chunks {
			return &list[i]
		}
	}
	shape := j.Pipeline()
	x := t.blocksOf(divided)
	s := shapeTime{schedule: j.Schedule, chunks: j.Split.Chunks, places: t.b.places(j)}
	s.longest, s.params = x.stages(shape, s.places)
	t.shapes[divided] = append(list, s)
	return &t.shapes[divided][len(list)]
}
