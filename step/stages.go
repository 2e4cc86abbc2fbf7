package step

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// blockTime is a block's time for one micro-batch. Of the backward pass, weight is what computes
// gradients of weights.
type blockTime struct {
	fwd, bwd, weight unit.Span
	behind           [3]unit.Span // how much longer the host takes than the GPU: forward, backward, again
	params, summed   float64
}

// assignBlocks gives blocks to places in the pipeline, and places to ranks: layers evenly, what is
// before them to the first place and what is after them to the last.
func (p *pricing) assignBlocks() error {
	ranks, places := p.shape.Ranks, p.shape.Ranks*p.shape.Chunks
	took := make([]blockTime, len(p.blocks))
	for k := range p.blocks {
		var err error
		if took[k], err = p.block(&p.blocks[k]); err != nil {
			return err
		}
	}
	if layers := layersOf(p.Prepared); layers+workload.Slots < places {
		return fmt.Errorf("%d layers for %d stages", layers, places)
	}
	p.allocateStages(ranks, places)
	for place := range places {
		from, to := p.places[place], p.places[place+1]
		r, _ := p.shape.Owner(place)
		x := &p.stages[r]
		late := p.lateness(r)
		for _, k := range p.kinds[from:to] {
			b := p.delayed(k, took[k], late)
			x.fwd, x.bwd, x.params, x.summed = append(x.fwd, b.fwd), append(x.bwd, b.bwd), append(x.params, b.params),
				append(x.summed, b.summed)
			p.times.Forward[place] += b.fwd
			p.times.Backward[place] += b.bwd - b.weight
			p.times.Weight[place] += b.weight
		}
	}
	return nil
}

// allocateStages makes place for the times of all stages at once.
func (p *pricing) allocateStages(ranks, places int) {
	p.stages = make([]stage, ranks)
	each := 0
	for r := range ranks {
		n := 0
		for c := range p.shape.Chunks {
			at := p.shape.Place(r, c)
			n += p.places[at+1] - p.places[at]
		}
		each = max(each, n)
	}
	times, counts := make([]unit.Span, 2*ranks*each+3*places), make([]float64, 2*ranks*each)
	for r := range p.stages {
		x := &p.stages[r]
		x.fwd, x.bwd, times = times[:0:each], times[each:each:2*each], times[2*each:]
		x.params, x.summed, counts = counts[:0:each], counts[each:each:2*each], counts[2*each:]
	}
	p.times = pipeline.Times{
		Forward: times[:places], Backward: times[places : 2*places], Weight: times[2*places : 3*places],
	}
}

// layersOf is how many layers the model has.
func layersOf(p *Prepared) int {
	n := 0.0
	for i := range p.blocks {
		if p.blocks[i].kind == workload.Layer {
			n += p.blocks[i].count
		}
	}
	return int(n)
}

// slowest is the stage with most work.
func (p *pricing) slowest() int {
	slow, most := 0, unit.Span(0)
	for k := range p.stages {
		if t := p.stages[k].forward() + p.stages[k].backward(); t > most {
			slow, most = k, t
		}
	}
	return slow
}

// pipeline plays the schedule twice: as if messages took no time, where what is beyond the work
// of the slowest stage is the bubble, and with them, where what is longer is waiting for
// messages.
func (p *pricing) pipeline(r *Result, micros float64, work unit.Span) error {
	if p.shape.Ranks == 1 {
		return nil
	}
	plan, err := p.f.cache.takePipeline(p.shape)
	if err != nil {
		return err
	}
	defer p.f.cache.put(p.shape, plan)
	p.times.Message = 0
	alone := plan.Time(&p.times)
	r.Bubble = max(0, alone-work*unit.Span(micros))
	bytes, one, limit, err := p.message()
	if err != nil {
		return err
	}
	p.times.Message = one
	whole := plan.Time(&p.times)
	// Of a rank in the middle, one there and one back for every chunk and micro-batch. While a
	// pipeline fills it also waits for those of the ranks before it, so that it may wait longer
	// than its own take.
	calls := 2 * micros * float64(p.shape.Chunks)
	p.count(Next, "activations and their gradients", bytes, calls, one, max(0, whole-alone)/unit.Span(calls), limit)
	return nil
}

// takePipeline is a pipeline of a shape that nobody else plays.
func (k *cache) takePipeline(shape pipeline.Shape) (*pipeline.Steady, error) {
	k.mu.Lock()
	if list := k.plans[shape]; len(list) > 0 {
		p := list[len(list)-1]
		k.plans[shape] = list[:len(list)-1]
		k.mu.Unlock()
		return p, nil
	}
	k.mu.Unlock()
	return pipeline.NewSteady(shape)
}

// put gives it back.
func (k *cache) put(shape pipeline.Shape, p *pipeline.Steady) {
	k.mu.Lock()
	k.plans[shape] = append(k.plans[shape], p)
	k.mu.Unlock()
}

// message is what a stage sends to the next for a micro-batch, and how long that takes.
func (p *pricing) message() (bytes unit.Volume, one unit.Span, limit string, err error) {
	j, s := p.j, p.j.Split
	bytes = unit.Volume(float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP) * float64(j.Model.Dims.Hidden) *
		j.Precision.Width())
	if s.SeqParallel || j.Kernels == workload.Fused {
		bytes /= unit.Volume(s.TP) // each sends its part; the next gathers it over NVLink
	}
	one, limit, err = p.f.Time(Next, coll.SendRecv, bytes)
	return bytes, one, limit, err
}
