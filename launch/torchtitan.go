package launch

import (
	"fmt"
	"strings"

	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// titanFlavor is the model and flavor under which torchtitan has a model: those of Llama 3.1, which it also trains
// Llama 3 by.
func titanFlavor(m *workload.Model) (name, flavor string, ok bool) {
	d, y := m.Dims, m.Detailed()
	if y.Type != "llama" || d.Vocab != 128256 || y.Scaling != "" && y.Scaling != "llama3:8:8192" {
		return "", "", false
	}
	flavor, ok = map[[3]int64]string{
		{32, 4096, 14336}: "8B", {80, 8192, 28672}: "70B", {126, 16384, 53248}: "405B",
	}[[3]int64{d.Layers, d.Hidden, d.FFN}]
	return "llama3", flavor, ok
}

// titanFramework is torchtitan's, where it has the model.
func (w *writer) titanFramework() (*workload.Framework, string) {
	f, reason := w.framework("torchtitan")
	if reason == "" {
		if _, _, ok := titanFlavor(w.p.job.Model); !ok {
			reason = w.beyondSwiGLU("torchtitan")
		}
	}
	return f, reason
}

// titanSchedules are PyTorch's names.
var titanSchedules = map[pipeline.Schedule]string{
	pipeline.GPipe: "GPipe", pipeline.Alternate: "1F1B", pipeline.Interleaved: "Interleaved1F1B",
	pipeline.ZeroBubbleV: "ZBVZeroBubble",
}

// titan is the configuration of torchtitan 0.1 and 0.2; later ones are configured by Python alone.
func (w *writer) titan() (string, string) {
	f, reason := w.titanFramework()
	if reason != "" {
		return "", reason
	}
	j := w.p.job
	s := j.Split
	var b strings.Builder
	b.WriteString(w.header("Configuration of " + f.Title + " for this model and plan; torchtitan.sh starts it and has " +
		"the rest: tokenizer, data, schedule, checkpoints."))
	name, flavor, known := titanFlavor(j.Model)
	if !known {
		name, flavor = "busbar", "plan"
		b.WriteString("\n[experimental]\ncustom_import = \"torchtitan_model\"  # has the model's dimensions\n")
	}
	fmt.Fprintf(&b, "\n[model]\nname = %q\nflavor = %q\n", name, flavor)
	b.WriteString(titanConverters(j.Precision))
	local, micro := j.MicroBatch, ""
	if s.PP > 1 {
		local, micro = j.GlobalBatch/int64(s.DP), fmt.Sprintf("pipeline_parallel_microbatch_size = %d\n", j.MicroBatch)
	}
	dtype := "bfloat16"
	if j.Precision.Width() > 2 {
		dtype = "float32"
	}
	fmt.Fprintf(&b, `
[training]
local_batch_size = %d   # sequences of a data-parallel rank at once; with a pipeline those of a step
global_batch_size = %d
seq_len = %d
mixed_precision_param = %q
mixed_precision_reduce = "float32"
enable_cpu_offload = %v
`, local, j.GlobalBatch, j.Seq, dtype, j.Offloads())
	shard, replicate := 1, s.DP
	if s.ZeRO == 3 {
		shard = max(1, s.Shard/max(1, s.CP))
		replicate = s.DP / shard
	}
	fmt.Fprintf(&b, `
[parallelism]
data_parallel_replicate_degree = %d
data_parallel_shard_degree = %d
tensor_parallel_degree = %d
context_parallel_degree = %d
pipeline_parallel_degree = %d
expert_parallel_degree = %d
`, replicate, shard, s.TP, s.CP, s.PP, s.EP)
	if j.Model.Dims.Experts > 0 && s.EP > 1 {
		fmt.Fprintf(&b, "expert_tensor_parallel_degree = %d\n", s.ExpertTensor())
	}
	if s.CP > 1 {
		fmt.Fprintf(&b, "context_parallel_rotate_method = %q\n",
			map[bool]string{true: "allgather", false: "alltoall"}[j.Context == workload.Gather])
	}
	if s.PP > 1 {
		fmt.Fprintf(&b, "pipeline_parallel_schedule = %q\n%smodule_fqns_per_model_part = %s\n",
			titanSchedules[j.Pipeline().Schedule], micro, titanStages(j))
	}
	mode := map[workload.Recompute]string{
		workload.None: "none", workload.Selective: "selective", workload.Full: "full",
	}[j.Recompute]
	fmt.Fprintf(&b, "\n[activation_checkpoint]\nmode = %q\nselective_ac_option = \"op\"\n\n[compile]\nenable = %v\n"+
		"components = [\"model\", \"loss\"]\n", mode, j.Kernels == workload.Compiled)
	return b.String(), ""
}

// titanConverters are those of a precision.
func titanConverters(p workload.Precision) string {
	switch p {
	case "fp8", "fp8-rowwise":
		return "converters = [\"quantize.linear.float8\"]\n\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n" +
			"filter_fqns = [\"output\"]\n"
	case "fp8-tensorwise":
		return "converters = [\"quantize.linear.float8\"]\n\n[quantize.linear.float8]\nenable_fsdp_float8_all_gather = " +
			"true\nprecompute_float8_dynamic_scale_for_fsdp = true\nfilter_fqns = [\"output\"]\n"
	case "mxfp8":
		return "converters = [\"quantize.linear.mx\"]\n\n[quantize.linear.mx]\nrecipe_name = \"mxfp8_cublas\"\nfilter_fqns " +
			"= [\"output\"]\n"
	}
	return ""
}

// titanStages are the modules of every place of the pipeline, in their order, as package step cuts layers.
func titanStages(j *workload.Job) string {
	shape, layers := j.Pipeline(), int(j.Model.Dims.Layers)
	places := shape.Ranks * shape.Chunks
	var list []string
	at := 0
	for place := range places {
		r, c := shape.Owner(place)
		mine := (r+1)*layers/shape.Ranks - r*layers/shape.Ranks
		var names []string
		if place == 0 {
			names = append(names, `"tok_embeddings"`)
		}
		for range (c+1)*mine/shape.Chunks - c*mine/shape.Chunks {
			names = append(names, fmt.Sprintf("%q", fmt.Sprintf("layers.%d", at)))
			at++
		}
		if place == places-1 {
			names = append(names, `"norm"`, `"output"`)
		}
		list = append(list, "["+strings.Join(names, ", ")+"]")
	}
	return "[\n  " + strings.Join(list, ",\n  ") + ",\n]"
}

// titanModel registers the model's dimensions, where torchtitan has no name for them.
func (w *writer) titanModel() (string, string) {
	f, reason := w.titanFramework()
	if reason != "" {
		return "", reason
	}
	m := w.p.job.Model
	if _, _, ok := titanFlavor(m); ok {
		return "", "torchtitan has " + m.Name + " under a name of its own"
	}
	d, a, y := m.Dims, m.Architecture(), m.Detailed()
	py := map[bool]string{true: "True", false: "False"}
	experts := "MoEArgs()"
	if d.Experts > 0 {
		shared := int64(0)
		if a.SharedFFN > 0 {
			shared = a.SharedFFN / max(1, d.ExpertFFN)
		}
		groups := ""
		if y.Groups > 1 {
			groups = fmt.Sprintf("num_expert_groups=%d, num_limited_groups=%d, ", y.Groups, y.GroupTopK)
		}
		score, scale := "softmax", 1.0
		if y.Score != "" {
			score = y.Score
		}
		if y.RouteScale > 0 {
			scale = y.RouteScale
		}
		experts = fmt.Sprintf("MoEArgs(num_experts=%d, num_shared_experts=%d, top_k=%d, %sscore_func=%q, route_norm=%s, "+
			"route_scale=%g, score_before_experts=False)", d.Experts, shared, d.TopK, groups, score, py[y.RouteNorm], scale)
	}
	base, module, class, args := "qwen3", "torchtitan.models.qwen3.model.args", "Qwen3ModelArgs",
		fmt.Sprintf(`dim=%d, n_layers=%d, n_heads=%d, n_kv_heads=%d, head_dim=%d, hidden_dim=%d,
    vocab_size=%d, max_seq_len=%d, norm_eps=%g, rope_theta=%g, qk_norm=%s, enable_weight_tying=%s,
    moe_enabled=%s, moe_inter_dim=%d, moe_args=%s,`, d.Hidden, d.Layers, d.Heads, d.KVHeads, d.HeadDim, d.FFN, d.Vocab,
			w.p.job.Seq, y.Eps, y.RotaryBase,
			py[a.QKNorm == workload.HeadNorm], py[a.Tied], py[d.Experts > 0], d.ExpertFFN, experts)
	if l := a.Latent; l != nil {
		base, module, class = "deepseek_v3", "torchtitan.models.deepseek_v3.model.args", "DeepSeekV3ModelArgs"
		args = fmt.
			Sprintf(`dim=%d, n_layers=%d, n_dense_layers=%d, n_heads=%d, inter_dim=%d, moe_inter_dim=%d, vocab_size=%d, max_seq_len=%d, norm_eps=%g, rope_theta=%g,
    q_lora_rank=%d, kv_lora_rank=%d, qk_nope_head_dim=%d, qk_rope_head_dim=%d, v_head_dim=%d, moe_args=%s,`, d.Hidden,
				d.Layers, d.Dense, d.Heads, d.FFN, d.ExpertFFN, d.Vocab, w.p.job.Seq,
				y.Eps, y.RotaryBase, l.Q, l.KV, l.Plain, l.Rotary, l.Value, experts)
	}
	return w.header(fmt.Sprintf("The model's dimensions for %s: %s, %d parameters. What tensors do not show is from %s.",
		f.Title, line(m.Name), m.Params(), line(y.Source))) + fmt.Sprintf(`from dataclasses import replace

from %s import %s
from torchtitan.distributed.pipeline_parallel import pipeline_llm
from torchtitan.models.moe import MoEArgs
from torchtitan.protocols.train_spec import get_train_spec, register_train_spec

args = %[2]s(
    %[3]s
)
register_train_spec("busbar", replace(get_train_spec(%[4]q), model_args={"plan": args}, pipelining_fn=pipeline_llm))
`, module, class, args, base), ""
}

// titanScript starts a rank of torchtitan.
func (w *writer) titanScript() (string, string) {
	f, reason := w.titanFramework()
	if reason != "" {
		return "", reason
	}
	var b strings.Builder
	b.WriteString(w.scriptHead("torchtitan.sh", f))
	fmt.
		Fprintf(&b, `TORCHTITAN=${TORCHTITAN:-$HOME/torchtitan}  # a checkout of pytorch/torchtitan, release v%s: later ones take no TOML
TOKENIZER=${TOKENIZER:-$TORCHTITAN/tests/assets/tokenizer}  # folder of the tokenizer; torchtitan's small one for a first try
DATA=${DATA:-c4_test}                     # a dataset that torchtitan knows: c4, c4_test (needs no network)
DATA_PATH=${DATA_PATH:-$TORCHTITAN/tests/assets/c4_test}
`, titanRelease(f))
	b.WriteString(w.trainingBlock())
	b.WriteString(scriptRule)
	b.WriteString(w.scriptEnv(f))
	b.WriteString(`export PYTHONPATH="$PLAN:$TORCHTITAN:${PYTHONPATH:-}"
cd "$TORCHTITAN"
exec python3 -m torchtitan.train --job.config_file "$PLAN/torchtitan.toml" --job.dump_folder "$SAVE" --model.hf_assets_path "$TOKENIZER" \
  --training.dataset "$DATA" ${DATA_PATH:+--training.dataset_path "$DATA_PATH"} --training.steps "$STEPS" --training.max_norm 1.0 \
  --optimizer.name AdamW --optimizer.lr "$LR" --optimizer.weight_decay 0.1 \
  --lr_scheduler.warmup_steps "$WARMUP" --lr_scheduler.decay_type cosine --lr_scheduler.min_lr_factor "$(awk "BEGIN { print $MIN_LR / $LR }")" \
  --checkpoint.enable --checkpoint.interval "$SAVE_EVERY" --checkpoint.async_mode async --metrics.log_freq 1 "$@"
`)
	return b.String(), ""
}

// titanRelease is the tag of a release.
func titanRelease(f *workload.Framework) string {
	if strings.Count(f.Release, ".") < 2 {
		return map[bool]string{true: "0.2.2", false: "0.1.0"}[f.Has("0.2")]
	}
	return f.Release
}
