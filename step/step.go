package step

import (
	"fmt"
	"math"

	"busbar/coll"
	"busbar/workload"
)

// Result is one training step.
type Result struct {
	Step float64 // s
	// Compute is the time of a rank's own work in its slowest stage; Bubble the time that a
	// pipeline leaves it idle; Optimizer the update; Host what a step costs beside.
	Compute, Bubble, Optimizer, Host float64
	// Comm is what collectives take in all, Exposed what of it nothing hides.
	Comm, Exposed float64
	Traffic       []Traffic
	Flops         float64 // of the model, in a step, recomputation not counted
	Again         float64 // recomputed
	Tokens        float64
	Ranks         int
	MFU, HFU      float64
	Memory        workload.Memory
}

// Traffic is what one kind of groups does in a step.
type Traffic struct {
	Group   Group
	What    string
	Bytes   float64 // of one call
	Calls   float64
	Seconds float64 // in all
	Exposed float64
	Limit   string
}

// Step prices a job on a GPU and a fabric.
func Step(j *workload.Job, g *GPU, f *Fabric) (*Result, error) { return Prepare(j, f).Price(g) }

// Prepared is a job whose tasks are laid out, to be priced many times by different figures.
type Prepared struct {
	j      *workload.Job
	f      *Fabric
	blocks []prepared
	kinds  []int // of the model's blocks, which of those it is
	flops  [2]float64
	memory workload.Memory
}

// prepared is a block; layers that are alike have one for them.
type prepared struct {
	kind   workload.BlockKind
	pass   workload.Pass
	params float64
	summed float64 // of those, with gradients to be summed among replicas
	topK   int64   // of a mixture of experts
}

// Prepare lays out the tasks of a job.
func Prepare(j *workload.Job, f *Fabric) *Prepared {
	mine := *j
	mine.Split = f.split
	p := &Prepared{j: &mine, f: f, memory: mine.Memory()}
	p.flops[0], p.flops[1] = mine.Flops()
	layer := map[int64]int{} // by experts: a mixture may begin with layers that have none
	for i := range j.Model.Blocks {
		b := &j.Model.Blocks[i]
		experts, topK := b.Experts()
		k, ok := layer[experts]
		if b.Kind != workload.Layer || !ok {
			k = len(p.blocks)
			if b.Kind == workload.Layer {
				layer[experts] = k
			}
			p.blocks = append(p.blocks, prepared{b.Kind, mine.Pass(b), mine.Params(b), mine.Summed(b), topK})
		}
		p.kinds = append(p.kinds, k)
	}
	return p
}

// Price is the step on a GPU.
func (p *Prepared) Price(g *GPU) (*Result, error) {
	return (&pricing{Prepared: p, g: g}).run()
}

// pricing is the work on one step.
type pricing struct {
	*Prepared
	g *GPU

	stages  []stage
	traffic map[Group]*Traffic
	late    map[int]float64 // stages of a slow node, by how many times as long they compute
}

// stage is one rank's part of the pipeline.
type stage struct {
	fwd, bwd []float64 // by block: tensor-parallel traffic and recomputation included
	kinds    []int     // by block, which of the prepared ones it is
	params   []float64 // by block, of one rank
	summed   []float64 // of those, with gradients to be summed among replicas
}

func (s *stage) forward() float64  { return sum(s.fwd) }
func (s *stage) backward() float64 { return sum(s.bwd) }

func sum(list []float64) float64 {
	t := 0.0
	for _, x := range list {
		t += x
	}
	return t
}

