package workload

import (
	"cmp"
	"strings"

	"busbar.dev/unit"
	"busbar.dev/workload/pipeline"
)

// Adam is the number of moments that the optimizer keeps for every parameter.
const Adam = 2

// Memory is what one GPU holds at the fullest moment.
type Memory struct {
	Params      unit.Volume `json:"params"`
	Grads       unit.Volume `json:"grads"`
	Optimizer   unit.Volume `json:"optimizer"`
	Activations unit.Volume `json:"activations"`
	Other       unit.Volume `json:"other"`
	// Driver is of the driver and of communicators, which frameworks do not count.
	Driver unit.Volume `json:"driver"`
	Host   unit.Volume `json:"host"` // of the host's memory, for this GPU; not in Total
}

// Total is all that the GPU holds.
func (m Memory) Total() unit.Volume {
	return m.Params + m.Grads + m.Optimizer + m.Activations + m.Other + m.Driver
}

// Params is how many parameters of a block one rank of its tensor-parallel group holds.
func (j *Job) Params(b *Block) float64 {
	dense, experts := j.held(b)
	return dense + experts
}

// held is what a rank has of a block: what all ranks of its data-parallel group have, and its
// share of the experts.
func (j *Job) held(b *Block) (dense, experts float64) {
	s := j.Split.filled()
	tp, etp := float64(s.TP), float64(s.ETP)
	for i := range b.Parts {
		p := &b.Parts[i]
		whole, cut := p.count()
		if p.Experts > 0 {
			experts += (whole + cut/etp) * float64(p.Experts) / float64(s.EP)
			continue
		}
		dense += whole + cut/tp
	}
	return dense, experts
}

// Summed is how many parameters of a block have gradients that replicas sum, and how many of those are experts', which
// fewer ranks hold.
func (j *Job) Summed(b *Block) (all, experts float64) {
	dense, experts := j.held(b)
	if j.LoRA.Frozen() {
		return j.Trained(b), 0
	}
	return dense + experts, experts
}

// SameExperts is how many ranks hold the same experts.
func (s Split) SameExperts() int {
	s = s.filled()
	return s.DP * s.CP * s.TP / (s.EP * s.ETP)
}

// count is the parameters of a part: those that every rank of a tensor-parallel group has, and
// those that they divide.
func (p *Part) count() (whole, cut float64) {
	if !p.hasTensors() {
		return 0, 0
	}
	n := float64(p.Out)
	switch {
	case p.Tied:
		n = 0
	case p.Shape != nil:
		n = 1
		for _, d := range p.Shape {
			n *= float64(d)
		}
	case p.Kind == Matmul || p.Kind == Lookup:
		n *= float64(p.In)
	}
	bias := 0.0
	if p.Bias {
		bias = float64(p.Out)
	}
	switch p.Cut {
	case ByOut:
		return 0, n + bias
	case ByIn:
		return bias, n
	}
	return n + bias, 0
}

// ParamWidth is the bytes of a parameter as it is computed with and gathered.
func (j *Job) ParamWidth() float64 {
	if j.Precision == FP32 || j.Precision == TF32 {
		return 4
	}
	return 2
}

// GatherWidth is the bytes of a parameter that is gathered from those who divide it: frozen ones of fewer bits travel
// as they are.
func (j *Job) GatherWidth() float64 {
	switch {
	case j.LoRA.Frozen():
		return j.frozenWidth()
	case j.Precision.Operand() == 1 && j.Kernels == Fused: // weights are kept so (Megatron-Core's fp8-param-gather)
		return 1
	}
	return j.ParamWidth()
}

// SumsWhole reports whether every rank gets the sum of all gradients although it updates a share: PyTorch's
// ZeroRedundancyOptimizer leaves the all-reduce to DDP and broadcasts the new parameters after the update.
func (j *Job) SumsWhole() bool {
	return j.Split.ZeRO == 1 && j.Framework != nil && strings.HasPrefix(j.Framework.ID, "ddp@")
}

// GradWidth is the bytes of a gradient as it is summed among ranks: as wide as what is
// computed with, float32 where weights are kept so and not divided.
func (j *Job) GradWidth() float64 {
	if j.Precision == FP32 || j.Precision == TF32 || j.WideSums || j.Autocasts() && j.Split.ZeRO < 3 ||
		j.Keeps == KeepWide && j.Split.ZeRO == 0 {
		return 4
	}
	return 2
}

// keepsWide reports whether weights are float32 between steps and cast to be computed with.
func (j *Job) keepsWide() bool { return j.Precision.Amp() || j.Keeps == KeepWide }

