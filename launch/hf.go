package launch

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"busbar.dev/workload"
)

// hfShards is what divides states under Hugging Face's Trainer: fsdp, deepspeed, or nothing.
func (w *writer) hfShards() string {
	j := w.Job
	switch {
	case j.Split.ZeRO == 1 || j.Offload == workload.OffloadOptimizer:
		return "deepspeed"
	case j.Split.ZeRO > 1:
		return "fsdp"
	}
	return ""
}

// hfArgs are TrainingArguments.
func (w *writer) hfArgs() (any, string) {
	j := w.Job
	s := j.Split
	precision := w.Precision()
	doc := map[string]any{
		"output_dir": "checkpoints", "per_device_train_batch_size": j.MicroBatch, "gradient_accumulation_steps": j.Micros(),
		"learning_rate": 3e-4, "lr_scheduler_type": "cosine_with_min_lr",
		"lr_scheduler_kwargs": map[string]any{"min_lr": 3e-5}, "warmup_steps": 100, "max_steps": 1000, "weight_decay": 0.1,
		"adam_beta1": 0.9, "adam_beta2": 0.95,
		"max_grad_norm": 1.0, "bf16": precision == "bf16", "fp16": precision == "fp16", "tf32": j.Precision == workload.TF32,
		"gradient_checkpointing":        j.Recompute == workload.Full && w.hfShards() != "fsdp",
		"torch_compile":                 j.Kernels == workload.Compiled,
		"gradient_checkpointing_kwargs": map[string]any{"use_reentrant": false}, // as frozen inputs need it
		"logging_steps":                 1, "save_steps": 500, "report_to": "none", "optim": "adamw_torch_fused",
		"dataloader_num_workers": 2, "dataloader_pin_memory": true,
	}
	if s.DP > 1 && w.hfShards() == "" {
		doc["ddp_find_unused_parameters"] = false
		if j.Bucket > 0 {
			doc["ddp_bucket_cap_mb"] = int64(j.Bucket) >> 20
		}
	}
	switch w.hfShards() {
	case "deepspeed":
		doc["deepspeed"] = "deepspeed.json"
	case "fsdp":
		doc["fsdp"] = "full_shard"
		if s.ZeRO == 2 {
			doc["fsdp"] = "shard_grad_op"
		}
		if s.Shard > 0 && s.Shard < s.DP {
			doc["fsdp"] = "hybrid_shard"
		}
		if j.Offload == workload.OffloadParams {
			doc["fsdp"] = doc["fsdp"].(string) + " offload"
		}
		doc["fsdp"] = doc["fsdp"].(string) + " auto_wrap"
		doc["fsdp_config"] = map[string]any{
			"fsdp_version": 2, "reshard_after_forward": s.ZeRO == 3, "activation_checkpointing": j.Recompute == workload.Full,
			"state_dict_type": "SHARDED_STATE_DICT",
		}
	}
	return doc, ""
}

// hfModel is the model as a config.json of Hugging Face.
func (w *writer) hfModel() (any, string) {
	m := w.Job.Model
	if len(m.Config) > 0 {
		return hfConfig(m.Config)
	}
	d, x, y := w.Dims, &w.Arch, &w.Details
	if _, err := workload.Find(m.Name); err == nil && (y.Beyond != "" || y.Usual()) {
		return nil, m.Name + ": busbar has not all of its config.json; give the folder of the model (-m DIR), whose " +
			"config.json is then written as it is"
	}
	doc := map[string]any{
		"model_type": y.Type, "vocab_size": d.Vocab, "tie_word_embeddings": x.Tied, "torch_dtype": "float32",
	}
	switch y.Type {
	case "gpt2":
		doc["n_embd"], doc["n_layer"], doc["n_head"], doc["n_positions"], doc["n_inner"] = d.Hidden, d.Layers, d.Heads,
			w.Positions(), d.FFN
		doc["layer_norm_epsilon"], doc["resid_pdrop"], doc["embd_pdrop"], doc["attn_pdrop"] = y.Eps, 0, 0, 0
	case "bloom":
		doc["hidden_size"], doc["n_layer"], doc["n_head"], doc["layer_norm_epsilon"] = d.Hidden, d.Layers, d.Heads, y.Eps
	case "opt":
		doc["hidden_size"], doc["num_hidden_layers"], doc["num_attention_heads"], doc["ffn_dim"], doc["max_position_embeddings"], doc["dropout"] = d.Hidden, d.Layers, d.Heads, d.FFN, w.Positions(), 0
	default:
		w.hfDecoder(doc)
	}
	if x.Kind != workload.DecoderOnly {
		return nil, m.Name + " is no decoder; give train_hf.py your own model"
	}
	return doc, ""
}

