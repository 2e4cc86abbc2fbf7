package launch

import (
	"encoding/json"
	"fmt"
	"strings"

	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// jobless is the reason why a plan tells a framework nothing: plan.json may hold places alone.
func (w *writer) jobless() string {
	j, s := &w.p.Job, w.p.Job.Parallel
	if s.DP < 1 || s.TP < 1 || s.PP < 1 || s.CP < 1 || j.MicroBatch < 1 || j.GlobalBatch < 1 {
		return "the plan has no job, only places"
	}
	return ""
}

// megatron is the plan as arguments of Megatron-LM's training scripts.
func (w *writer) megatron() (string, string) {
	j, s := &w.p.Job, w.p.Job.Parallel
	schedule := pipeline.Schedule(j.Schedule)
	switch {
	case w.jobless() != "":
		return "", w.jobless()
	case s.ZeRO > 1:
		return "", fmt.Sprintf("zero=%d: Megatron-LM's distributed optimizer is zero=1; --parallel zero=1 plans for it", s.ZeRO)
	case s.PP > 1 && schedule != "" && schedule != pipeline.Alternate && schedule != pipeline.Interleaved:
		return "", fmt.Sprintf("schedule %s: Megatron-LM has 1f1b and interleaved", schedule)
	case j.Dims.Layers == 0 || j.Dims.Heads == 0:
		return "", j.Model + " is no transformer"
	}
	var b strings.Builder
	b.WriteString(w.header("Arguments of Megatron-LM's training scripts: python pretrain_gpt.py $(grep -v '^#' megatron.args) and your data, tokenizer and kind of layers."))
	if s.TP > 1 || s.CP > 1 {
		b.WriteString("# On GPUs before Blackwell Megatron-LM wants CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment for this.\n")
	}
	b.WriteString("# The predicted step has gradients travel beside the backward pass, and pieces of tensor-parallel products beside each\n# other: --overlap-grad-reduce, and --tp-comm-overlap where Transformer Engine was built with user buffers.\n")
	add := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	add("--tensor-model-parallel-size %d", s.TP)
	add("--pipeline-model-parallel-size %d", s.PP)
	if s.CP > 1 {
		add("--context-parallel-size %d", s.CP)
	}
	if s.EP > 1 {
		add("--expert-model-parallel-size %d", s.EP)
	}
	if s.PP > 1 && s.Chunks > 1 {
		add("--num-layers-per-virtual-pipeline-stage %d", j.Dims.Layers/int64(s.PP*s.Chunks))
	}
	if s.PP > 1 && s.Order == workload.TensorPipelineData {
		add("--use-tp-pp-dp-mapping")
	}
	if s.SeqParallel && s.TP > 1 {
		add("--sequence-parallel")
		if len(w.p.Nodes) > 0 && s.TP <= len(w.p.Nodes[0].GPUs) {
			add("--tp-comm-overlap")
		}
	}
	if s.DP*s.CP > 1 {
		add("--overlap-grad-reduce")
	}
	if s.ZeRO == 1 {
		add("--use-distributed-optimizer")
	}
	switch workload.Recompute(j.Recompute) {
	case workload.Selective:
		add("--recompute-granularity selective")
	case workload.Full:
		add("--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1")
	}
	add("--micro-batch-size %d\n--global-batch-size %d\n--seq-length %d\n--max-position-embeddings %d", j.MicroBatch, j.GlobalBatch, j.Seq, max(j.Seq, j.Dims.Context))
	add("--num-layers %d\n--hidden-size %d\n--num-attention-heads %d", j.Dims.Layers, j.Dims.Hidden, j.Dims.Heads)
	if j.Dims.FFN > 0 {
		add("--ffn-hidden-size %d", j.Dims.FFN)
	}
	if j.Dims.KVHeads > 0 && j.Dims.KVHeads < j.Dims.Heads {
		add("--group-query-attention\n--num-query-groups %d", j.Dims.KVHeads)
	}
	if j.Dims.Experts > 0 {
		add("--num-experts %d\n--moe-router-topk %d", j.Dims.Experts, j.Dims.TopK)
	}
	if reason := j.Options.megatron(add); reason != "" {
		return "", reason
	}
	switch workload.Precision(j.Precision) {
	case "bf16", "amp-bf16":
		add("--bf16")
	case "fp16", "amp-fp16":
		add("--fp16")
	case "fp8":
		add("--bf16\n--fp8-format hybrid")
	}
	return b.String(), ""
}

// deepspeed is the configuration of DeepSpeed, for plans that need nothing but replicas.
func (w *writer) deepspeed() (string, string) {
	j, s := &w.p.Job, w.p.Job.Parallel
	switch {
	case w.jobless() != "":
		return "", w.jobless()
	case s.TP > 1 || s.PP > 1 || s.CP > 1 || s.EP > 1:
		return "", "tensor, pipeline, context and expert parallelism are the model's code in DeepSpeed, not its configuration"
	case s.Shard > 0 && s.Shard != s.DP && s.ZeRO > 0:
		return "", fmt.Sprintf("shard=%d: DeepSpeed divides among all replicas", s.Shard)
	}
	// JSON has no comments; plan.json beside it says how it came about.
	type on struct {
		Enabled bool `json:"enabled"`
	}
	doc := struct {
		Train int64         `json:"train_batch_size"`
		Micro int64         `json:"train_micro_batch_size_per_gpu"`
		Steps int64         `json:"gradient_accumulation_steps"`
		BF16  *on           `json:"bf16,omitempty"`
		FP16  *on           `json:"fp16,omitempty"`
		Wire  string        `json:"communication_data_type,omitempty"`
		Zero  deepspeedZero `json:"zero_optimization"`
	}{Train: j.GlobalBatch, Micro: j.MicroBatch, Steps: j.GlobalBatch / (j.MicroBatch * int64(s.DP))}
	doc.Zero.Stage = s.ZeRO
	var reason string
	priced := workload.Job{Precision: workload.Precision(j.Precision), Split: workload.Split{ZeRO: s.ZeRO}}
	if doc.Wire, reason = j.Options.deepspeed(&doc.Zero, priced.GradWidth()); reason != "" {
		return "", reason
	}
	switch {
	case strings.HasSuffix(j.Precision, "bf16"):
		doc.BF16 = &on{true}
	case strings.HasSuffix(j.Precision, "fp16"):
		doc.FP16 = &on{true}
	case j.Precision == "fp8":
		return "", "fp8 is the model's code in DeepSpeed, not its configuration"
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return "", err.Error()
	}
	return string(out) + "\n", ""
}

// mesh is the plan's groups for PyTorch, the slowest dimension first.
func (w *writer) mesh() (string, string) {
	s := w.p.Job.Parallel
	if reason := w.jobless(); reason != "" {
		return "", reason
	}
	type dim struct {
		name string
		size int
	}
	replicas := []dim{{"dp", s.DP}}
	if s.ZeRO > 0 && s.Shard > 1 && s.Shard < s.DP && s.DP%s.Shard == 0 && s.CP == 1 {
		replicas = []dim{{"dp_replicate", s.DP / s.Shard}, {"dp_shard", s.Shard}}
	}
	dims := append([]dim{{"pp", s.PP}}, replicas...)
	if s.Order == workload.TensorPipelineData {
		dims = append(replicas, dim{"pp", s.PP})
	}
	dims = append(dims, dim{"cp", s.CP}, dim{"tp", s.TP})
	var names, sizes []string
	for _, d := range dims {
		if d.size > 1 || d.name == "dp" {
			names = append(names, fmt.Sprintf("%q", d.name))
			sizes = append(sizes, fmt.Sprint(d.size))
		}
	}
	return w.header("The plan's groups of ranks as a PyTorch device mesh (2.2 and later); the last dimension's ranks are neighbours.") + fmt.Sprintf(`from torch.distributed.device_mesh import init_device_mesh

mesh = init_device_mesh("cuda", (%s,), mesh_dim_names=(%s,))
`, strings.Join(sizes, ", "), strings.Join(names, ", ")), ""
}