// Autocasts reports whether the framework casts float32 weights where they are used, and what is between products stays
// float32.
func (j *Job) Autocasts() bool {
	s := j.Split.filled()
	alone := s.ZeRO == 0 && s.TP*s.PP == 1 // with tp or pp torchtitan leaves it out
	return j.Precision.Amp() || j.Autocast && j.Precision.Width() == 2 && alone && !j.LoRA.Frozen()
}

// state is the bytes a parameter of weights, gradients and the optimizer: float32 weights with
// gradients of their own for amp and fp32; 16-bit weights with a float32 copy in Megatron and, with gradients
// as narrow, in DeepSpeed; all in 16 bits where a framework trains purely so.
func (j *Job) state() (weight, grad, optimizer float64) {
	copied, moments := j.Optimizer.keeps()
	switch {
	case j.Precision == FP32 || j.Precision == TF32:
		return 4, 4, moments
	case j.keepsWide() && copied < 4: // 16-bit weights, and what is missing of float32 ones
		return 2, 4, copied + moments
	case j.keepsWide():
		return 4, 4, moments
	case j.Keeps == KeepSums:
		return 2, 4, copied + moments
	case j.Kernels == Fused:
		return j.GatherWidth(), j.GradWidth(), copied + moments
	case j.Keeps == KeepCopy:
		return 2, 2, copied + moments
	}
	return 2, 2, moments / 2
}

// UpdateBytes is what the optimizer reads and writes for a parameter: gradients read twice,
// once for their norm.
func (j *Job) UpdateBytes() float64 {
	weight, grad, state := j.state()
	bytes := 2*grad + 2*state + 2*weight
	if j.Optimizer == AdamDefault && state < 4*Adam {
		bytes *= narrow
	}
	return bytes * j.Optimizer.passes()
}

// narrow is how much longer an optimizer takes whose state is in 16 bits than its bytes: fused AdamW of
// PyTorch 2.11 reached 2.7 TB/s of an H200 whose copies reach 4.2 (step/testdata/h200.json).
const narrow = 1.35

// Holding is how many parameters a rank holds before anything is divided among replicas, and what a token leaves in the
// blocks for the backward pass.
type Holding struct {
	Layers      float64 // of all layers together, whatever the pipeline
	Trained     float64 // of adapters, where they alone are trained
	Experts     float64 // of those, the experts'
	Entry, Exit float64
	Count       int    // layers
	Ends        [2]int // blocks before and after the layers
	// Kept is how many numbers a token leaves for the backward pass in all, where the model's parts say that.
	Kept                         float64
	left, leftBefore, leftBehind Leaving
	scored                       float64 // of a token's words
	tied                         bool
}

// Holding adds up a rank's parameters; they depend on tp and ep only.
func (j *Job) Holding(o *Outline) Holding {
	var h Holding
	for i := range o.Kinds {
		b := &o.Kinds[i]
		dense, experts := j.held(b.Block)
		h.Kept += b.Count * b.kept()
		switch n := (dense + experts) * b.Count; b.Kind {
		case Layer:
			h.Layers += n
			h.Experts += experts * b.Count
			if j.LoRA.Frozen() {
				h.Trained += j.Trained(b.Block) * b.Count
			}
			h.Count += int(b.Count)
			h.left = h.left.add(j.leaving(b.Block), b.Count)
		case Entry:
			h.Entry += n
			h.Ends[0] += int(b.Count)
			h.leftBefore = j.leaving(b.Block)
		default:
			h.Exit += n
			h.Ends[1] += int(b.Count)
			h.leftBehind = j.leaving(b.Block)
			for k := range b.Parts {
				if p := &b.Parts[k]; p.Kind == Matmul && p.Cut == ByOut && !p.Once {
					h.scored, h.tied = cmp.Or(j.Masked, 1), p.Tied
				}
			}
		}
	}
	return h
}

// Memory adds up what the GPU that holds most holds.
func (j *Job) Memory() Memory {
	o := j.Model.Outline()
	return j.MemoryOf(j.Holding(o), j.Places(o))
}

// MemoryOf is the memory of the GPU that holds most, whose parameters were added up, of a pipeline whose places begin
// at blocks. With as many layers or fewer than one before it no stage but the last holds more.
func (j *Job) MemoryOf(h Holding, places []int) Memory {
	shape := j.Pipeline()
	var fullest Memory
	most := -1
	for r := range shape.Ranks {
		st := h.stage(shape, places, r)
		if st.layers <= most && !st.last {
			continue
		}
		if m := j.stageMemory(&h, &st); most < 0 || m.Total() > fullest.Total() {
			fullest = m
		}
		most = max(most, st.layers)
	}
	return fullest
}