func (p *pricing) run() (*Result, error) {
	p.traffic = map[Group]*Traffic{}
	if err := p.cut(); err != nil {
		return nil, err
	}
	j, s := p.j, p.j.Split
	micros := float64(j.Micros())
	r := &Result{Ranks: s.Ranks(), Tokens: float64(j.GlobalBatch) * float64(j.Seq)}
	r.Flops, r.Again = p.flops[0], p.flops[1]
	slow := p.slowest()
	x := &p.stages[slow]
	work := x.forward() + x.backward()
	r.Compute = work * micros
	if err := p.pipeline(r, micros, work); err != nil {
		return nil, err
	}
	if err := p.gradients(r, x, micros); err != nil {
		return nil, err
	}
	r.Optimizer = p.optimizer(sum(x.params)) * p.lateness(slow)
	r.Host = p.g.f[StepHost] * 1e-3
	if j.Framework == workload.Eager {
		r.Host *= 2
	}
	// The slowest of many ranks.
	late := 1 + p.g.f[Spread]*math.Log2(float64(max(r.Ranks, 1)))
	r.Compute *= late
	r.Step = r.Compute + r.Bubble*late + r.Optimizer + r.Host
	for g := range nGroups {
		t := p.traffic[g]
		if t == nil {
			continue
		}
		r.Traffic = append(r.Traffic, *t)
		r.Comm += t.Seconds
		r.Exposed += t.Exposed
	}
	// Tensor- and context-parallel traffic is in the work of the stages already.
	inside := 0.0
	for _, g := range []Group{Tensor, Context, Experts} {
		if t := p.traffic[g]; t != nil {
			inside += t.Exposed
		}
	}
	r.Compute -= inside
	r.Step += r.Exposed - inside
	peak := p.g.peak(j.Precision)
	if j.Precision == workload.FP8 {
		peak = p.g.peak(workload.BF16)
	}
	r.MFU = r.Flops / r.Step / float64(r.Ranks) / peak
	r.HFU = (r.Flops + r.Again) / r.Step / float64(r.Ranks) / peak
	r.Memory = p.memory
	return r, nil
}

// cut gives blocks to stages: layers evenly, what is before them to the first and what is
// after them to the last.
func (p *pricing) cut() error {
	s := p.j.Split
	var entry, layers, exit []int
	for i, k := range p.kinds {
		switch p.blocks[k].kind {
		case workload.Entry:
			entry = append(entry, i)
		case workload.Layer:
			layers = append(layers, i)
		default:
			exit = append(exit, i)
		}
	}
	if len(layers) < s.PP {
		return fmt.Errorf("%d layers for %d stages", len(layers), s.PP)
	}
	took := make([]priced, len(p.blocks))
	for k := range p.blocks {
		var err error
		if took[k], err = p.block(&p.blocks[k]); err != nil {
			return err
		}
	}
	p.stages = make([]stage, s.PP)
	for k := range p.stages {
		x := &p.stages[k]
		add := func(list []int) {
			for _, i := range list {
				b := &took[p.kinds[i]]
				x.kinds = append(x.kinds, p.kinds[i])
				x.fwd, x.bwd, x.params, x.summed = append(x.fwd, b.fwd), append(x.bwd, b.bwd), append(x.params, b.params), append(x.summed, b.summed)
			}
		}
		if k == 0 {
			add(entry)
		}
		add(layers[k*len(layers)/s.PP : (k+1)*len(layers)/s.PP])
		if k == s.PP-1 {
			add(exit)
		}
	}
	p.delay()
	return nil
}

// priced is a block's time for one micro-batch.
type priced struct{ fwd, bwd, params, summed float64 }

// block prices a block.
func (p *pricing) block(b *prepared) (priced, error) {
	j := p.j
	x := priced{fwd: p.g.Run(b.pass.Forward, j), bwd: p.g.Run(b.pass.Backward, j), params: b.params, summed: b.summed}
	again := p.g.Run(b.pass.Again, j)
	if b.kind == workload.Layer {
		if err := p.inside(&x, &again, b); err != nil {
			return x, err
		}
	}
	x.bwd += again
	return x, nil
}

