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

// rule is something that a framework may refuse. Breaks is asked for every setting of a search,
// so that it makes no text; say makes it.
type rule struct {
	source string // "" is the row of the table
	breaks func(f *Framework, j *Job, s *Split) bool
	say    func(f *Framework, j *Job, s *Split) string
}

// Refuses reports what the framework does not run of a job, with who says so; nil where it runs
// it. The job itself is taken to be possible (Check).
func (f *Framework) Refuses(j *Job) error {
	if err := f.RefusesModel(j.Model); err != nil {
		return err
	}
	s := j.Split.filled()
	for i := range rules {
		if r := &rules[i]; r.breaks(f, j, &s) {
			return &Refusal{f, r.say(f, j, &s), r.from(f)}
		}
	}
	return nil
}

// Runs is Refuses without the reason, and without the model, which is the same for all settings of a search.
func (f *Framework) Runs(j *Job) bool {
	s := j.Split.filled()
	for i := range rules {
		if rules[i].breaks(f, j, &s) {
			return false
		}
	}
	return true
}

func (r *rule) from(f *Framework) string {
	return cmp.Or(r.source, f.Source)
}

// Names of frameworks that rules ask for.
const (
	megatron   = "megatron"
	nemo       = "nemo"
	torchtitan = "torchtitan"
	fsdp       = "fsdp"
	deepspeed  = "deepspeed"
)

// core reports whether the framework stands on Megatron-Core.
func (f *Framework) core() bool { return f.Name == megatron || f.Name == nemo }

