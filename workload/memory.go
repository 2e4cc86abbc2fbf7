package workload

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"busbar.dev/unit"
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
	Host        unit.Volume `json:"host"` // of the host's memory, for this GPU; not in Total
}

// Total is all that the GPU holds.
func (m Memory) Total() unit.Volume {
	return m.Params + m.Grads + m.Optimizer + m.Activations + m.Other
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

// Summed is how many parameters of a block have gradients to be summed, as if all ranks that
// hold the same parameters held those of the experts too: an expert's are held by fewer, and by
// one alone where every rank has its own.
func (j *Job) Summed(b *Block) float64 {
	s := j.Split.filled()
	dense, experts := j.held(b)
	if j.LoRA.Frozen() {
		return j.Trained(b)
	}
	n := float64(s.DP * s.CP)
	same := n * float64(s.TP) / float64(s.EP*s.ETP)
	if experts == 0 || n <= 1 {
		return dense + experts
	}
	return dense + experts*(same-1)/same*n/(n-1)
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
	if j.Precision == FP32 || j.Precision == TF32 || j.WideSums || j.Precision.Amp() && j.Split.ZeRO < 3 ||
		j.Keeps == KeepWide && j.Split.ZeRO == 0 {
		return 4
	}
	return 2
}

// keepsWide reports whether weights are float32 between steps and cast to be computed with.
func (j *Job) keepsWide() bool { return j.Precision.Amp() || j.Keeps == KeepWide }

// state is the bytes a parameter of weights, gradients and the optimizer: float32 weights with
// gradients of their own for amp and fp32; 16-bit weights with a float32 copy in Megatron and, with gradients
// as narrow, in DeepSpeed; all in 16 bits where a framework trains purely so.
func (j *Job) state() (weight, grad, optimizer float64) {
	switch {
	case j.Precision == FP32 || j.Precision == TF32 || j.keepsWide():
		return 4, 4, 4 * Adam
	case j.Kernels == Fused:
		return 2, 4, 4 + 4*Adam
	case j.Keeps == KeepCopy:
		return 2, 2, 4 + 4*Adam
	}
	return 2, 2, 2 * Adam
}

// UpdateBytes is what the optimizer reads and writes for a parameter: gradients read twice,
// once for their norm.
func (j *Job) UpdateBytes() float64 {
	weight, grad, state := j.state()
	if u := j.Model.Looped; u != nil {
		if j.Keeps == KeepCopy { // gradients are widened first, and weights narrowed after it
			return u.Bytes + 2*(4+2)
		}
		return u.Bytes
	}
	bytes := 2*grad + 2*state + 2*weight
	if state < 4*Adam {
		bytes *= narrow
	}
	return bytes
}

// UpdateStarts is the kernels that an optimizer starts which updates tensors one by one; 0 for others, whose starts are
// part of a step's host work.
func (j *Job) UpdateStarts() float64 {
	if j.Model.Looped == nil {
		return 0
	}
	return j.Model.Looped.Starts * float64(len(j.Model.Tensors()))
}

// narrow is how much longer an optimizer takes whose state is in 16 bits than its bytes: fused AdamW of
// PyTorch 2.11 reached 2.7 TB/s of an H200 whose copies reach 4.2 (step/testdata/h200.json).
const narrow = 1.35

// Holding is how many parameters a rank holds before anything is divided among replicas.
type Holding struct {
	Layers      float64 // of all layers together, whatever the pipeline
	Trained     float64 // of adapters, where they alone are trained
	Experts     float64 // of those, the experts'
	Entry, Exit float64
	Count       int // layers
	// Attentions and MLPs are how many layers have one, Scans how many have a scan, whose activations are Scanned numbers
	// a token in all.
	Attentions, MLPs, Scans, Scanned float64
	// Kept is how many numbers a token leaves for the backward pass in all, where the model's parts say that.
	Kept float64
}

// Holding adds up a rank's parameters; they depend on tp and ep only.
func (j *Job) Holding(o *Outline) Holding {
	var h Holding
	for i := range o.Kinds {
		b := &o.Kinds[i]
		dense, experts := j.held(b.Block)
		h.Kept += b.Count * b.kept(j.Seq)
		switch n := (dense + experts) * b.Count; b.Kind {
		case Layer:
			h.Layers += n
			h.Experts += experts * b.Count
			if j.LoRA.Frozen() {
				h.Trained += j.Trained(b.Block) * b.Count
			}
			h.Count += int(b.Count)
			h.mix(b, j.ownScans())
		case Entry:
			h.Entry += n
		default:
			h.Exit += n
		}
	}
	return h
}

// mix counts what layers are made of.
func (h *Holding) mix(b *BlockOutline, own bool) {
	rows := 0.0 // products whose results are added to the residual
	for i := range b.Parts {
		switch p := &b.Parts[i]; {
		case p.Kind == Attention:
			h.Attentions += b.Count
			rows--
		case p.Kind == Scan:
			h.Scans += b.Count
			h.Scanned += b.Count * p.kept(own)
			rows--
		case p.Kind == Matmul && p.Cut == ByIn:
			rows++
		}
	}
	if rows > 0 {
		h.MLPs += b.Count
	}
}

// Memory adds up what one GPU holds.
func (j *Job) Memory() Memory { return j.MemoryOf(j.Holding(j.Model.Outline())) }

// MemoryOf is the memory of a GPU whose parameters were added up.
func (j *Job) MemoryOf(h Holding) Memory {
	s := j.Split.filled()
	pp := float64(s.PP)
	// The fullest stage, where layers do not divide evenly.
	full := math.Ceil(float64(h.Count)/pp) / max(float64(h.Count), 1)
	ends := max(h.Entry, h.Exit)
	if s.PP == 1 {
		ends = h.Entry + h.Exit
	}
	most := h.Layers*full + ends // parameters
	trained := 1.0               // share of the parameters
	if j.LoRA.Frozen() {
		trained = h.Trained * full / max(most, 1)
	}
	weight, grad, state := j.state()
	own := h.Experts * full
	over := func(level int) float64 { // what is left of all
		if s.ZeRO < level || level == 3 && s.PP > 1 { // whose parameters stay gathered until the step's end
			return most
		}
		return (most-own)/float64(s.Shard) + own/max(1, float64(s.Shard*s.TP)/float64(s.EP*s.ETP))
	}
	m := Memory{
		Params: unit.Volume(over(3) * weight), Grads: unit.Volume(over(2) * grad), Optimizer: unit.Volume(over(1) * state),
	}
	if j.LoRA.Frozen() {
		// Only matrices of layers are kept in fewer bits: bitsandbytes and torchao leave the embedding and the head as they
		// are.
		m.Params = unit.Volume(over(3) * (j.frozenWidth() + (j.ParamWidth()-j.frozenWidth())*ends/max(most, 1) +
			trained*weight))
		m.Grads, m.Optimizer = m.Grads*unit.Volume(trained), m.Optimizer*unit.Volume(trained)
	}
	if j.Reference && !j.LoRA.Frozen() { // divided as what is trained
		m.Params += unit.Volume(over(3) * j.ParamWidth())
	}
	if s.ZeRO == 3 && s.Shard > 1 && s.PP == 1 { // two blocks are whole
		cut := h.Layers
		if s.Shard <= s.EP { // but for experts, which no other rank has a part of
			cut -= h.Experts
		}
		m.Other += unit.Volume(2 * cut / float64(max(h.Count, 1)) * j.ParamWidth())
	}
	kept, layer := j.activations(&h, pp)
	m.Activations, m.Other = kept, m.Other+j.logits()
	if j.Kernels != Fused && j.Micros() == 1 && s.DP == 1 && !j.Graphs {
		// Gradients take the place of the activations that they are computed from; in a graph they have addresses of their
		// own.
		m.Grads = max(0, m.Grads+layer-m.Activations-j.logits())
	} else { // one layer is whole, when the scores of words are gone
		m.Activations += max(0, layer-j.logits())
	}
	// weights with gradients are kept as cast until the end of the backward pass; frozen ones are not cast
	if j.keepsWide() && j.ParamWidth() < 4 && s.ZeRO < 3 {
		m.Other += unit.Volume(2 * most * trained)
	}
	m.Other += Driver
	j.offload(&m, over(1), trained)
	return m
}

// Driver is what the driver and the libraries take of a GPU's memory for themselves: contexts,
// code, workspaces. On one H200 with PyTorch it was 1.2 to 1.8 GB.
const Driver unit.Volume = 1.5e9

// activations of the micro-batches that are under way in the fullest stage, after Korthikanti et al. 2022, table 2,
// with fused attention where there are no scores to keep; and of one layer where all of it is computed again.
func (j *Job) activations(has *Holding, pp float64) (kept, layer unit.Volume) {
	s := j.Split.filled()
	d := j.Model.Dims.filled()
	tokens := float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	h, tp := float64(d.Hidden), float64(s.TP)
	between := 1.0
	if s.SeqParallel {
		between = tp
	}
	if has.Kept > 0 {
		return unit.Volume(tokens * has.Kept * j.Precision.Width()), 0
	}
	layers := float64(max(has.Count, 1))
	wide := j.Precision.Width() / 2
	ffn := float64(d.wide()) / h
	norms := (has.Attentions + has.Scans + has.MLPs) / layers
	// results of operations, of which per-op keeps some whatever is between them
	chosen := tokens * h * wide * (5*norms/between + (8*has.Attentions+4*ffn*has.MLPs)/layers/tp)
	each := chosen
	switch {
	case j.Kernels == Eager: // the inputs of every single operation, and masks of dropout
		each *= 1.6
		if j.LoRA.Frozen() { // norms whose numbers are frozen do not keep what they scale
			each -= tokens * h * wide * 2 * norms / between
		}
	case j.Kernels == Compiled && j.Precision.Low(): // the inputs of products are kept in their bits
		each -= tokens * h * wide * (norms/between + ffn*has.MLPs/layers/tp)
	}
	if j.Precision.Amp() { // norms and their inputs in float32, casts of inputs
		each *= 1.15
		if j.Kernels == Eager && powers(j.Model) { // what a power gives is float32
			each *= 1.35
		}
	}
	scanned := 2 * tokens * wide * has.Scanned / layers / tp
	each += scanned
	scores := 0.0
	if j.Unfused {
		scores = 5 * float64(d.Heads) * float64(j.Seq) * tokens / tp * wide * has.Attentions / layers
	}
	of := each + scores
	switch j.again() {
	case Selective:
		of = each
	case PerOp:
		of = 0.6 * (chosen + scanned)
	case Light:
		of = each * 0.7
	case Full:
		of = 2*tokens*h*wide/between*cmp.Or(j.Recomputed, 1) + of*(1-cmp.Or(j.Recomputed, 1))
		layer = unit.Volume(each + scores)
	}
	under := 1.0
	if s.PP > 1 {
		under = j.Pipeline().Held()
	}
	return unit.Volume(of * math.Ceil(layers/pp) * under), layer
}

// powers says that a layer's nonlinearity is a formula with powers, as GPT-2's.
func powers(m *Model) bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == Layer {
			return !gated(b) && !slices.ContainsFunc(b.Parts, func(p Part) bool { return p.Single })
		}
	}
	return true
}

// logits are what the loss keeps: the scores of all words, in float32 too.
func (j *Job) logits() unit.Volume {
	s := j.Split.filled()
	if s.PP > 1 || j.Model.Replicated() {
		return 0 // not in the first stage, or among what parts keep
	}
	tokens := float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	bytes := unit.Volume(tokens * float64(j.Model.Dims.Vocab) / float64(s.TP))
	if j.Kernels == Eager { // as computed, in float32, their logarithms, and the gradient
		return bytes * (2 + 4 + 4 + 4)
	}
	return bytes * (2 + 4)
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

// CheckpointBytes is what a checkpoint holds of a job: every parameter once, as it is kept, and the
// optimizer's state of it. Gradients and activations are computed again, and replicas save one copy
// between them.
func (j *Job) CheckpointBytes() unit.Volume {
	weight, _, state := j.state()
	return unit.Volume(float64(j.Model.Params()) * (weight + state))
}
