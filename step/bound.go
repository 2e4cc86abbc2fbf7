package step

import (
	"math"
	"sync"

	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Bounds says of many settings of one model on one GPU how long a step takes at least, and how
// much memory it needs. What settings share is worked out once: an answer takes less than a
// microsecond then. Several goroutines may ask at once.
type Bounds struct {
	m *workload.Model
	g *GPU
	o *workload.Outline

	mu          sync.Mutex // of all below
	computeOnly map[aspect]*bounded
	withTraffic map[trafficKey]*bounded
	cuts        map[cutKey][]int // where places begin
}

// Bound is the least that a step can cost.
type Bound struct {
	Step   unit.Span
	Memory workload.Memory // as Price has it
}

// bounded is a model's blocks for an aspect: sums over the blocks from the first on.
type bounded struct {
	holding  workload.Holding
	layers   int
	fwd, bwd []unit.Span
	sum      []float64 // of parameters
}

// trafficKey is an aspect with what traffic inside layers depends on beside it.
type trafficKey struct {
	aspect
	context workload.Context
	experts pattern
}

// NewBounds is for a model on a GPU.
func NewBounds(m *workload.Model, g *GPU) *Bounds {
	return &Bounds{
		m: m, g: g, o: m.Outline(), computeOnly: map[aspect]*bounded{}, withTraffic: map[trafficKey]*bounded{},
		cuts: map[cutKey][]int{},
	}
}

// cutKey is what places depend on: a shape without micro-batches, and how blocks are divided.
type cutKey struct {
	pipeline.Shape
	by workload.Staging
}

// places are where those of a job's pipeline begin.
func (b *Bounds) places(j *workload.Job) []int {
	key := cutKey{j.Pipeline(), j.Staging}
	key.Micros = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.cuts[key]
	if list == nil {
		list = j.Places(b.o)
		b.cuts[key] = list
	}
	return list
}

// computeBlocks is the model for the job's aspect, without traffic.
func (b *Bounds) computeBlocks(j *workload.Job) *bounded {
	key := aspectOf(j)
	key.splits = false // sums do not depend on it
	b.mu.Lock()
	defer b.mu.Unlock()
	if x := b.computeOnly[key]; x != nil {
		return x
	}
	mine := *j
	mine.Model = b.m
	took := make([]blockTime, len(b.o.Kinds))
	run := b.g.Run
	if quietLayers(j) { // where the host may get ahead
		run = func(list []workload.Task, j *workload.Job) unit.Span {
			gpu, _ := b.g.both(list, j, 0)
			return gpu
		}
	}
	for i := range b.o.Kinds {
		k := &b.o.Kinds[i]
		pass := mine.Pass(k.Block)
		took[i] = blockTime{
			fwd: run(pass.Forward, &mine), bwd: run(pass.Backward, &mine) + run(pass.Again, &mine),
			params: mine.Params(k.Block),
		}
	}
	x := b.summed(took)
	x.holding = mine.Holding(b.o)
	b.computeOnly[key] = x
	return x
}

// trafficBlocks is the same with traffic inside layers: of tensor-parallel products, of sequences that
// are shared, and of experts.
func (b *Bounds) trafficBlocks(j *workload.Job, f *Fabric) (*bounded, error) {
	quiet := b.computeBlocks(j)
	if quietLayers(j) {
		return quiet, nil
	}
	f = f.With(j.Split)
	key := trafficKey{aspectOf(j), j.Context, f.pattern(Experts)}
	key.splits = false
	b.mu.Lock()
	x := b.withTraffic[key]
	b.mu.Unlock()
	if x != nil {
		return x, nil
	}
	p := pricing{Prepared: Prepare(j, f), g: b.g}
	took := make([]blockTime, len(p.blocks))
	for i := range took {
		var err error
		if took[i], err = p.block(&p.blocks[i]); err != nil {
			return nil, err
		}
	}
	x = b.summed(took)
	x.holding = quiet.holding
	b.mu.Lock()
	b.withTraffic[key] = x
	b.mu.Unlock()
	return x, nil
}

// quietLayers says that ranks have whole layers to themselves.
func quietLayers(j *workload.Job) bool {
	return max(j.Split.TP, 1)*max(j.Split.CP, 1)*max(j.Split.EP, 1) == 1
}

// summed adds up blocks from the first on.
func (b *Bounds) summed(took []blockTime) *bounded {
	n := len(b.o.Order)
	buf := make([]unit.Span, 2*(n+1))
	x := &bounded{layers: b.o.Layers(), fwd: buf[:n+1], bwd: buf[n+1:], sum: make([]float64, n+1)}
	for i, k := range b.o.Order {
		x.fwd[i+1] = x.fwd[i] + took[k].fwd
		x.bwd[i+1] = x.bwd[i] + took[k].bwd
		x.sum[i+1] = x.sum[i] + took[k].params
	}
	return x
}

// stages is the time of the stage that takes longest, with the filling and emptying before it,
// and the fewest parameters of a rank.
func (x *bounded) stages(shape pipeline.Shape, places []int) (longest unit.Span, params float64) {
	ranks := shape.Ranks
	if x.layers+workload.Slots < ranks*shape.Chunks {
		return 0, 0
	}
	micros := unit.Span(shape.Micros)
	fill := unit.Span(0)
	params = math.Inf(1)
	for r := range ranks {
		work, held := unit.Span(0), 0.0
		for c := range shape.Chunks {
			place := shape.Place(r, c)
			from, to := places[place], places[place+1]
			work += x.fwd[to] - x.fwd[from] + x.bwd[to] - x.bwd[from]
			held += x.sum[to] - x.sum[from]
		}
		longest = max(longest, fill+micros*work)
		params = min(params, held)
		if !shape.Schedule.Splits() { // forward to it, and backward from it, through the stages before
			from, to := places[r], places[r+1]
			fill += x.fwd[to] - x.fwd[from] + x.bwd[to] - x.bwd[from]
		}
	}
	return longest, params
}
