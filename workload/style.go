package workload

import (
	"cmp"
	"slices"
	"strings"

	"busbar.dev/unit"
)

// Style is how a framework's software runs a job where the job does not say: kernels, what
// overlaps, how weights are kept.
type Style struct {
	Kernels                Kernels
	Unfused, Early, Second bool // attention
	Padded                 bool // the vocabulary
	// Sync says that gradients are summed after the backward pass, LateGather that new parameters are
	// gathered after the update and not beside the next forward pass.
	Sync, LateGather bool
	// WideSums says that gradients are summed in float32 whatever the precision, TensorWaits that computing waits for
	// tensor-parallel traffic.
	WideSums, TensorWaits bool
	Autocast              bool // of weights that nothing divides
	Plain                 bool // models are in PyTorch's own modules, not Hugging Face's
	Keeps                 Keeping
	Staging               Staging
	Loss                  Loss
	Bucket                unit.Bytes
	Loop                  bool // experts are computed one after the other
	// ZeRO is the stage where several replicas are and nobody says; SeqParallel whether
	// tensor-parallel ranks divide what lies between their products.
	ZeRO        int
	SeqParallel bool
}

// Keeping is how weights are kept between steps where they are computed with in 16 bits.
type Keeping string

// Ways to keep weights.
const (
	KeepDefault Keeping = ""     // as the kernels do: a float32 copy with fused ones, none with others
	KeepCopy    Keeping = "copy" // 16 bits and a float32 copy (DeepSpeed)
	KeepWide    Keeping = "wide" // float32, cast when they are gathered (FSDP, torchtitan)
	// 16 bits and a float32 copy, gradients added to float32 sums that are never divided (nanotron)
	KeepSums Keeping = "sums"
)

// hopper is the compute capability from which software that runs on it always fuses attention and overlaps gradients.
const hopper = 90

// Style is how the framework runs with the settings that its recipes and busbar's files set, on GPUs of a compute
// capability (×10; 0 where it is not known). Explicit settings of a job win over it.
func (f *Framework) Style(sm int) Style {
	plain := f.Attention == "fused" && slices.Contains([]string{"ddp", "fsdp", deepspeed}, f.Name)
	s := Style{
		// no release of before 2022 runs on Hopper
		Kernels: Kernels(f.Kernels), Unfused: f.Attention == "unfused" && sm < hopper,
		Early: f.Attention == "early", Second: f.Attention == "second", Padded: f.Kernels != string(Eager) && !plain,
		Sync: !f.Overlapped(OverlapGrads), LateGather: !f.Overlapped(OverlapParams), WideSums: f.Sums == "fp32",
		Bucket: f.Bucket, SeqParallel: bool(f.Sequence), Staging: Staging(f.Stages),
		Loss:        Loss(f.Loss),
		Plain:       plain,
		Loop:        sm < f.Loop,
		TensorWaits: f.Kernels != string(Fused) && !f.Overlapped(OverlapTensor),
	}
	switch f.Weights {
	case "copy":
		if s.Kernels != Fused || strings.Contains(f.Name, deepspeed) {
			s.Keeps = KeepCopy
		}
	case "wide", "amp", "autocast":
		s.Keeps, s.Autocast = KeepWide, f.Weights == "autocast"
	case "sums":
		s.Keeps = KeepSums
	}
	for _, z := range f.ZeRO { // Megatron's distributed optimizer, FSDP's full sharding
		s.ZeRO = max(s.ZeRO, z)
	}
	return s
}

