package step

import (
	"math"

	"busbar/pipeline"
	"busbar/workload"
)

// Bounds says of many settings of one model on one GPU how long a step takes at least, and how
// much memory it needs, without asking for any collective. What settings share is worked out
// once: an answer takes less than a microsecond then. It is for one goroutine at a time.
type Bounds struct {
	m    *workload.Model
	g    *GPU
	o    *workload.Outline
	seen map[aspect]*bounded
	cuts map[pipeline.Shape][]int // by shape without micro-batches, where places begin
}

// Bound is the least that a step can cost.
type Bound struct {
	Seconds float64
	Memory  workload.Memory // as Price has it
}

// bounded is a model's blocks for an aspect: sums over the blocks from the first on.
type bounded struct {
	holding       workload.Holding
	before        int // blocks before the layers
	layers        int
	fwd, bwd, sum []float64 // of seconds, seconds and parameters
}

// NewBounds is for a model on a GPU.
func NewBounds(m *workload.Model, g *GPU) *Bounds {
	return &Bounds{m: m, g: g, o: m.Outline(), seen: map[aspect]*bounded{}, cuts: map[pipeline.Shape][]int{}}
}

// Bound is that of a job of the model. Collectives, what the host updates and all waiting for
// other ranks but for the pipeline's filling count nothing, so that it never exceeds Price.
func (b *Bounds) Bound(j *workload.Job) Bound {
	x := b.blocks(j)
	s := &j.Split
	shape := j.Pipeline()
	work, params := x.stages(shape, b.edges(shape, x))
	late := 1 + b.g.f[Spread]*math.Log2(float64(max(s.Ranks(), 1)))
	host := b.g.f[StepHost] * 1e-3
	if j.Framework == workload.Eager {
		host *= 2
	}
	update := 0.0
	if !j.Offloads() {
		if s.ZeRO > 0 {
			params /= float64(max(1, s.Shard))
		}
		update = params * j.UpdateBytes() / b.g.bandwidth()
	}
	return Bound{work*late + update + host, j.MemoryOf(x.holding)}
}

// stages is the time of the stage that takes longest, with the filling and emptying before it,
// and the fewest parameters of a rank.
func (x *bounded) stages(shape pipeline.Shape, edges []int) (seconds, params float64) {
	ranks, places := shape.Ranks, shape.Ranks*shape.Chunks
	if x.layers < places {
		return 0, 0
	}
	micros := float64(shape.Micros)
	fill := 0.0
	params = math.Inf(1)
	for r := range ranks {
		work, held := 0.0, 0.0
		for c := range shape.Chunks {
			place := shape.Place(r, c)
			from, to := edges[place], edges[place+1]
			work += x.fwd[to] - x.fwd[from] + x.bwd[to] - x.bwd[from]
			held += x.sum[to] - x.sum[from]
		}
		seconds = max(seconds, fill+micros*work)
		params = min(params, held)
		if !shape.Schedule.Splits() { // forward to it, and backward from it, through the stages before
			from, to := edges[r], edges[r+1]
			fill += x.fwd[to] - x.fwd[from] + x.bwd[to] - x.bwd[from]
		}
	}
	return seconds, params
}

// edges are where the places of a shape begin.
func (b *Bounds) edges(shape pipeline.Shape, x *bounded) []int {
	shape.Micros = 0
	list := b.cuts[shape]
	if list == nil {
		list = edges(shape, x.layers, x.before, len(b.o.Order))
		b.cuts[shape] = list
	}
	return list
}

// blocks is the model for the job's aspect.
func (b *Bounds) blocks(j *workload.Job) *bounded {
	key := aspectOf(j)
	if x := b.seen[key]; x != nil {
		return x
	}
	mine := *j
	mine.Model = b.m
	n := len(b.o.Order)
	buf := make([]float64, 3*(n+1))
	x := &bounded{holding: mine.Holding(b.o), layers: b.o.Layers(), fwd: buf[:n+1], bwd: buf[n+1 : 2*n+2], sum: buf[2*n+2:]}
	took := make([]priced, len(b.o.Kinds))
	for i := range b.o.Kinds {
		k := &b.o.Kinds[i]
		pass := mine.Pass(k.Block)
		took[i] = priced{fwd: b.g.Run(pass.Forward, &mine), bwd: b.g.Run(pass.Backward, &mine) + b.g.Run(pass.Again, &mine), params: mine.Params(k.Block)}
		if k.Kind == workload.Entry {
			x.before += int(k.Count)
		}
	}
	for i, k := range b.o.Order {
		x.fwd[i+1] = x.fwd[i] + took[k].fwd
		x.bwd[i+1] = x.bwd[i] + took[k].bwd
		x.sum[i+1] = x.sum[i] + took[k].params
	}
	b.seen[key] = x
	return x
}
