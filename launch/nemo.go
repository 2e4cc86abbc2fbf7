package launch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/workload"
)

// bridgePrecisions are Megatron-Bridge's names.
var bridgePrecisions = map[workload.Precision]string{
	"bf16": "bf16_mixed", "amp-bf16": "bf16_mixed", "fp16": "fp16_mixed", "amp-fp16": "fp16_mixed",
	"fp8": "bf16_with_fp8_current_scaling_mixed", "fp8-delayed": "bf16_with_fp8_delayed_scaling_mixed",
	"fp8-tensorwise": "bf16_with_fp8_current_scaling_mixed", "fp8-current": "bf16_with_fp8_current_scaling_mixed",
	"fp8-blockwise": "bf16_with_fp8_subchannel_scaling_mixed", "mxfp8": "bf16_with_mxfp8_mixed",
	"nvfp4": "bf16_with_nvfp4_mixed",
}

// bridge is a recipe of Megatron-Bridge, which NeMo's containers have.
func (w *writer) bridge() (string, string) {
	f, reason := w.framework("nemo")
	if reason != "" {
		return "", reason
	}
	if reason := w.beyondSwiGLU("bridge.py", "llama3", "yarn"); reason != "" {
		return "", reason
	}
	if !f.Has("25.09") {
		return "", "releases of NeMo before Megatron-Bridge (25.09) have recipes of another kind; megatron.args with " +
			"--framework megatron says the same"
	}
	j := w.p.job
	precision, ok := bridgePrecisions[j.Precision]
	if !ok {
		return "", fmt.Sprintf("precision %s: Megatron-Bridge has no name for it", j.Precision)
	}
	class, module := "GPTModelProvider", "gpt_provider"
	if j.Model.Architecture().Latent != nil {
		class, module = "MLAModelProvider", "mla_provider"
	}
	s := j.Split
	return w.header(fmt.Sprintf("Recipe of %s for this model and plan: %s, %d parameters; nemo.sh starts it.", f.Title,
		line(j.Model.Name), j.Model.Params())) + fmt.Sprintf(`import os

import torch
import torch.nn.functional as F
from megatron.bridge.models.%[1]s import %[2]s
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.config import TokenizerConfig
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.pretrain import pretrain


def squared_relu(x):
    return torch.pow(F.relu(x), 2)


def config():
    cfg = _pretrain_common()
    cfg.model = %[2]s(
%[3]s    )
    cfg.train.micro_batch_size, cfg.train.global_batch_size = %[4]d, %[5]d
    cfg.train.train_iters = int(os.environ.get("STEPS", 1000))
    cfg.optimizer.lr, cfg.optimizer.min_lr = float(os.environ["LR"]), float(os.environ["MIN_LR"])
    cfg.scheduler.lr_warmup_iters = int(os.environ.get("WARMUP", 100))
    cfg.dataset.seq_length = %[6]d
    if os.environ.get("DATA"):
        cfg.dataset.blend = (os.environ["DATA"].split(), None)
    if os.environ.get("TOKENIZER"):
        cfg.tokenizer.tokenizer_model = os.environ["TOKENIZER"]
    else:
        cfg.tokenizer = TokenizerConfig(tokenizer_type="NullTokenizer", vocab_size=%[7]d)
    cfg.checkpoint.save = cfg.checkpoint.load = os.environ.get("SAVE", "checkpoints")
    cfg.checkpoint.save_interval = int(os.environ.get("SAVE_EVERY", 500))
    cfg.checkpoint.async_save = cfg.checkpoint.use_persistent_ckpt_worker = True
    cfg.ddp.use_distributed_optimizer, cfg.ddp.grad_reduce_in_fp32 = %[8]s, False
    cfg.ddp.overlap_grad_reduce, cfg.ddp.overlap_param_gather = %[9]s, %[8]s
%[10]s    cfg.mixed_precision = %[11]q
    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=%[12]s)
    cfg.logger.log_interval = 1
    return cfg


if __name__ == "__main__":
    pretrain(config=config(), forward_step_func=forward_step)
`, module, class, w.bridgeModel(), j.MicroBatch, j.GlobalBatch, j.Seq,
		j.Model.Dims.Vocab-1 /* the tokenizer may add one */, py(s.ZeRO == 1), py(s.DP*s.CP > 1), bridgeFSDP(s.ZeRO),
		precision, py(s.SeqParallel && s.TP > 1)), ""
}

// bridgeFSDP says ZeRO 2 and 3, which are Megatron-FSDP.
func bridgeFSDP(zero int) string {
	if zero < 2 {
		return ""
	}
	return fmt.Sprintf("    cfg.dist.use_megatron_fsdp = cfg.ddp.use_megatron_fsdp = True\n    "+
		"cfg.ddp.use_distributed_optimizer = cfg.ddp.overlap_param_gather = True\n    "+
		"cfg.ddp.data_parallel_sharding_strategy = %q\n    cfg.checkpoint.ckpt_format, "+
		"cfg.model.gradient_accumulation_fusion = \"fsdp_dtensor\", False\n",
		map[int]string{2: "optim_grads", 3: "optim_grads_params"}[zero])
}

// py is a truth value of Python.
func py(yes bool) string {
	if yes {
		return "True"
	}
	return "False"
}