// StageMemory is that of a rank of a stage of the pipeline.
func (j *Job) StageMemory(stage int) Memory {
	o := j.Model.Outline()
	h := j.Holding(o)
	st := h.stage(j.Pipeline(), j.Places(o), stage)
	return j.stageMemory(&h, &st)
}

// stage is what a rank has of a pipeline.
type stage struct {
	layers      int
	first, last bool
	under       float64 // micro-batches that it holds what they left of
}

// stage is the rank's.
func (h *Holding) stage(shape pipeline.Shape, places []int, rank int) stage {
	st := stage{under: 1}
	if shape.Ranks > 1 {
		st.under = shape.Held(rank)
	}
	last := shape.Ranks*shape.Chunks - 1
	for c := range shape.Chunks {
		place := shape.Place(rank, c)
		st.layers += places[place+1] - places[place]
		if place == 0 {
			st.first, st.layers = true, st.layers-h.Ends[0]
		}
		if place == last {
			st.last, st.layers = true, st.layers-h.Ends[1]
		}
	}
	st.layers = max(st.layers, 0)
	return st
}

// stageMemory is what a rank of a stage holds.
func (j *Job) stageMemory(h *Holding, st *stage) Memory {
	s := j.Split.filled()
	part := float64(st.layers) / float64(max(h.Count, 1))
	ends := 0.0
	if st.first {
		ends += h.Entry
	}
	if st.last {
		ends += h.Exit
	}
	if h.tied && st.last && !st.first { // which has a copy of the embedding then
		ends += h.Entry
	}
	x := &state{j: j, most: h.Layers*part + ends, experts: h.Experts * part, ends: ends}
	if x.trained = 1; j.LoRA.Frozen() {
		x.trained = h.Trained * part / max(x.most, 1)
	}
	x.block = h.Layers / float64(max(h.Count, 1))
	if s.Shard <= s.EP { // experts, which no other rank has a part of, are never gathered
		x.block -= h.Experts / float64(max(h.Count, 1))
	}
	m := x.memory()
	one, layer, host := j.activations(h, st)
	kept, scores := one*unit.Volume(st.under), unit.Volume(0)
	if st.last {
		scores = j.logits(h)
	}
	m.Activations = kept
	m.Other += scores + j.tensorBuffers(st)
	if j.Micros() == 1 && !j.allocatesGrads() {
		// Gradients take the place of the activations that they are computed from.
		m.Grads = max(0, m.Grads+layer-kept-scores)
	} else { // one layer is whole, when the scores of words are gone
		m.Activations += max(0, layer-scores)
	}
	m.Other += x.passing(one, kept, scores)
	j.offload(&m, x.over(1), x.trained)
	m.Host += host
	return m
}

// allocatesGrads reports whether gradients have their place all the time and not from when they are computed: in
// buffers that are summed, in DDP's buckets, in graphs.
func (j *Job) allocatesGrads() bool {
	s := j.Split.filled()
	return j.Kernels == Fused || j.Keeps == KeepSums || j.Keeps == KeepCopy || j.Graphs || s.DP > 1 && s.ZeRO < 3 ||
		j.buckets()
}

// buckets reports whether DDP's buckets are there, which it makes for one replica too.
func (j *Job) buckets() bool {
	return j.Framework != nil && j.Framework.Name == "ddp" && j.Split.ZeRO == 0
}

// state is what a rank keeps of parameters.
type state struct {
	j       *Job
	most    float64 // parameters, before anything is divided
	experts float64 // of those
	ends    float64 // of those, outside layers
	block   float64 // of a layer
	trained float64 // share of them
}

// over is how many parameters are left to a rank where replicas divide what a level of ZeRO says.
func (x *state) over(level int) float64 {
	s := x.j.Split.filled()
	if s.ZeRO < level {
		return x.most
	}
	return (x.most-x.experts)/float64(s.Shard) + x.experts/max(1, float64(s.Shard*s.TP)/float64(s.EP*s.ETP))
}

