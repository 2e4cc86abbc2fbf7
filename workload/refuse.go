package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/workload/pipeline"
)

// Refusal is why a framework does not run a job.
type Refusal struct {
	Framework *Framework
	Reason    string
	Source    string // who says so: a file of the framework, or its row of the table
}

// Error is the reason with its source.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s does not run this: %s (%s)", r.Framework.Title, r.Reason, r.Source)
}

// breach is what a job asks for and a framework does not run. Its text is made when somebody reads it, for a search
// asks of every setting.
type breach struct {
	source string // "" is the row of the table
	format string
	args   []any
}

// breaks is a breach by the file of a framework that says so.
func breaks(source, format string, args ...any) breach { return breach{source, format, args} }

// Refuses reports what the framework does not run of a job, with who says so; nil where it runs
// it. The job itself is taken to be possible (Check).
func (f *Framework) Refuses(j *Job) error {
	if err := f.RefusesModel(j.Model); err != nil {
		return err
	}
	s := j.Split.filled()
	if b := f.breach(j, &s); b.format != "" {
		return &Refusal{f, fmt.Sprintf(b.format, b.args...), cmp.Or(b.source, f.Source)}
	}
	return nil
}

// Runs is Refuses without the reason, and without the model, which is the same for all settings of a search.
func (f *Framework) Runs(j *Job) bool {
	s := j.Split.filled()
	return f.breach(j, &s).format == ""
}

// breach is the first of a job: by the columns of the framework's row, then by its combinations.
func (f *Framework) breach(j *Job, s *Split) breach {
	if b := f.tableBreach(j, s); b.format != "" {
		return b
	}
	switch {
	case f.core():
		return coreBreach(j, s)
	case f.Name == torchtitan, f.Name == fsdp:
		return torchBreach(f, j, s)
	case f.Name == deepspeed, f.Name == trainer && (s.ZeRO == 1 || j.Offload == OffloadOptimizer):
		return deepspeedBreach(j, s)
	}
	return breach{}
}

// Names of frameworks that rules ask for.
const (
	megatron   = "megatron"
	nemo       = "nemo"
	torchtitan = "torchtitan"
	fsdp       = "fsdp"
	deepspeed  = "deepspeed"
	trainer    = "hf" // which divides the optimizer's state alone, or offloads it, by DeepSpeed
)

// core reports whether the framework stands on Megatron-Core.
func (f *Framework) core() bool { return f.Name == megatron || f.Name == nemo }