// hfConfig is the user's own config.json without what holds for its weights alone.
func hfConfig(data []byte) (any, string) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err.Error()
	}
	for _, name := range []string{
		"quantization_config", "dtype", "torch_dtype", "transformers_version", "_name_or_path", "auto_map",
	} {
		delete(doc, name)
	}
	return doc, ""
}

// hfDecoder fills the fields that Llama and its descendants share.
func (w *writer) hfDecoder(doc map[string]any) {
	d, x, y := w.Dims, &w.Arch, &w.Details
	doc["hidden_size"], doc["intermediate_size"], doc["num_hidden_layers"], doc["num_attention_heads"], doc["num_key_value_heads"] = d.Hidden, d.FFN, d.Layers, d.Heads, d.KVHeads
	doc["max_position_embeddings"], doc["rms_norm_eps"], doc["rope_theta"] = w.Positions(), y.Eps,
		max(y.RotaryBase, 10000)
	if x.Latent == nil {
		doc["head_dim"] = d.HeadDim
	}
	if y.Type == "nemotron" {
		doc["norm_eps"], doc["hidden_act"], doc["partial_rotary_factor"] = y.Eps, "relu2", max(y.RotaryShare, 0.5)
	}
	kind := w.Scaling.Kind
	if f, err := strconv.ParseFloat(w.Scaling.Factor, 64); err == nil && kind != "" {
		scaling := map[string]any{"rope_type": kind, "factor": f}
		if n, err := strconv.ParseInt(w.Scaling.Original, 10, 64); err == nil {
			scaling["original_max_position_embeddings"] = n
		}
		if kind == "llama3" {
			scaling["low_freq_factor"], scaling["high_freq_factor"] = 1.0, 4.0
		}
		if y.Type == "gpt_oss" {
			scaling["beta_fast"], scaling["beta_slow"], scaling["truncate"] = 32.0, 1.0, false
		}
		doc["rope_scaling"] = scaling
	}
	if d.Experts == 0 {
		return
	}
	doc["num_experts_per_tok"], doc["router_aux_loss_coef"] = d.TopK, y.Aux
	switch {
	case y.Type == "mixtral", y.Type == "gpt_oss":
		doc["num_local_experts"] = d.Experts
	case x.Latent != nil:
		l := x.Latent
		doc["q_lora_rank"], doc["kv_lora_rank"], doc["qk_nope_head_dim"], doc["qk_rope_head_dim"], doc["v_head_dim"] = l.Q,
			l.KV, l.Plain, l.Rotary, l.Value
		if l.Q == 0 {
			doc["q_lora_rank"] = nil
		}
		doc["n_routed_experts"], doc["n_shared_experts"], doc["moe_intermediate_size"], doc["first_k_dense_replace"] = d.
			Experts, d.Shared, d.ExpertFFN, d.Dense
		doc["n_group"], doc["topk_group"], doc["routed_scaling_factor"], doc["norm_topk_prob"], doc["scoring_func"] = y.
			Groups, y.GroupTopK, y.RouteScale, y.RouteNorm, y.Score
	default:
		if y.Type == "qwen3" {
			doc["model_type"] = "qwen3_moe"
		}
		doc["num_experts"], doc["moe_intermediate_size"], doc["norm_topk_prob"] = d.Experts, d.ExpertFFN, y.RouteNorm
	}
}

// hfAdapters are the adapters of a plan as PEFT's LoraConfig takes them.
func (w *writer) hfAdapters() (any, string) {
	j := w.Job
	if !j.LoRA.Frozen() {
		return nil, "the plan has no adapters (--lora)"
	}
	names := j.Adapted()
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	doc := map[string]any{
		"task_type": "CAUSAL_LM", "r": j.LoRA.Rank, "lora_alpha": 2 * j.LoRA.Rank, "lora_dropout": 0.0, "bias": "none",
		"target_modules": `.*\.(` + strings.Join(names, "|") + ")",
	}
	return doc, ""
}