// memory is parameters, gradients, the optimizer's state, and what is whole of them for a while.
func (x *state) memory() Memory {
	j, s := x.j, x.j.Split.filled()
	weight, grad, kept := j.state()
	level := 3
	if j.keepsWide() && s.ZeRO > 1 { // FSDP's shards are of float32 whatever is gathered
		level = 2
	}
	m := Memory{
		Params: unit.Volume(x.over(level) * weight), Grads: unit.Volume(x.over(2) * grad),
		Optimizer: unit.Volume(x.over(1) * kept),
	}
	if j.keepsWide() && s.ZeRO > 1 && s.PP > 1 && j.Micros() > 1 && !j.LoRA.Frozen() {
		// Stages of PyTorch's pipelines sum gradients of micro-batches before FSDP divides them
		// (backward_maybe_with_nosync): whole ones in float32.
		m.Grads = unit.Volume(x.most * grad)
	}
	if j.LoRA.Frozen() {
		// Only matrices of layers are kept in fewer bits: bitsandbytes and torchao leave the embedding and the head as they
		// are.
		m.Params = unit.Volume(x.over(3) * (j.frozenWidth() + (j.ParamWidth()-j.frozenWidth())*x.ends/max(x.most, 1) +
			x.trained*weight))
		m.Grads, m.Optimizer = m.Grads*unit.Volume(x.trained), m.Optimizer*unit.Volume(x.trained)
	}
	if j.Reference && !j.LoRA.Frozen() { // divided as what is trained
		m.Params += unit.Volume(x.over(3) * j.ParamWidth())
	}
	m.Other = unit.Volume(x.gathered())
	if j.buckets() && j.Micros() > 1 { // gradients that are not summed yet lie beside them (no_sync)
		m.Other += m.Grads
	}
	return m
}

// gathered is the bytes of parameters and gradients that are whole while they are computed with.
func (x *state) gathered() float64 {
	j, s := x.j, x.j.Split.filled()
	width := j.ParamWidth()
	switch {
	case j.Keeps == KeepCopy && s.ZeRO == 3:
		// DeepSpeed: a layer's parameters, module by module where they are more than max_live_parameters, its gradients, and
		// two buckets of reduce_bucket_size
		return 2 * (min(x.block, mostLive) + min(reduceBucket, x.most)*x.trained) * width
	case s.ZeRO == 3 && s.PP == 1:
		// FSDP2: a layer's parameters as they are gathered and as they are used, the next layer's as they are gathered; its
		// gradients, and these as they are summed. What is outside layers stays whole.
		return x.block*(3*j.GatherWidth()+(width+j.GradWidth())*x.trained) + x.ends*width
	case s.ZeRO > 1 && j.keepsWide():
		return x.most * width
	case j.keepsWide() && width < 4:
		// weights with gradients are kept as cast until the end of the backward pass; frozen ones are not cast
		return width * x.most * x.trained
	}
	return 0
}

// Sizes of DeepSpeed's ZeRO where nobody says: reduce_bucket_size in gradients, max_live_parameters.
const (
	reduceBucket = 5e8
	mostLive     = 1e9
)

// passing is what is there for a while beside all else where every micro-batch has gradients of its own that are added
// to float32 sums, and where new parameters are gathered from lists of pieces, as nanotron does it: as far as what a
// micro-batch leaves, or all of them, has no place for it when it is gone.
func (x *state) passing(one, all, scores unit.Volume) unit.Volume {
	j, s := x.j, x.j.Split.filled()
	if j.Optimizer == AdamForeach { // whose steps of all parameters are there at once
		return max(0, unit.Volume(4*x.over(1)*x.trained)-all-scores)
	}
	if j.Keeps != KeepSums {
		return 0
	}
	weights := unit.Volume(2 * x.most)
	more := max(0, weights-one-scores)
	if s.DP > 1 && s.ZeRO == 0 {
		more += weights // DDP's buckets
	}
	if s.DP > 1 && s.ZeRO == 1 {
		more += max(0, weights-all-scores)
		inner := unit.Volume(4 * j.tokens() * float64(j.Model.Dims.filled().wide()) / float64(s.TP))
		if weights > max(scores*4/10, inner) { // in one piece
			more += weights
		}
	}
	return more
}

// tokens are those of a micro-batch on a rank.
func (j *Job) tokens() float64 {
	return float64(j.MicroBatch) * float64(j.Seq) / float64(j.Split.filled().CP)
}