// Adopt gives a job the framework, its style and its recipe on GPUs of a name and a compute capability (×10). What a
// job says of attention and overlap stays: they are switches away from the usual. Kernels, buckets and precision are
// taken where the job has none.
func (f *Framework) Adopt(j *Job, gpu string, sm int) {
	s := f.Style(sm)
	j.Framework = f
	j.Recipe = f.Recipe(j.Model, gpu, sm)
	if j.Kernels == "" && j.Model != nil && j.Model.Dims.Experts > 0 {
		j.Kernels = j.Recipe.Kernels
	}
	j.Kernels = cmp.Or(j.Kernels, s.Kernels)
	if j.Precision == "" {
		j.Precision = f.DefaultPrecision()
	}
	if j.Bucket == 0 {
		j.Bucket = f.bucket(s.Bucket, j.Split)
	}
	j.Unfused, j.Early, j.Second, j.Padded = j.Unfused || s.Unfused, j.Early || s.Early, j.Second || s.Second,
		j.Padded || s.Padded
	if j.Model.Sinks() && f.Kernels == string(Fused) {
		j.Unfused = j.Unfused || f.At < sinksFused
	}
	j.Sync, j.LateGather, j.WideSums = j.Sync || s.Sync, j.LateGather || s.LateGather, j.WideSums || s.WideSums
	j.Loop = j.Loop || s.Loop
	j.Graphs = j.Graphs || j.Recipe.Graphs != NoGraphs
	if j.Precision.Amp() && f.Weights == "copy" { // what such a framework calls mixed precision
		j.Precision = Precision(strings.TrimPrefix(string(j.Precision), "amp-"))
	}
	if f.Weights == "copy" && j.Precision == FP16 { // float32 sums are for bfloat16 (Megatron-LM's arguments.py)
		j.WideSums = false
	}
	if j.Keeps == KeepDefault {
		j.Keeps = s.Keeps
	}
	j.Staging, j.TensorWaits, j.Plain = s.Staging, s.TensorWaits, s.Plain
	j.Loss, j.Autocast = cmp.Or(j.Loss, s.Loss), j.Autocast || s.Autocast
	j.Recipe.Dispatcher = cmp.Or(j.Dispatcher, j.Recipe.Dispatcher)
	if j.Overlap != "" {
		j.Recipe.Overlap = j.Overlap == "yes"
	}
}

// sinksFused is from when attention with a number a head beside its scores runs in one kernel: Transformer Engine 2.8
// with cuDNN 9.13 (NVIDIA/TransformerEngine pull request 2148). Before, its scores go through memory.
const sinksFused = "2025-10"

// bucket is the framework's own size of buckets. Megatron-Core's without one has 40 million parameters, and one million
// for each replica where that is more (megatron/core/distributed/distributed_data_parallel.py).
func (f *Framework) bucket(own unit.Bytes, s Split) unit.Bytes {
	if own > 0 || f.Kernels != string(Fused) || f.Weights != "copy" {
		return own
	}
	s = s.filled()
	return unit.Bytes(max(40, s.DP*s.CP)) * 2e6
}

// Fill is a split with what the framework's recipes choose where nobody says: what replicas divide, whether
// tensor-parallel ranks divide what lies between products, and how many of them share an expert. said is what somebody
// did say, by the words of --parallel.
func (f *Framework) Fill(s *Split, said map[string]bool) {
	if !said["zero"] {
		s.ZeRO = f.DefaultZeRO(*s)
	}
	s.SeqParallel = s.SeqParallel || !said["sp"] && f.Sequence && s.TP > 1
	// Megatron-Core's own is as many as share all else; Megatron-Bridge's recipes have one (qwen3_moe.py), NeMo 2's said
	// nothing.
	if !said["etp"] && s.ETP == 0 && s.EP > 1 && f.Experts == "folded" && (f.Name != "nemo" || f.At >= "2025-09") {
		s.ETP = 1
	}
}

// DefaultPrecision is how the framework computes when nobody says: bfloat16, under autocast where that is how it does
// it.
func (f *Framework) DefaultPrecision() Precision {
	switch {
	case f.Weights == "amp" && slices.Contains(f.Precisions, string(AMP)):
		return AMP
	case slices.Contains(f.Precisions, string(BF16)):
		return BF16
	case f.Weights == "amp":
		return AMPH
	}
	return FP16
}

// runsPrecision reports whether the framework has a precision: fp8 is any recipe of it.
func (f *Framework) runsPrecision(p Precision) bool {
	text := string(p)
	for _, known := range f.Precisions {
		if known == text || text == "fp8" && (strings.HasPrefix(known, "fp8") || known == "mxfp8") {
			return true
		}
	}
	// What is kept wide and computed in bfloat16 is what others call mixed precision.
	return p.Amp() && f.Weights != "amp" && slices.Contains(f.Precisions, strings.TrimPrefix(text, "amp-"))
}

// DefaultZeRO is what replicas divide when nobody says: what the framework's recipes do, and what it has with
// pipelines.
func (f *Framework) DefaultZeRO(s Split) int {
	s = s.filled()
	if s.DP*s.CP == 1 {
		return 0
	}
	list, most := f.ZeRO, 0
	if s.PP > 1 {
		list = f.ZeROPipeline
	}
	for _, z := range list {
		most = max(most, z)
	}
	return most
}