// tableBreach is what the columns of the framework's row say.
func (f *Framework) tableBreach(j *Job, s *Split) breach {
	replicas := s.DP * s.CP
	divided := s.ZeRO > 0 || replicas > 1 // ZeRO is of importance
	switch {
	case s.TP > 1 && !f.Tensor:
		return breaks("", "tp=%d: it has no tensor parallelism", s.TP)
	case s.SeqParallel && !f.Sequence:
		return breaks("", "sp=1: it has no sequence parallelism")
	case s.PP > 1 && len(f.Schedules) == 0:
		return breaks("", "pp=%d: it has no pipelines", s.PP)
	case s.PP > 1 && !slices.Contains(f.Schedules, string(j.Pipeline().Schedule)):
		return breaks("", "schedule %s: it has %s", j.Pipeline().Schedule, wordList(f.Schedules))
	case s.CP > 1 && len(f.Context) == 0:
		return breaks("", "cp=%d: it has no context parallelism", s.CP)
	case s.CP > 1 && !slices.Contains(f.Context, contextOf(j)):
		return breaks("", "context %s: it has %s", contextOf(j), wordList(f.Context))
	case s.EP > 1 && f.Experts == "":
		return breaks("", "ep=%d: it has no expert parallelism", s.EP)
	case s.EP > 1 && f.Experts == "dp" && s.DP%s.EP != 0:
		return breaks("", "ep=%d does not divide dp=%d, whose ranks alone share experts", s.EP, s.DP)
	case divided && !slices.Contains(f.ZeRO, s.ZeRO) && !slices.Contains(f.ZeROAsked, s.ZeRO):
		return breaks("", "zero=%d: it has %s", s.ZeRO, zeroList(slices.Concat(f.ZeRO, f.ZeROAsked)))
	case divided && s.PP > 1 && !slices.Contains(f.ZeROPipeline, s.ZeRO):
		return breaks("", "zero=%d with pp=%d: with pipelines it has %s", s.ZeRO, s.PP, zeroList(f.ZeROPipeline))
	case !f.Hybrid && s.ZeRO > 0 && s.Shard > 0 && s.Shard < replicas:
		return breaks("", "shard=%d of %d replicas: it divides among all of them", s.Shard, replicas)
	case !f.runsPrecision(j.Precision):
		return breaks("", "precision %s: it has %s", j.Precision, wordList(f.Precisions))
	case j.Recompute != "" && !slices.Contains(f.Recompute, string(j.Recompute)) && string(j.Recompute) != f.Selective:
		return breaks("", "recompute %s: it has %s", j.Recompute, wordList(f.Recompute))
	case j.Offloads() && len(f.Offload) == 0:
		return breaks("", "offload %s: it keeps everything on the GPU", j.Offload)
	case j.Offloads() && !slices.Contains(f.Offload, string(j.Offload)):
		return breaks("", "offload %s: it has %s", j.Offload, wordList(f.Offload))
	case j.Compresses() && !slices.Contains(f.Compress, string(j.Compress)):
		return breaks("", "compress %s: it sums gradients in %s", j.Compress,
			wordList(append([]string{f.Sums}, f.Compress...)))
	case j.LoRA.Frozen() && !slices.Contains(f.Adapters, j.LoRA.frozenBits()):
		return breaks("", "%s", f.missesLoRA(j.LoRA))
	case s.PP > 1 && replicas > 1 && s.Order != "" && !slices.Contains(f.Orders, string(s.Order)):
		return breaks("", "order %s: it numbers ranks %s", s.Order, wordList(f.Orders))
	case j.Kernels == Compiled && f.Kernels != string(Compiled) && !f.Compile,
		j.Kernels == Fused && f.Kernels != string(Fused):
		return breaks("", "kernels %s: its own are %s", j.Kernels, f.Kernels)
	case !f.Uneven && s.PP > 1 && j.Model.Dims.Layers%int64(s.PP*j.Pipeline().Chunks) != 0:
		return breaks("", "%d layers in %d stages: it wants as many in each", j.Model.Dims.Layers, s.PP*j.Pipeline().Chunks)
	}
	return breach{}
}

// coreBreach is what Megatron-Core refuses.
func coreBreach(j *Job, s *Split) breach {
	const arguments = "NVIDIA/Megatron-LM megatron/training/arguments.py validate_args"
	kv := int(j.Model.Dims.filled().KVHeads)
	switch {
	case s.CP > 1 && j.Seq%int64(2*s.CP) != 0:
		return breaks(arguments, "sequences of %d tokens with cp=%d: 2 × cp must divide them", j.Seq, s.CP)
	case s.TP > 1 && kv > 0 && kv%s.TP != 0 && s.TP%kv != 0:
		return breaks("NVIDIA/Megatron-LM megatron/core/transformer/transformer_config.py",
			"tp=%d with %d heads of keys and values: one must divide the other", s.TP, kv)
	case j.Pipeline().Schedule == pipeline.Interleaved && s.PP > 1 && j.Micros()%int64(s.PP) != 0:
		return breaks("NVIDIA/Megatron-LM megatron/core/pipeline_parallel/schedules.py",
			"%d micro-batches in an interleaved pipeline of %d: that must divide them", j.Micros(), s.PP)
	case s.ZeRO > 1 && (s.PP > 1 || s.EP > 1):
		return breaks(arguments, "zero=%d is Megatron-FSDP, which is not planned with pipelines or expert parallelism",
			s.ZeRO)
	case j.Offloads() && s.ZeRO != 1:
		return breaks(arguments, "offload %s with zero=%d: it needs the precision-aware optimizer, which is the "+
			"distributed one (zero=1)", j.Offload, s.ZeRO)
	}
	return breach{}
}