// inside adds the traffic within a layer: sums of tensor-parallel products, blocks of keys and
// values that travel round.
func (p *pricing) inside(x *priced, again *float64, b *prepared) error {
	j, s := p.j, p.j.Split
	layers := float64(p.layers(b)) / float64(s.PP)
	micros := float64(j.Micros())
	tokens := float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	if s.TP > 1 {
		bytes := tokens * float64(j.Model.Dims.Hidden) * j.Precision.Width()
		var one float64
		var limit string
		var err error
		if s.SeqParallel {
			var a, b float64
			if a, limit, err = p.f.Seconds(Tensor, coll.AllGather, bytes); err == nil {
				b, _, err = p.f.Seconds(Tensor, coll.ReduceScatter, bytes)
			}
			one = (a + b) * (1 - p.g.f[TPHidden])
		} else {
			one, limit, err = p.f.Seconds(Tensor, coll.AllReduce, bytes)
		}
		if err != nil {
			return err
		}
		calls := 4.0
		x.fwd += 2 * one
		x.bwd += 2 * one
		if j.Recompute == workload.Full {
			*again += 2 * one
			calls += 2
		}
		p.count(Tensor, "sums of products", bytes, calls*layers*micros, one, one, limit)
	}
	if s.CP > 1 {
		bytes := 2 * tokens * float64(j.Model.KVWidth()) / float64(s.TP) * j.Precision.Width()
		one, limit, err := p.f.Seconds(Context, coll.SendRecv, bytes)
		if err != nil {
			return err
		}
		one *= float64(s.CP - 1)
		score := 0.0
		for i := range b.pass.Forward {
			if t := &b.pass.Forward[i]; t.Kind == workload.Score || t.Name == "scores" {
				score += p.g.Seconds(t, j.Precision)
			}
		}
		open := max(0, one-score*float64(s.CP-1)/float64(s.CP))
		x.fwd += open
		x.bwd += open
		p.count(Context, "keys and values", bytes, 2*layers*micros*float64(s.CP-1), one/float64(s.CP-1), open/float64(s.CP-1), limit)
	}
	return p.experts(x, again, b, layers*micros)
}

// layers is how many there are like this one.
func (p *pricing) layers(b *prepared) int {
	n := 0
	for _, k := range p.kinds {
		if &p.blocks[k] == b {
			n++
		}
	}
	return n
}

func (p *pricing) count(g Group, what string, bytes, calls, seconds, exposed float64, limit string) {
	t := p.traffic[g]
	if t == nil {
		t = &Traffic{Group: g, What: what, Bytes: bytes, Limit: limit}
		p.traffic[g] = t
	}
	t.Calls += calls
	t.Seconds += calls * seconds
	t.Exposed += calls * exposed
}

// slowest is the stage with most work.
func (p *pricing) slowest() int {
	slow, most := 0, 0.0
	for k := range p.stages {
		if t := p.stages[k].forward() + p.stages[k].backward(); t > most {
			slow, most = k, t
		}
	}
	return slow
}

// pipeline adds the time in which the slowest stage waits: for the first micro-batch to come
// and the last to go, shorter by the number of chunks; and for messages between stages.
func (p *pricing) pipeline(r *Result, micros, work float64) error {
	j, s := p.j, p.j.Split
	if s.PP == 1 {
		return nil
	}
	all := 0.0
	for k := range p.stages {
		all += p.stages[k].forward() + p.stages[k].backward()
	}
	chunks := float64(s.Chunks)
	r.Bubble = (all - work) / chunks
	bytes := float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP) * float64(j.Model.Dims.Hidden) * j.Precision.Width()
	if s.SeqParallel || j.Framework == workload.Fused {
		bytes /= float64(s.TP) // each sends its part; the next gathers it over NVLink
	}
	one, limit, err := p.f.Seconds(Next, coll.SendRecv, bytes)
	if err != nil {
		return err
	}
	fill := 2 * float64(s.PP-1)
	steady := 2 * (micros - 1) * chunks
	hidden := steady
	if s.Chunks == 1 { // a plain 1F1B waits for what its neighbours send, in both directions
		hidden = 0
	}
	calls := fill + steady
	p.count(Next, "activations and their gradients", bytes, calls, one, one*(calls-hidden)/calls, limit)
	return nil
}

// Job is what is priced.
func (p *Prepared) Job() *workload.Job { return p.j }
