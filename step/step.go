package step

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Result is one training step. Parts of its time do not add up where they overlap: Step is Compute, the exposed part of
// Comm, Bubble, Optimizer, Host and Starved.
type Result struct {
	Step      unit.Span `json:"step_s,omitzero"`
	Compute   unit.Span `json:"compute_s"` // of a rank's own work in its slowest stage
	Bubble    unit.Span `json:"bubble_s"`  // that a pipeline leaves ranks idle
	Optimizer unit.Span `json:"optimizer_s"`
	Host      unit.Span `json:"host_s"` // what a step costs beside
	// Data is the time in which the samples of a step come, Starved what the step waits for them; see Feed.
	Data    unit.Span       `json:"data_s,omitempty"`
	Starved unit.Span       `json:"waits_for_data_s,omitempty"`
	Comm    unit.Span       `json:"comm_s"`         // of all collectives
	Exposed unit.Span       `json:"exposed_comm_s"` // of that, what nothing hides
	Traffic []Traffic       `json:"traffic"`
	Flops   float64         `json:"model_flop"`                // in a step, recomputation not counted
	Again   float64         `json:"recomputed_flop,omitempty"` // in a step
	Tokens  float64         `json:"tokens"`                    // of a step
	Ranks   int             `json:"gpus"`
	MFU     float64         `json:"mfu,omitzero"`
	HFU     float64         `json:"hfu"` // with what is computed again
	Memory  workload.Memory `json:"memory_bytes"`
}

// finite refuses a step of which a part has no finite time, as where a rate is nought.
func (r *Result) finite() error {
	for _, x := range []struct {
		what string
		time float64
	}{
		{"computing", float64(r.Compute)},
		{"the pipeline bubble", float64(r.Bubble)},
		{"the optimizer", float64(r.Optimizer)},
		{"communication", float64(r.Comm)},
		{"the host", float64(r.Host)},
		{"the step", float64(r.Step)},
	} {
		if math.IsNaN(x.time) || math.IsInf(x.time, 0) {
			return fmt.Errorf("the time of %s is %v; expected a finite one: a rate of the cluster or the GPU is nought, or "+
				"the job is larger than can be counted", x.what, x.time)
		}
	}
	if r.Step <= 0 {
		return fmt.Errorf("the step takes %v s; expected more than nought", float64(r.Step))
	}
	return nil
}

// TokensPerSecond is the throughput of all ranks together.
func (r *Result) TokensPerSecond() float64 { return r.Tokens / r.Step.Seconds() }

// Traffic is what one kind of groups does in a step.
type Traffic struct {
	Group   Group       `json:"group"`
	What    string      `json:"what"`
	Bytes   unit.Volume `json:"bytes_per_call"` // on average
	Calls   float64     `json:"calls"`
	Time    unit.Span   `json:"comm_s"` // in all
	Exposed unit.Span   `json:"exposed_s"`
	Limit   string      `json:"limit"`
}

// Step prices a job on a GPU and a fabric.
func Step(j *workload.Job, g *GPU, f *Fabric) (*Result, error) { return Prepare(j, f).Price(g) }

// Prepared is a job whose tasks are known, to be priced many times by different figures.
type Prepared struct {
	j      *workload.Job
	f      *Fabric
	blocks []prepared
	kinds  []int // of the model's blocks, which of those it is
	places []int // of the pipeline, where among them they begin
	flops  [2]float64
	memory workload.Memory
	shape  pipeline.Shape
	routed float64 // experts' share of the gradients that replicas sum
}

// prepared is a block; layers that are alike have one for them.
type prepared struct {
	kind workload.BlockKind
	blockTasks
	count  float64 // blocks like this one
	params float64
	summed float64        // of those, with gradients to be summed among replicas
	routed *workload.Part // an expert of a mixture
}