// torchBreach is what torchtitan and PyTorch's FSDP2 refuse.
func torchBreach(f *Framework, j *Job, s *Split) breach {
	const dims = "pytorch/torchtitan torchtitan/distributed/parallel_dims.py"
	titan, kv := f.Name == torchtitan, j.Model.Dims.filled().KVHeads
	switch {
	case titan && (s.CP > 1 && j.Seq%int64(2*s.CP) != 0 || s.SeqParallel && j.Seq%int64(s.TP*s.CP) != 0):
		return breaks("pytorch/torchtitan torchtitan/train.py; PyTorch torch/distributed/tensor/experimental/_attention.py",
			"sequences of %d tokens with tp=%d and cp=%d: tp × 2 × cp must divide them", j.Seq, s.TP, s.CP)
	case s.TP > 1 && kv%int64(s.TP) != 0:
		return breaks("PyTorch torch/distributed/tensor/parallel; it shards heads of keys and values",
			"tp=%d does not divide the %d heads of keys and values", s.TP, kv)
	case !titan && (s.TP > 1 || s.CP > 1) && s.ZeRO < 3 && s.DP > 1:
		return breaks("huggingface/accelerate src/accelerate/parallelism_config.py",
			"tp=%d and cp=%d with zero=%d: they go with full sharding (zero=3)", s.TP, s.CP, s.ZeRO)
	case titan && s.CP > 1 && s.ZeRO == 0:
		return breaks(dims, "cp=%d with zero=0: ranks that share sequences shard parameters (zero=3)", s.CP)
	case titan && s.ZeRO == 0 && s.DP > 1 && (s.TP > 1 || s.PP > 1 || s.EP > 1):
		return breaks(dims, "zero=0 with tp, pp or ep: replicas without sharding (dp_replicate alone) are for data "+
			"parallelism alone")
	case titan && s.ZeRO == 3 && s.Shard%s.CP != 0:
		return breaks(dims, "shard=%d with cp=%d: whole context groups shard together", s.Shard, s.CP)
	case titan && s.PP > 1 && j.Kernels == Compiled && j.Pipeline().Schedule.Splits():
		return breaks("PyTorch torch/distributed/pipelining; pytorch/pytorch issues 143599, 161904 and 162511",
			"schedule %s with torch.compile: it takes the backward pass apart, which compiled stages do not allow; expected "+
				"--kernels eager, or 1f1b or interleaved", j.Pipeline().Schedule)
	}
	return breach{}
}

// deepspeedBreach is what DeepSpeed refuses.
func deepspeedBreach(j *Job, s *Split) breach {
	d, tp, cp := j.Model.Dims.filled(), int64(s.TP), int64(s.CP)
	switch {
	case (s.ZeRO == 1 || s.ZeRO == 2) && s.Shard < s.DP*s.CP:
		return breaks("deepspeedai/DeepSpeed deepspeed/runtime/zero/config.py",
			"shard=%d with zero=%d: it divides among fewer than all replicas with zero=3 alone (zero_hpz_partition_size)",
			s.Shard, s.ZeRO)
	case cp > 1 && (d.Heads%cp != 0 || d.KVHeads%cp != 0 && cp%d.KVHeads != 0 || s.PP > 1 || tp > 1):
		return breaks("deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py",
			"cp=%d with tp=%d and pp=%d: Ulysses divides %d heads by cp and goes with neither", cp, tp, s.PP, d.Heads)
	case s.PP > 1 && (tp > 1 || s.EP > 1 || j.Offloads()):
		return breaks("deepspeedai/DeepSpeed deepspeed/runtime/pipe/engine.py",
			"pp=%d with tp, ep or offload: AutoTP, AutoEP and offload go without a PipelineModule", s.PP)
	case tp > 1 && (s.ZeRO > 2 || d.KVHeads%tp != 0):
		return breaks("deepspeedai/DeepSpeed deepspeed/runtime/engine.py, deepspeed/runtime/tensor_parallel",
			"tp=%d with zero=%d: AutoTP goes with ZeRO 0 to 2, and divides the heads of keys and values", tp, s.ZeRO)
	case s.EP > 1 && (s.ZeRO > 2 || tp > 1 || cp > 1 || j.Offloads()):
		return breaks("deepspeedai/DeepSpeed deepspeed/runtime/engine.py, deepspeed/module_inject/auto_ep_folding.py",
			"ep=%d with zero=%d, tp, cp or offload: its layers of experts go with ZeRO 0 to 2 alone", s.EP, s.ZeRO)
	}
	return breach{}
}

