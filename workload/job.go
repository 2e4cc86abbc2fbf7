package workload

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/unit"
	"busbar.dev/workload/pipeline"
)

// Recompute is which activations are computed again in the backward pass.
type Recompute string

// Modes of recomputation (Korthikanti et al. 2022).
const (
	None      Recompute = "none"
	Selective Recompute = "selective" // the core of attention
	Full      Recompute = "full"      // whole layers
	// PerOp keeps attention and every second product, and computes the rest of a layer again (torchtitan's selective
	// checkpoints by operation).
	PerOp Recompute = "per-op"
	// Light computes again what is cheap and large: norms, nonlinearities, and the products that widen latent attention
	// (Megatron-Core's modules layernorm, moe_act, mla_up_proj).
	Light Recompute = "light"
)

// Kernels is how well the operations between products are put together.
type Kernels string

// Kinds of kernels.
const (
	Eager    Kernels = "eager"    // one kernel an operation, started by Python
	Compiled Kernels = "compiled" // fused by a compiler
	Fused    Kernels = "fused"    // kernels written for it: Megatron-LM, NeMo, Transformer Engine
	Mixed    Kernels = "mixed"    // eager, with written kernels for norms, positions and attention: nanotron
)

// DefaultBucket is the bucket of PyTorch's DistributedDataParallel (bucket_cap_mb).
const DefaultBucket unit.Bytes = 25 << 20

// Job is one training step: a model, a batch and how it is computed.
type Job struct {
	Model       *Model
	Split       Split
	Seq         int64
	MicroBatch  int64 // sequences that a replica computes at once
	GlobalBatch int64 // sequences of a step
	Precision   Precision
	Recompute   Recompute
	// Recomputed is the share of layers that Recompute is about; 0 is all of them.
	Recomputed float64
	Kernels    Kernels
	// LoRA are adapters that are trained beside frozen weights; none is zero.
	LoRA LoRA
	// Recipe is what the framework turns on for experts and graphs.
	Recipe Recipe
	// Loop says that experts are computed one after the other, each with kernels and a wait of the host of its own,
	// whatever the kernels.
	Loop bool
	// Capacity says that experts take a fixed number of tokens and drop what is more: the host need not wait for their
	// numbers.
	Capacity bool
	// Graphs says that kernels are started as graphs, not one by one.
	Graphs bool
	// Packed is the tokens of a document where several are in a sequence and tokens see their own alone; 0 is one a
	// sequence.
	Packed int64
	// Reference says that a frozen copy of the model computes the same tokens too, forward alone, as DPO has it. With
	// adapters it is the model without them, and needs no memory of its own.
	Reference bool
	// Unfused says that attention writes its scores to memory.
	Unfused bool
	// Early says that attention runs in the first kernels that keep its scores on the chip (FlashAttention 1 and Triton's,
	// of 2022 and 2023), Second that it runs in FlashAttention 2, as PyTorch's own did until 2.8.
	Early, Second bool
	// Padded says that sizes which rows of matrices have are padded to multiples of eight by
	// whoever wrote the model, as compilers and Megatron do by themselves.
	Padded bool
	// ChannelsFirst says that pictures are in memory channel by channel, as PyTorch has them unless told otherwise: tensor
	// cores want a place's channels together.
	ChannelsFirst bool
	// Masked is the share of tokens that the head computes, where it is not all of them: BERT
	// predicts only what was masked.
	Masked float64
	// Sync says that gradients travel after the backward pass and not beside it.
	Sync bool
	// Bucket is how much of the gradients travels at once; 0 is DefaultBucket.
	Bucket unit.Bytes
	// Schedule is the pipeline's; none is 1F1B, interleaved where a rank has several chunks.
	Schedule pipeline.Schedule
	// Offload is what the host's memory keeps; none says nothing does.
	Offload Offload
	Choices
	// Compress is how gradients travel among replicas; none is as wide as they are.
	Compress Wire
	// Rack is the ranks of a rack inside which DDP's hook sums gradients first; 0 sums over all replicas at once.
	Rack int
	// Context is how ranks that share sequences exchange keys and values; none is a ring.
	Context Context
	// Framework is what runs the job, where that is said; it refuses what it does not run.
	Framework *Framework
	// LateGather says that new parameters are gathered after the update and not beside the next
	// forward pass, WideSums that gradients are summed in float32 whatever the precision, Keeps how
	// weights are kept between steps.
	LateGather, WideSums bool
	// TensorWaits says that computing waits for tensor-parallel traffic, which other frameworks cut into pieces and hide
	// behind products.
	TensorWaits bool
	Keeps       Keeping
	// Autocast says that weights which are kept in float32 are cast where they are used, unless replicas divide them.
	Autocast bool
	// Plain says that the model is of PyTorch's own modules, whose norms and nonlinearities are one operation each, and
	// whose layers are compiled one by one.
	Plain   bool
	Staging Staging
}

// Recomputes is a recomputation in the framework's own words: by operation is what torchtitan calls selective.
func (f *Framework) Recomputes(mode Recompute) Recompute {
	if f != nil && mode != "" && string(mode) == f.Selective {
		return Selective
	}
	return mode
}

// again is which recomputation is meant where a framework has its own for selective.
func (j *Job) again() Recompute {
	if j.Recompute == Selective && j.Framework != nil && j.Framework.Selective != "" {
		return Recompute(j.Framework.Selective)
	}
	return j.Recompute
}