// rules are the table's columns first, then what a framework refuses of combinations.
var rules = []rule{
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool { return s.TP > 1 && !f.Tensor },
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("tp=%d: it has no tensor parallelism", s.TP)
		},
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool { return s.SeqParallel && !f.Sequence },
		say:    func(f *Framework, _ *Job, _ *Split) string { return "sp=1: it has no sequence parallelism" },
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool { return s.PP > 1 && len(f.Schedules) == 0 },
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("pp=%d: it has no pipelines", s.PP)
		},
	},
	{
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return s.PP > 1 && !slices.Contains(f.Schedules, string(j.Pipeline().Schedule))
		},
		say: func(f *Framework, j *Job, _ *Split) string {
			return fmt.Sprintf("schedule %s: it has %s", j.Pipeline().Schedule, strings.Join(f.Schedules, ", "))
		},
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool { return s.CP > 1 && len(f.Context) == 0 },
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("cp=%d: it has no context parallelism", s.CP)
		},
	},
	{
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return s.CP > 1 && !slices.Contains(f.Context, contextOf(j))
		},
		say: func(f *Framework, j *Job, _ *Split) string {
			return fmt.Sprintf("context %s: it has %s", contextOf(j), strings.Join(f.Context, ", "))
		},
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool { return s.EP > 1 && f.Experts == "" },
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("ep=%d: it has no expert parallelism", s.EP)
		},
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool { return s.EP > 1 && f.Experts == "dp" && s.DP%s.EP != 0 },
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("ep=%d does not divide dp=%d, whose ranks alone share experts", s.EP, s.DP)
		},
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool {
			return !slices.Contains(f.ZeRO, s.ZeRO) && !slices.Contains(f.ZeROAsked, s.ZeRO) && (s.ZeRO > 0 || s.DP*s.CP > 1)
		},
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("zero=%d: it has %s", s.ZeRO, zeros(slices.Concat(f.ZeRO, f.ZeROAsked)))
		},
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool {
			return s.PP > 1 && !slices.Contains(f.ZeROPipeline, s.ZeRO) && (s.ZeRO > 0 || s.DP*s.CP > 1)
		},
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("zero=%d with pp=%d: with pipelines it has %s", s.ZeRO, s.PP, zeros(f.ZeROPipeline))
		},
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool {
			return !f.Hybrid && s.ZeRO > 0 && s.Shard > 0 && s.Shard < s.DP*s.CP
		},
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("shard=%d of %d replicas: it divides among all of them", s.Shard, s.DP*s.CP)
		},
	},
	{
		breaks: func(f *Framework, j *Job, _ *Split) bool { return !f.runsPrecision(j.Precision) },
		say: func(f *Framework, j *Job, _ *Split) string {
			return fmt.Sprintf("precision %s: it has %s", j.Precision, strings.Join(f.Precisions, ", "))
		},
	},
	{
		breaks: func(f *Framework, j *Job, _ *Split) bool {
			return j.Recompute != "" && !slices.Contains(f.Recompute, string(j.Recompute)) && string(j.Recompute) != f.Selective
		},
		say: func(f *Framework, j *Job, _ *Split) string {
			return fmt.Sprintf("recompute %s: it has %s", j.Recompute, strings.Join(f.Recompute, ", "))
		},
	},
	{
		breaks: func(f *Framework, j *Job, _ *Split) bool {
			return j.Offloads() && !slices.Contains(f.Offload, string(j.Offload))
		},
		say: func(f *Framework, j *Job, _ *Split) string {
			if len(f.Offload) == 0 {
				return fmt.Sprintf("offload %s: it keeps everything on the GPU", j.Offload)
			}
			return fmt.Sprintf("offload %s: it has %s", j.Offload, strings.Join(f.Offload, ", "))
		},
	},
	{
		breaks: func(f *Framework, j *Job, _ *Split) bool {
			return j.Compresses() && !slices.Contains(f.Compress, string(j.Compress))
		},
		say: func(f *Framework, j *Job, _ *Split) string {
			return fmt.Sprintf("compress %s: it sums gradients in %s", j.Compress,
				strings.Join(append([]string{f.Sums}, f.Compress...), ", "))
		},
	},
	{
		breaks: func(f *Framework, j *Job, _ *Split) bool {
			return j.LoRA.Frozen() && !slices.Contains(f.Adapters, j.LoRA.frozenBits())
		},
		say: func(f *Framework, j *Job, _ *Split) string { return f.missesLoRA(j.LoRA) },
	},
	{
		breaks: func(f *Framework, _ *Job, s *Split) bool {
			return s.PP > 1 && s.DP*s.CP > 1 && s.Order != "" && !slices.Contains(f.Orders, string(s.Order))
		},
		say: func(f *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("order %s: it numbers ranks %s", s.Order, strings.Join(f.Orders, ", "))
		},
	},
	{
		breaks: func(f *Framework, j *Job, _ *Split) bool {
			return j.Kernels == Compiled && f.Kernels != string(Compiled) && !f.Compile ||
				j.Kernels == Fused && f.Kernels != string(Fused)
		},
		say: func(f *Framework, j *Job, _ *Split) string {
			return fmt.Sprintf("kernels %s: its own are %s", j.Kernels, f.Kernels)
		},
	},
	{
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return !f.Uneven && s.PP > 1 && j.Model.Dims.Layers%int64(s.PP*j.Pipeline().Chunks) != 0
		},
		say: func(f *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("%d layers in %d stages: it wants as many in each", j.Model.Dims.Layers, s.PP*j.Pipeline().Chunks)
		},
	},
	// Megatron-Core.
	{
		source: "NVIDIA/Megatron-LM megatron/training/arguments.py validate_args",
		breaks: func(f *Framework, j *Job, s *Split) bool { return f.core() && s.CP > 1 && j.Seq%int64(2*s.CP) != 0 },
		say: func(_ *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("sequences of %d tokens with cp=%d: 2 × cp must divide them", j.Seq, s.CP)
		},
	},
	{
		source: "NVIDIA/Megatron-LM megatron/core/transformer/transformer_config.py",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			kv := int(j.Model.Dims.filled().KVHeads)
			return f.core() && s.TP > 1 && kv > 0 && kv%s.TP != 0 && s.TP%kv != 0
		},
		say: func(_ *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("tp=%d with %d heads of keys and values: one must divide the other", s.TP,
				j.Model.Dims.filled().KVHeads)
		},
	},
	{
		source: "NVIDIA/Megatron-LM megatron/core/pipeline_parallel/schedules.py",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return f.core() && j.Pipeline().Schedule == pipeline.Interleaved && s.PP > 1 && j.Micros()%int64(s.PP) != 0
		},
		say: func(_ *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("%d micro-batches in an interleaved pipeline of %d: that must divide them", j.Micros(), s.PP)
		},
	},
	{
		source: "NVIDIA/Megatron-LM megatron/training/arguments.py validate_args",
		breaks: func(f *Framework, _ *Job, s *Split) bool { return f.core() && s.ZeRO > 1 && (s.PP > 1 || s.EP > 1) },
		say: func(_ *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("zero=%d is Megatron-FSDP, which is not planned with pipelines or expert parallelism", s.ZeRO)
		},
	},
	{
		source: "NVIDIA/Megatron-LM megatron/training/arguments.py validate_args",
		breaks: func(f *Framework, j *Job, s *Split) bool { return f.core() && j.Offloads() && s.ZeRO != 1 },
		say: func(_ *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("offload %s with zero=%d: it needs the precision-aware optimizer, which is the distributed one "+
				"(zero=1)", j.Offload, s.ZeRO)
		},
	},
	// PyTorch.
	{
		source: "pytorch/torchtitan torchtitan/train.py; PyTorch torch/distributed/tensor/experimental/_attention.py",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return f.Name == torchtitan && (s.CP > 1 && j.Seq%int64(2*s.CP) != 0 || s.SeqParallel && j.Seq%int64(s.TP*s.CP) != 0)
		},
		say: func(_ *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("sequences of %d tokens with tp=%d and cp=%d: tp × 2 × cp must divide them", j.Seq, s.TP, s.CP)
		},
	},
	{
		source: "PyTorch torch/distributed/tensor/parallel; it shards heads of keys and values",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return (f.Name == torchtitan || f.Name == fsdp) && s.TP > 1 && j.Model.Dims.filled().KVHeads%int64(s.TP) != 0
		},
		say: func(_ *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("tp=%d does not divide the %d heads of keys and values", s.TP, j.Model.Dims.filled().KVHeads)
		},
	},
	{
		source: "huggingface/accelerate src/accelerate/parallelism_config.py",
		breaks: func(f *Framework, _ *Job, s *Split) bool {
			return f.Name == fsdp && (s.TP > 1 || s.CP > 1) && s.ZeRO < 3 && s.DP > 1
		},
		say: func(_ *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("tp=%d and cp=%d with zero=%d: they go with full sharding (zero=3)", s.TP, s.CP, s.ZeRO)
		},
	},
	{
		source: "pytorch/torchtitan torchtitan/distributed/parallel_dims.py",
		breaks: func(f *Framework, _ *Job, s *Split) bool { return f.Name == torchtitan && s.CP > 1 && s.ZeRO == 0 },
		say: func(_ *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("cp=%d with zero=0: ranks that share sequences shard parameters (zero=3)", s.CP)
		},
	},
	{
		source: "pytorch/torchtitan torchtitan/distributed/parallel_dims.py",
		breaks: func(f *Framework, _ *Job, s *Split) bool {
			return f.Name == torchtitan && s.ZeRO == 0 && s.DP > 1 && (s.TP > 1 || s.PP > 1 || s.EP > 1)
		},
		say: func(_ *Framework, _ *Job, s *Split) string {
			return "zero=0 with tp, pp or ep: replicas without sharding (dp_replicate alone) are for data parallelism alone"
		},
	},
	{
		source: "pytorch/torchtitan torchtitan/distributed/parallel_dims.py",
		breaks: func(f *Framework, _ *Job, s *Split) bool {
			return f.Name == torchtitan && s.ZeRO == 3 && s.Shard%s.CP != 0
		},
		say: func(_ *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("shard=%d with cp=%d: whole context groups shard together", s.Shard, s.CP)
		},
	},
	{
		source: "PyTorch torch/distributed/pipelining; pytorch/pytorch issues 143599, 161904 and 162511",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return f.Name == torchtitan && s.PP > 1 && j.Kernels == Compiled && j.Pipeline().Schedule.Splits()
		},
		say: func(_ *Framework, j *Job, _ *Split) string {
			return fmt.Sprintf("schedule %s with torch.compile: it takes the backward pass apart, which compiled stages do "+
				"not allow; expected --kernels eager, or 1f1b or interleaved", j.Pipeline().Schedule)
		},
	},
	// DeepSpeed.
	{
		source: "deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			d := j.Model.Dims.filled()
			cp := int64(s.CP)
			return f.Name == deepspeed && s.CP > 1 &&
				(d.Heads%cp != 0 || d.KVHeads%cp != 0 && cp%d.KVHeads != 0 || s.PP > 1 || s.TP > 1)
		},
		say: func(_ *Framework, j *Job, s *Split) string {
			return fmt.Sprintf("cp=%d with tp=%d and pp=%d: Ulysses divides %d heads by cp and goes with neither", s.CP, s.TP,
				s.PP, j.Model.Dims.Heads)
		},
	},
	{
		source: "deepspeedai/DeepSpeed deepspeed/runtime/pipe/engine.py",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return f.Name == deepspeed && s.PP > 1 && (s.TP > 1 || s.EP > 1 || j.Offloads())
		},
		say: func(_ *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("pp=%d with tp, ep or offload: AutoTP, AutoEP and offload go without a PipelineModule", s.PP)
		},
	},
	{
		source: "deepspeedai/DeepSpeed deepspeed/runtime/engine.py, deepspeed/runtime/tensor_parallel",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return f.Name == deepspeed && s.TP > 1 && (s.ZeRO > 2 || j.Model.Dims.filled().KVHeads%int64(s.TP) != 0)
		},
		say: func(_ *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("tp=%d with zero=%d: AutoTP goes with ZeRO 0 to 2, and divides the heads of keys and values",
				s.TP, s.ZeRO)
		},
	},
	{
		source: "deepspeedai/DeepSpeed deepspeed/runtime/engine.py, deepspeed/module_inject/auto_ep_folding.py",
		breaks: func(f *Framework, j *Job, s *Split) bool {
			return f.Name == deepspeed && s.EP > 1 && (s.ZeRO > 2 || s.TP > 1 || s.CP > 1 || j.Offloads())
		},
		say: func(_ *Framework, _ *Job, s *Split) string {
			return fmt.Sprintf("ep=%d with zero=%d, tp, cp or offload: its layers of experts go with ZeRO 0 to 2 alone", s.EP,
				s.ZeRO)
		},
	},
}

// contextOf is how ranks exchange keys and values.
func contextOf(j *Job) string {
	if j.Context == "" {
		return string(Ring)
	}
	return string(j.Context)
}

// zeros are stages of ZeRO in words.
func zeros(list []int) string {
	if len(list) == 0 {
		return "none"
	}
	var words []string
	for _, z := range list {
		words = append(words, "zero="+strconv.Itoa(z))
	}
	return strings.Join(words, ", ")
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