// Prepare works out the tasks of a job.
func Prepare(j *workload.Job, f *Fabric) *Prepared {
	mine := *j
	mine.Split = f.split
	o, laid := f.cache.tasksOf(&mine)
	p := &Prepared{j: &mine, f: f, shape: mine.Pipeline(), kinds: o.Order, places: mine.Places(o)}
	p.memory = mine.MemoryOf(mine.Holding(o), p.places)
	p.flops[0], p.flops[1] = mine.FlopsOf(o)
	p.blocks = make([]prepared, len(o.Kinds))
	all, routed := 0.0, 0.0
	for i := range o.Kinds {
		b := &o.Kinds[i]
		summed, experts := mine.Summed(b.Block)
		p.blocks[i] = prepared{
			kind: b.Kind, blockTasks: laid[i], count: b.Count, params: mine.Params(b.Block), summed: summed, routed: b.Routed(),
		}
		all, routed = all+b.Count*summed, routed+b.Count*experts
	}
	if routed > 0 {
		p.routed = routed / all
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
	times   pipeline.Times
	traffic [nGroups]Traffic
	late    map[int]float64 // stages of a slow node, by how many times as long they compute

	slow int       // the stage with most work
	work unit.Span // that it has of a micro-batch
	// that the step takes after computing and beside it: the update, the host, gradients that nothing hides
	after unit.Span
	spent unit.Span // of that, on the update
}

// stage is one rank's part of the pipeline.
type stage struct {
	fwd, bwd []unit.Span // by block: tensor-parallel traffic and recomputation included
	params   []float64   // by block, of one rank
	summed   []float64   // of those, with gradients to be summed among replicas
}

func (s *stage) forward() unit.Span  { return sum(s.fwd) }
func (s *stage) backward() unit.Span { return sum(s.bwd) }

func sum[T ~float64](list []T) T {
	t := T(0)
	for _, x := range list {
		t += x
	}
	return t
}

func (p *pricing) run() (*Result, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	return p.finish()
}

// begin works out all but the play of the pipeline.
func (p *pricing) begin() error {
	switch q := p.j.Precision; {
	case q == workload.NVFP4 && p.g.Model.Peak[cluster.FP4] == 0:
		return fmt.Errorf("%s has no FP4 matrix products; use fp8 or bf16", p.g.Model.Title)
	case q == workload.MXFP8 && p.g.gen < sim.Blackwell:
		return fmt.Errorf("%s has no MXFP8 matrix products, which Blackwell has first; use fp8, fp8-tensorwise or "+
			"fp8-blockwise", p.g.Model.Title)
	case q.Low() && p.g.Model.Peak[cluster.FP8] == 0:
		return fmt.Errorf("%s has no FP8 matrix products; use bf16", p.g.Model.Title)
	}
	if err := p.assignBlocks(); err != nil {
		return err
	}
	p.slow = p.slowest()
	x := &p.stages[p.slow]
	p.work = x.forward() + x.backward()
	if len(p.stages) == 1 && quietLayers(p.j) && p.lateness(0) == 1 {
		share := min(1, p.ahead()/p.work)
		for i := range x.fwd {
			x.fwd[i], x.bwd[i] = x.fwd[i]*share, x.bwd[i]*share
		}
		p.work *= share
	}
	return p.update()
}

// ahead is what a micro-batch takes where the host need not wait for the GPU within a step: starting kernels of long
// blocks it gets ahead, so that it may be slower than the GPU in others.
func (p *pricing) ahead() unit.Span {
	var times [3][2][]unit.Span // forward, backward and again, on the GPU and the host, by kind of blocks
	for k := range p.blocks {
		b := &p.blocks[k]
		fwd, bwd := p.j.Copied()
		for i, list := range [][]workload.Task{b.pass.Forward, b.pass.Backward, b.pass.Again} {
			gpu, host := p.g.both(list, p.j, 0)
			if i < 2 {
				gpu += unit.Volume(b.params * [2]float64{fwd, bwd}[i]).At(p.g.bandwidth())
			}
			times[i][0], times[i][1] = append(times[i][0], gpu), append(times[i][1], host)
		}
	}
	lead, at := unit.Span(0), unit.Span(0) // by which the GPU is behind the host, and when the host is done
	pass := func(i, k int) {
		gpu, host := times[i][0][k], times[i][1][k]
		at, lead = at+host, max(0, lead+gpu-host)
	}
	for range p.j.Micros() {
		for _, k := range p.kinds {
			pass(0, k)
		}
		for _, k := range slices.Backward(p.kinds) {
			pass(2, k)
			pass(1, k)
		}
	}
	return (at + lead) / unit.Span(p.j.Micros())
}

// update works out what follows the last micro-batch: gradients that nothing hides, the update,
// and what the host does in a step.
func (p *pricing) update() error {
	x := &p.stages[p.slow]
	if err := p.gradients(x, float64(p.j.Micros())); err != nil {
		return err
	}
	took, err := p.optimizer(p.trained(x))
	if err != nil {
		return err
	}
	p.spent = took * unit.Span(p.lateness(p.slow))
	p.after = p.spent + p.host()
	for _, g := range []Group{Data, Shards, Copies, ToHost} {
		p.after += p.traffic[g].Exposed
	}
	return nil
}

// host is what a step costs beside all else: nothing where it is one graph. The time between kernels stays there
// (three models on one H200, 2026-11-16).
func (p *pricing) host() unit.Span {
	if p.j.Graphs {
		return 0
	}
	return p.g.hostOf(p.j)
}

// hostOf is what the host does in a step: twice as much in Python, whose optimizers work on lists of tensors.
func (g *GPU) hostOf(j *workload.Job) unit.Span {
	t := unit.Span(g.f.common(stepHost) * 1e-3)
	if j.Kernels == workload.Eager {
		t *= 2
	}
	return t
}

// spread is how many times as long computing takes on the slowest of many ranks, which grows as the largest of so many
// numbers does.
func (g *GPU) spread(ranks int) float64 {
	return 1 + g.f.common(spread)*math.Sqrt(2*math.Log(float64(max(ranks, 1))))
}

// finish plays the pipeline, and adds up.
func (p *pricing) finish() (*Result, error) {
	j := p.j
	micros := float64(j.Micros())
	r := &Result{Ranks: j.Split.Ranks(), Tokens: float64(j.GlobalBatch) * float64(j.Seq)}
	r.Flops, r.Again = p.flops[0], p.flops[1]
	r.Compute = p.work * unit.Span(micros)
	if err := p.pipeline(r, micros, p.work); err != nil {
		return nil, err
	}
	r.Optimizer, r.Host = p.spent, p.host()
	late := unit.Span(p.g.spread(r.Ranks))
	r.Compute *= late
	r.Bubble *= late
	r.Step = r.Compute + r.Bubble + r.Optimizer + r.Host
	for g := range nGroups {
		t := &p.traffic[g]
		if t.Calls == 0 {
			continue
		}
		r.Traffic = append(r.Traffic, *t)
		r.Comm += t.Time
		r.Exposed += t.Exposed
	}
	// Tensor- and context-parallel traffic is in the work of the stages already.
	inside := p.traffic[Tensor].Exposed + p.traffic[Context].Exposed + p.traffic[Experts].Exposed
	r.Compute -= inside
	r.Step += r.Exposed - inside
	if f := p.g.Measured(j, float64(r.Exposed/r.Step)); f != 1 {
		r.scale(unit.Span(f))
	}
	peak := float64(p.g.Peak(j.Precision))
	if j.Precision.Low() {
		peak = float64(p.g.Peak(workload.BF16))
	}
	r.MFU = r.Flops / r.Step.Seconds() / float64(r.Ranks) / peak
	r.HFU = (r.Flops + r.Again) / r.Step.Seconds() / float64(r.Ranks) / peak
	r.Memory = p.g.beside(j, p.memory)
	if err := r.finite(); err != nil {
		return nil, err
	}
	return r, nil
}

// block prices a block.
func (p *pricing) block(b *prepared) (blockTime, error) {
	j := p.j
	x := blockTime{params: b.params, summed: b.summed}
	x.fwd, x.behind[0] = p.g.runWith(b.pass.Forward, j, 0, 0)
	x.bwd, x.behind[1] = p.g.runWith(b.pass.Backward, j, 0, 0)
	fwd, bwd := j.Copied()
	x.fwd += unit.Volume(b.params * fwd).At(p.g.bandwidth())
	x.bwd += unit.Volume(b.params * bwd).At(p.g.bandwidth())
	again, behind := p.g.runWith(b.pass.Again, j, 0, 0)
	again *= unit.Span(cmp.Or(j.Recomputed, 1))
	x.behind[2] = behind
	if b.kind == workload.Layer {
		if err := p.layerTraffic(&x, &again, b); err != nil {
			return x, err
		}
	}
	x.bwd += again
	if b.weight != nil {
		x.weight = min(p.g.Run(b.weight, j), x.bwd)
	}
	return x, nil
}

// layerTraffic adds the traffic within a layer: sums of tensor-parallel products, blocks of keys and
// values that travel round.
func (p *pricing) layerTraffic(x *blockTime, again *unit.Span, b *prepared) error {
	j, s := p.j, p.j.Split
	layers := b.count / float64(s.PP)
	micros := float64(j.Micros())
	tokens := float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	if s.TP > 1 {
		bytes := unit.Volume(tokens * float64(j.Model.Dims.Hidden) * j.Precision.Width())
		if err := p.tensorTraffic(x, again, b, bytes, layers*micros); err != nil {
			return err
		}
	}
	return p.otherTraffic(x, again, b, layers*micros)
}

// tensorTraffic is a sum for each of the two products whose ranks divide a layer's width; with sequence parallelism a
// gather and a sum, and backward another gather where frameworks wait for it. Computing waits for what is not hidden
// and what the host is not behind with anyway.
func (p *pricing) tensorTraffic(x *blockTime, again *unit.Span, b *prepared, bytes unit.Volume, times float64) error {
	j := p.j
	what, each, calls := "tensor-parallel all-reduces", 1.0, [2]float64{2, 2}
	one, limit, err := unit.Span(0), "", error(nil)
	back := unit.Span(0)
	if j.Split.SeqParallel {
		var gather, scatter unit.Span
		if gather, limit, err = p.f.Time(Tensor, coll.AllGather,
			bytes*unit.Volume(j.Precision.Operand()/j.Precision.Width())); err == nil {
			scatter, _, err = p.f.Time(Tensor, coll.ReduceScatter, bytes)
		}
		one, each, calls = gather+scatter, 2, [2]float64{4, 4}
		back = one
		switch {
		case err != nil:
		case j.TensorWaits: // inputs are gathered once more for the gradients of weights
			what, back, calls = "tensor-parallel gathers and sums", one+gather, [2]float64{4, 6}
		case p.f.inOneDomain(Tensor):
			one *= unit.Span(1 - p.g.f.common(tpHidden))
			back = one
		}
	} else {
		one, limit, err = p.f.Time(Tensor, coll.AllReduce, bytes)
		back = one
	}
	if err != nil {
		return err
	}
	quiet := x.fwd + x.bwd + *again
	n := float64(j.Repeats())
	starts := float64(tensorStarts)
	if j.TensorWaits {
		starts = collectiveStarts
	}
	x.fwd, x.behind[0] = p.g.runWith(b.pass.Forward, j, calls[0]*starts, 2*one)
	x.bwd, x.behind[1] = p.g.runWith(b.pass.Backward, j, calls[1]*starts, 2*back)
	if n > 0 {
		*again, x.behind[2] = p.g.runWith(b.pass.Again, j, n*calls[0]*starts, unit.Span(2*n)*one)
		*again *= unit.Span(cmp.Or(j.Recomputed, 1))
	}
	all := (calls[0]*(1+n) + calls[1]) / each
	open := max(0, x.fwd+x.bwd+*again-quiet) / unit.Span(all)
	p.count(Tensor, what, bytes, all*times, (2*one*unit.Span(1+n)+2*back)/unit.Span(all), open, limit)
	return nil
}

// otherTraffic is that of ranks which share sequences and experts.
func (p *pricing) otherTraffic(x *blockTime, again *unit.Span, b *prepared, times float64) error {
	if err := p.contextTraffic(x, again, b, times); err != nil {
		return err
	}
	return p.expertTraffic(x, again, b, times)
}

// count adds calls of a group. Waiting may be longer than the calls themselves, by what slows computing
// beside them or by waiting for calls of other ranks; it is traffic all the same.
func (p *pricing) count(g Group, what string, bytes unit.Volume, calls float64, each, exposed unit.Span, limit string) {
	t := &p.traffic[g]
	if t.Calls == 0 {
		*t = Traffic{Group: g, What: what, Bytes: bytes, Limit: limit}
	}
	t.Calls += calls
	t.Time += unit.Span(calls) * max(each, exposed)
	t.Exposed += unit.Span(calls) * exposed
}

// Fabric is what prices its collectives.
func (p *Prepared) Fabric() *Fabric { return p.f }

// Job is what is priced.
func (p *Prepared) Job() *workload.Job { return p.j }