// bridgeModel is the model and its degrees as fields of a provider.
func (w *writer) bridgeModel() string {
	j := w.p.job
	d, x, y, s := j.Model.Dims, j.Model.Architecture(), j.Model.Detailed(), j.Split
	var b strings.Builder
	set := func(format string, args ...any) { fmt.Fprintf(&b, "        "+format+",\n", args...) }
	set("num_layers=%d, hidden_size=%d, ffn_hidden_size=%d, num_attention_heads=%d", d.Layers, d.Hidden, d.FFN, d.Heads)
	if l := x.Latent; l != nil {
		rank := "None"
		if l.Q > 0 {
			rank = strconv.FormatInt(l.Q, 10)
		}
		set("multi_latent_attention=True, q_lora_rank=%s, kv_lora_rank=%d, qk_head_dim=%d, qk_pos_emb_head_dim=%d, "+
			"v_head_dim=%d", rank, l.KV, l.Plain, l.Rotary, l.Value)
	} else {
		set("num_query_groups=%d, kv_channels=%d", d.KVHeads, d.HeadDim)
	}
	norm, act := "LayerNorm", "F.gelu"
	if x.RMSNorm {
		norm = "RMSNorm"
	}
	switch {
	case x.Gated:
		act = "F.silu"
	case y.Activation == "relu2":
		act = "squared_relu"
	}
	set("normalization=%q, layernorm_epsilon=%g, gated_linear_unit=%s, activation_func=%s", norm, y.Eps, py(x.Gated), act)
	set("add_bias_linear=%s, add_qkv_bias=%s, qk_layernorm=%s, share_embeddings_and_output_weights=%s", py(x.MLPBias),
		py(x.QKVBias), py(x.QKNorm == workload.HeadNorm || x.Latent != nil), py(x.Tied))
	if x.Positions == workload.RotaryPositions {
		share := cmp.Or(y.RotaryShare, 1)
		set("position_embedding_type=\"rope\", rotary_base=%d, rotary_percent=%g", int64(max(y.RotaryBase, 1)), share)
		if kind, rest, _ := strings.Cut(y.Scaling, ":"); kind == "llama3" {
			factor, _, _ := strings.Cut(rest, ":")
			set("rope_scaling=True, rope_scaling_factor=%s", factor)
		}
	} else {
		set("position_embedding_type=\"learned_absolute\"")
	}
	set("attention_dropout=0.0, hidden_dropout=0.0, seq_length=%d, vocab_size=%d, make_vocab_size_divisible_by=%d", j.Seq,
		d.Vocab, vocabMultiple(d.Vocab, s.TP))
	if d.Experts > 0 {
		set("num_moe_experts=%d, moe_router_topk=%d, moe_ffn_hidden_size=%d, moe_grouped_gemm=True, "+
			"moe_permute_fusion=True, moe_token_dispatcher_type=\"alltoall\"", d.Experts, d.TopK, d.ExpertFFN)
		score, balance := "softmax", "aux_loss"
		if y.Score == "sigmoid" {
			score, balance = "sigmoid", "seq_aux_loss"
		}
		set("moe_router_score_function=%q, moe_router_load_balancing_type=%q, moe_aux_loss_coeff=%g, "+
			"moe_router_dtype=\"fp32\", moe_router_enable_expert_bias=%s, moe_router_pre_softmax=%s", score, balance, y.Aux,
			py(x.Corrected), py(score == "softmax" && !y.RouteNorm))
		if d.Dense > 0 {
			set("moe_layer_freq=[0] * %d + [1] * %d", d.Dense, d.Layers-d.Dense)
		}
		if x.SharedFFN > 0 {
			set("moe_shared_expert_intermediate_size=%d", x.SharedFFN)
		}
		if y.Groups > 1 {
			set("moe_router_num_groups=%d, moe_router_group_topk=%d", y.Groups, y.GroupTopK)
		}
		if y.RouteScale > 0 {
			set("moe_router_topk_scaling_factor=%g", y.RouteScale)
		}
		set("expert_model_parallel_size=%d, expert_tensor_parallel_size=%d", s.EP, s.ExpertTensor())
	}
	set("tensor_model_parallel_size=%d, pipeline_model_parallel_size=%d, context_parallel_size=%d, "+
		"sequence_parallel=%s, pipeline_dtype=torch.bfloat16", s.TP, s.PP, s.CP, py(s.SeqParallel && s.TP > 1))
	if s.PP > 1 {
		shape := j.Pipeline()
		if d.Layers%int64(shape.Ranks*shape.Chunks) != 0 {
			set("pipeline_model_parallel_layout=%q", megatronLayout(shape, int(d.Layers)))
		} else if shape.Chunks > 1 {
			set("virtual_pipeline_model_parallel_size=%d", shape.Chunks)
		}
	}
	if kind := map[workload.Context]string{workload.Gather: "allgather", workload.Ulysses: "a2a"}[j.Context]; kind != "" {
		set("cp_comm_type=%q", kind)
	}
	switch j.Recompute {
	case workload.Selective:
		set("recompute_granularity=\"selective\"")
	case workload.Full:
		set("recompute_granularity=\"full\", recompute_method=\"uniform\", recompute_num_layers=1")
	}
	return b.String()
}

// nemoScript starts a rank of the recipe.
func (w *writer) nemoScript() (string, string) {
	f, reason := w.framework("nemo")
	if reason != "" {
		return "", reason
	}
	if _, reason := w.bridge(); reason != "" {
		return "", reason
	}
	var b strings.Builder
	b.WriteString(w.scriptHead("nemo.sh", f))
	fmt.Fprintf(&b, `DATA=${DATA:-}                            # prefixes of tokenized data; none: made-up data
TOKENIZER=${TOKENIZER:-}                  # a Hugging Face tokenizer; none: numbers alone
`)
	b.WriteString(w.trainingBlock())
	b.WriteString(scriptRule)
	b.WriteString(w.scriptEnv(f))
	b.WriteString("export DATA TOKENIZER SAVE STEPS LR MIN_LR WARMUP SAVE_EVERY\nexec python3 \"$PLAN/bridge.py\" " +
		"\"$@\"\n")
	return b.String(), ""
}