// Repeats is how many forward passes there are beside the first: of what is computed again in full, and of a reference.
func (j *Job) Repeats() int {
	n := 0
	if j.Recompute == Full {
		n++
	}
	if j.Reference {
		n++
	}
	return n
}

// document is the tokens that see each other.
func (j *Job) document() int64 {
	if j.Packed > 0 && j.Packed < j.Seq {
		return j.Packed
	}
	return j.Seq
}

// forward is the floating-point operations of a block for a sequence.
func (j *Job) forward(f func(seq int64) float64) float64 {
	return f(j.document()) * float64(j.Seq) / float64(j.document())
}

// Micros is how many micro-batches a replica computes in a step.
func (j *Job) Micros() int64 {
	return max(1, j.GlobalBatch/(j.MicroBatch*int64(j.Split.filled().DP)))
}

// Pipeline is the pipeline of a replica.
func (j *Job) Pipeline() pipeline.Shape {
	s := j.Split.filled()
	shape := pipeline.Shape{
		Schedule: cmp.Or(j.Schedule, pipeline.Alternate), Ranks: s.PP, Chunks: s.Chunks, Micros: int(j.Micros()),
	}
	switch {
	case j.Schedule == "" && s.Chunks > 1:
		shape.Schedule = pipeline.Interleaved
	case j.Schedule == pipeline.ZeroBubbleV && s.Chunks == 1:
		shape.Chunks = 2
	}
	return shape
}

// checkPipeline reports a schedule that the split does not allow.
func (j *Job) checkPipeline() error {
	s := j.Pipeline()
	if s.Ranks == 1 {
		if j.Schedule != "" {
			return fmt.Errorf("schedule %s without a pipeline; give pp=2 or more", j.Schedule)
		}
		return nil
	}
	if layers := j.Model.Dims.Layers; int64(s.Ranks*s.Chunks) > layers+Slots {
		return fmt.Errorf("pp=%d with %d stages each is more than the %d layers of %s with its embedding and loss", s.Ranks,
			s.Chunks, layers, j.Model.Name)
	}
	return s.Check()
}

// Bounds of a job, so that products of them stay whole numbers.
const (
	MaxSeq         = 1 << 24 // tokens
	MaxMicroBatch  = 1 << 24 // sequences
	MaxGlobalBatch = 1 << 40
)

// Check reports a job that cannot be.
func (j *Job) Check() error {
	if j.Model.Unpriced != "" {
		return fmt.Errorf("%s: %s; its gradients are known to busbar step --formulas and busbar bench step", j.Model.Name,
			j.Model.Unpriced)
	}
	if err := j.Split.Check(j.Model); err != nil {
		return failure.In("parallel", err)
	}
	s := j.Split.filled()
	switch {
	case j.Model.Replicated() && j.Recompute != None && j.Recompute != "":
		return fmt.Errorf("recompute %s: it is not modelled for %s; expected none", j.Recompute, j.Model.Name)
	case j.Model.Replicated() && (j.LoRA.Frozen() || j.Packed > 0 || j.Precision.Low() || j.Offloads()):
		return fmt.Errorf("%s: adapters, packed sequences, fewer than 16 bits and offloading are not modelled for it",
			j.Model.Name)
	case j.Seq < 1 || j.Seq > MaxSeq:
		return failure.In("seq", fmt.Errorf("sequences of %d tokens; expected 1 to %d", j.Seq, MaxSeq))
	case j.MicroBatch > MaxMicroBatch || j.GlobalBatch > MaxGlobalBatch:
		return fmt.Errorf("a micro-batch of %d, a global batch of %d; expected at most %d and %d", j.MicroBatch,
			j.GlobalBatch, MaxMicroBatch, MaxGlobalBatch)
	case j.MicroBatch < 1 || j.GlobalBatch < 1:
		return fmt.Errorf("a micro-batch of %d, a global batch of %d; expected at least 1", j.MicroBatch, j.GlobalBatch)
	case j.GlobalBatch%(j.MicroBatch*int64(s.DP)) != 0:
		return failure.In("global-batch", fmt.Errorf("a global batch of %d is not divided by micro-batch × dp = %d × %d",
			j.GlobalBatch, j.MicroBatch, s.DP))
	case j.Bucket < 0:
		return fmt.Errorf("buckets of %d bytes; expected at least 1", j.Bucket)
	case j.Packed < 0 || j.Packed > j.Seq:
		return fmt.Errorf("documents of %d tokens in sequences of %d; expected 1 to %d", j.Packed, j.Seq, j.Seq)
	case j.Seq%int64(s.CP) != 0:
		return fmt.Errorf("cp=%d does not divide sequences of %d tokens", s.CP, j.Seq)
	}
	for _, check := range []func() error{
		j.checkPipeline, j.checkOffload, j.checkCompress, j.checkContext, j.checkChoices,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// Hooked reports a job whose gradients a communication hook of DDP may take: replicas alone, by PyTorch's DDP.
func (j *Job) Hooked() bool {
	return j.Framework != nil && strings.HasPrefix(j.Framework.ID, "ddp@") && j.Split.ZeRO == 0 && !j.Compresses() &&
		j.Split.DP == j.Split.Ranks()
}