// activations are what a micro-batch leaves in a stage, what one layer does where all of it is computed again, and what
// the host keeps of it.
func (j *Job) activations(h *Holding, st *stage) (kept, layer, host unit.Volume) {
	s := j.Split.filled()
	tokens, tp := j.tokens(), float64(s.TP)
	if h.Kept > 0 {
		return unit.Volume(tokens * h.Kept * j.Precision.Width()), 0, 0
	}
	between := 1.0
	if s.SeqParallel {
		between = tp
	}
	all := h.left.all.per(between, tp)
	whole := all + h.left.scores*float64(j.Seq)/tp
	of := whole
	switch j.again() {
	case Selective:
		of = all
	case PerOp:
		of = h.left.chosen.per(between, tp)
	case Light:
		of = all - h.left.cheap.per(between, tp)
	case Full:
		again := cmp.Or(j.Recomputed, 1)
		of = h.left.input.per(between, tp)*again + whole*(1-again)
		layer = unit.Volume(tokens * whole / float64(max(h.Count, 1)))
	}
	away := of * float64(min(j.HostLayers, st.layers)) / float64(max(h.Count, 1))
	of *= float64(st.layers-j.hostLayers(st.layers)) / float64(max(h.Count, 1))
	if st.first {
		of += h.leftBefore.all.per(between, tp)
	}
	if st.last {
		of += h.leftBehind.all.per(between, tp)
	}
	return unit.Volume(tokens * of), layer, unit.Volume(tokens * away)
}

// tensorBuffers is the bytes of what tensor-parallel ranks gather: Megatron-LM has one buffer for it, nanotron one
// forward and one backward for every micro-batch under way. There what collectives put out, twice a layer, stays as
// long as the host is ahead of the GPU, which it is unless it exchanges the shapes of messages in a pipeline
// (record_stream, PyTorch before 2.7).
func (j *Job) tensorBuffers(st *stage) unit.Volume {
	s := j.Split.filled()
	if s.TP == 1 {
		return 0
	}
	one := unit.Volume(j.tokens() * float64(j.Model.Dims.Hidden) * j.Precision.Width())
	switch {
	case j.Keeps != KeepSums:
		return one
	case s.PP > 1:
		return one * unit.Volume(2*st.under)
	}
	return one * unit.Volume(2+2*st.layers)
}

// scoreBytes are what the loss keeps of the score of a word, by kernels: in eager frameworks its logarithm and two
// gradients in float32; compiled, as computed, in float32, and the gradient; Megatron-LM works in place in one
// float32 copy; nanotron's three sizes of blocks (as computed, float32, softmax) do not take each other's place.
var scoreBytes = map[Kernels]unit.Volume{Eager: 3 * 4, Compiled: 2 + 4 + 4, Fused: 2 + 4 + 2, Mixed: 2 + 4 + 4}

// logits are what the loss keeps: the scores of all words. Where the gradient of a tied head stays between
// micro-batches, it lies in the middle of the place of the float32 ones, which then need another.
func (j *Job) logits(h *Holding) unit.Volume {
	s := j.Split.filled()
	if j.Model.Replicated() {
		return 0 // among what parts keep
	}
	each := scoreBytes[j.Kernels]
	if j.Plain && j.Kernels == Compiled { // layers alone
		each = scoreBytes[Eager]
	}
	switch j.Loss {
	case LossInPlace:
		each = unit.Volume(j.Precision.Width())
	case LossChunked:
		each /= lossChunks
	}
	if j.Keeps == KeepSums && s.PP == 1 && j.Micros() > 1 && h.tied {
		each += 4
	}
	return unit.Volume(j.tokens()*h.scored*float64(j.Model.Dims.Vocab)/float64(s.TP)) * each
}

// FlopsOf is the floating-point operations of a step of a model with this outline, and of those
// that are computed again.
func (j *Job) FlopsOf(o *Outline) (model, again float64) {
	for i := range o.Kinds {
		b := &o.Kinds[i]
		n := b.Count * float64(j.GlobalBatch)
		f := j.forward(b.Forward) * n
		if j.Reference {
			again += f
		}
		if model += 3 * f; j.LoRA.Frozen() { // whose weights have no gradients
			model -= f
		}
		if b.Kind != Layer {
			continue
		}
		part := cmp.Or(j.Recomputed, 1)
		switch j.again() {
		case PerOp:
			again += part * f / 3
		case Full:
			again += part * f
		case Selective:
			for _, p := range b.Parts {
				if p.Kind == Attention {
					again += j.forward(p.Forward) * n
				}
			}
		}
	}
	return model, again
}

// KVWidth is the width of a token's keys, or values.
func (m *Model) KVWidth() int64 {
	d := m.Dims.filled()
	return d.KVHeads * d.HeadDim
}

// CheckpointBytes is what a checkpoint holds of a job: every trained parameter once, as it is kept, and the
// optimizer's state of it. Gradients and activations are computed again, frozen weights are those of the start, and
// replicas save one copy between them.
func (j *Job) CheckpointBytes() unit.Volume {
	weight, _, state := j.state()
	n := float64(j.Model.Params())
	if j.LoRA.Frozen() {
		n = j.Adapters()
	}
	return unit.Volume(n * (weight + state))
}