// contextOf is how ranks exchange keys and values.
func contextOf(j *Job) string {
	if j.Context == "" {
		return string(Ring)
	}
	return string(j.Context)
}

// wordList and zeroList are lists in words, zeroList those of stages of ZeRO.
type (
	wordList []string
	zeroList []int
)

func (l wordList) String() string { return strings.Join(l, ", ") }

func (l zeroList) String() string {
	if len(l) == 0 {
		return "none"
	}
	var words wordList
	for _, z := range l {
		words = append(words, "zero="+strconv.Itoa(z))
	}
	return words.String()
}

// RefusesModel reports why a framework has no such model; nil where it does, or where any model that
// PyTorch runs will do.
func (f *Framework) RefusesModel(m *Model) error {
	var why, source string
	a := m.Architecture()
	switch {
	case f.core():
		why, source = coreRefuses(m, &a), "NVIDIA/Megatron-LM pretrain_gpt.py, megatron/core/models/gpt"
	case f.Name == torchtitan:
		why, source = titanRefuses(m, &a), "pytorch/torchtitan torchtitan/models: llama3, qwen3, deepseek_v3"
	}
	if why == "" {
		return nil
	}
	return &Refusal{f, m.Name + ": " + why, source}
}

// coreRefuses is why Megatron-Core's decoder cannot be told of a model; "" where it can.
func coreRefuses(m *Model, a *Architecture) string {
	switch {
	case a.Kind != DecoderOnly || m.Replicated():
		return "it is no decoder of its layers"
	case len(a.Odd) > 0:
		return "it has " + strings.Join(a.Odd, " and ")
	case a.QKNorm == AcrossNorm:
		return "its queries and keys are normed across heads"
	case a.OutBias != a.MLPBias && m.Dims.Experts == 0 || a.MLPBias && !a.QKVBias:
		return "some of its products have biases and others do not"
	case a.SharedGate:
		return "its shared expert has a gate of its own" // --moe-shared-expert-gate is newer than the releases that are known
	}
	return ""
}

// titanRefuses is why none of torchtitan's models can be given the dimensions of a model; "" where one can.
func titanRefuses(m *Model, a *Architecture) string {
	d := m.Dims.filled()
	switch {
	case a.Kind != DecoderOnly || len(a.Odd) > 0 || m.Replicated():
		return "it is no plain decoder"
	case a.Positions != RotaryPositions || !a.RMSNorm || !a.Gated:
		return "torchtitan's models have rotary positions, norms that scale alone and gated MLPs"
	case a.QKVBias || a.OutBias || a.MLPBias:
		return "its products have biases"
	case a.QKNorm == AcrossNorm:
		return "its queries and keys are normed across heads"
	case a.Latent == nil && d.Dense > 0:
		return "it has dense layers before its experts"
	case a.Latent == nil && (a.SharedGate || d.Experts > 0 && d.ExpertFFN > 0 && a.SharedFFN%d.ExpertFFN != 0):
		return "its shared expert is not a multiple of the others"
	}
	return ""
}
