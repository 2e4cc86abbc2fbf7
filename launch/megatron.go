package launch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// arguments are a program's, in groups with a comment each.
type arguments struct{ b strings.Builder }

func (a *arguments) group(title string) { fmt.Fprintf(&a.b, "# %s\n", title) }

// addLine writes arguments, one a line.
func (a *arguments) addLine(format string, args ...any) { fmt.Fprintf(&a.b, format+"\n", args...) }

// megatronArgs are all arguments of Megatron-LM's pretrain_gpt.py that the model and the plan decide.
func (w *writer) megatronArgs() (string, string) {
	f, reason := w.framework("megatron")
	if reason != "" {
		return "", reason
	}
	if reason := w.beyondSwiGLU("megatron.args", "llama3", "yarn"); reason != "" {
		return "", reason
	}
	a := &arguments{}
	a.b.WriteString(w.header("Arguments of Megatron-LM's pretrain_gpt.py for this model and plan, for " + f.Title +
		"; megatron.sh has the rest: data, tokenizer, schedule, checkpoints."))
	j := w.p.job
	w.megatronModel(a)
	w.megatronParallel(a, f)
	a.group("Batch and precision.")
	a.addLine("--micro-batch-size %d\n--global-batch-size %d\n--seq-length %d\n--max-position-embeddings %d", j.MicroBatch,
		j.GlobalBatch, j.Seq, max(j.Seq, j.Model.Dims.Context))
	for _, x := range megatronPrecision(j.Precision) {
		a.addLine("%s", x)
	}
	switch j.Recompute {
	case workload.Selective:
		a.addLine("--recompute-granularity selective")
	case workload.Full:
		a.addLine("--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1")
	}
	if reason := w.p.Job.Options.megatron(a.addLine); reason != "" {
		return "", reason
	}
	return a.b.String(), ""
}

// megatronModel is the architecture.
func (w *writer) megatronModel(a *arguments) {
	m := w.p.job.Model
	d, x, y := m.Dims, m.Architecture(), m.Detailed()
	a.group("Model: " + line(m.Name) + ", " + strconv.FormatInt(m.Params(), 10) +
		" parameters; what tensors do not show is from " + line(y.Source) + ".")
	a.addLine("--num-layers %d\n--hidden-size %d\n--ffn-hidden-size %d\n--num-attention-heads %d", d.Layers, d.Hidden,
		d.FFN,
		d.Heads)
	switch {
	case x.Latent != nil:
		w.megatronLatent(a, x.Latent, &y)
	default:
		a.addLine("--kv-channels %d", d.HeadDim)
		if d.KVHeads > 0 && d.KVHeads < d.Heads {
			a.addLine("--group-query-attention\n--num-query-groups %d", d.KVHeads)
		}
	}
	switch x.Positions {
	case workload.RotaryPositions:
		a.addLine("--position-embedding-type rope\n--rotary-base %d", int64(max(y.RotaryBase, 1)))
		if y.RotaryShare > 0 && y.RotaryShare < 1 {
			a.addLine("--rotary-percent %g", y.RotaryShare)
		}
		if kind, rest, _ := strings.Cut(y.Scaling, ":"); kind == "llama3" && x.Latent == nil {
			factor, _, _ := strings.Cut(rest, ":")
			a.addLine("--use-rope-scaling\n--rope-scaling-factor %s", factor)
		}
	case workload.LearnedPositions:
		a.addLine("--position-embedding-type learned_absolute")
	default:
		a.addLine("--position-embedding-type none")
	}
	norm := "LayerNorm"
	if x.RMSNorm {
		norm = "RMSNorm"
	}
	a.addLine("--normalization %s\n--norm-epsilon %g", norm, y.Eps)
	switch {
	case x.Gated:
		a.addLine("--swiglu")
	case y.Activation == "relu2":
		a.addLine("--squared-relu")
	}
	if !x.MLPBias {
		a.addLine("--disable-bias-linear")
		if x.QKVBias {
			a.addLine("--add-qkv-bias")
		}
	}
	if x.QKNorm == workload.HeadNorm || x.Latent != nil {
		a.addLine("--qk-layernorm")
	}
	if !x.Tied {
		a.addLine("--untie-embeddings-and-output-weights")
	}
	a.addLine("--attention-dropout 0.0\n--hidden-dropout 0.0\n--init-method-std %g", cmp.Or(y.Init, 0.02))
	a.addLine("--make-vocab-size-divisible-by %d", vocabMultiple(d.Vocab, w.p.job.Split.TP))
	if d.Experts > 0 {
		w.megatronExperts(a, &x, &y)
	}
}

// vocabMultiple is the multiple to which every tensor-parallel rank's part of the vocabulary is padded: 128, as usual,
// or less where that leaves a vocabulary as it is.
func vocabMultiple(vocab int64, tp int) int64 {
	for n := int64(128); n >= 8; n /= 2 {
		if vocab%(n*int64(max(tp, 1))) == 0 {
			return n
		}
	}
	return 128
}

func (w *writer) megatronLatent(a *arguments, l *workload.Latent, y *workload.Details) {
	if l.Q > 0 {
		a.addLine("--q-lora-rank %d", l.Q)
	}
	a.addLine("--multi-latent-attention\n--kv-lora-rank %d\n--qk-head-dim %d\n--qk-pos-emb-head-dim %d\n--v-head-dim %d",
		l.KV,
		l.Plain, l.Rotary, l.Value)
	if kind, rest, _ := strings.Cut(y.Scaling, ":"); kind == "yarn" {
		factor, _, _ := strings.Cut(rest, ":")
		a.addLine("--rotary-scaling-factor %s\n--mscale 1.0\n--mscale-all-dim 1.0", factor)
	} else {
		a.addLine("--rope-type rope")
	}
}

// megatronExperts is the router and the experts.
func (w *writer) megatronExperts(a *arguments, x *workload.Architecture, y *workload.Details) {
	d := w.p.job.Model.Dims
	a.group("Experts.")
	a.addLine("--num-experts %d\n--moe-router-topk %d\n--moe-ffn-hidden-size %d", d.Experts, d.TopK, d.ExpertFFN)
	if d.Dense > 0 {
		a.addLine("--moe-layer-freq ([0]*%d+[1]*%d)", d.Dense, d.Layers-d.Dense)
	}
	if x.SharedFFN > 0 {
		a.addLine("--moe-shared-expert-intermediate-size %d", x.SharedFFN)
	}
	balance := "aux_loss"
	if y.Score == "sigmoid" {
		balance = "seq_aux_loss"
		a.addLine("--moe-router-score-function sigmoid")
	}
	if x.Corrected {
		a.addLine("--moe-router-enable-expert-bias\n--moe-router-bias-update-rate 1e-3")
	}
	if y.Groups > 1 {
		a.addLine("--moe-router-num-groups %d\n--moe-router-group-topk %d", y.Groups, y.GroupTopK)
	}
	if y.RouteScale > 0 && y.RouteScale != 1 {
		a.addLine("--moe-router-topk-scaling-factor %g", y.RouteScale)
	}
	if y.Score != "sigmoid" && !y.RouteNorm || d.TopK == 1 {
		a.addLine("--moe-router-pre-softmax") // weights are of all experts, not of the chosen ones
	}
	a.addLine("--moe-router-load-balancing-type %s\n--moe-aux-loss-coeff %g\n--moe-router-dtype fp32\n"+
		"--moe-grouped-gemm\n"+
		"--moe-permute-fusion", balance, y.Aux)
	a.addLine("--moe-token-dispatcher-type alltoall")
}

// megatronParallel is degrees, what is divided and what overlaps.
func (w *writer) megatronParallel(a *arguments, f *workload.Framework) {
	j := w.p.job
	s, d := j.Split, j.Model.Dims
	a.group("Parallelism: " + s.String() + ".")
	a.addLine("--tensor-model-parallel-size %d\n--pipeline-model-parallel-size %d", s.TP, s.PP)
	if s.CP > 1 {
		a.addLine("--context-parallel-size %d", s.CP)
	}
	if d.Experts > 0 {
		a.addLine("--expert-model-parallel-size %d", s.EP)
		if f.Has("0.10") {
			a.addLine("--expert-tensor-parallel-size %d", s.ExpertTensor())
		}
	}
	if s.PP > 1 {
		w.megatronStages(a)
	}
	if s.PP > 1 && s.Order == workload.TensorPipelineData {
		a.addLine("--use-tp-pp-dp-mapping")
	}
	if s.SeqParallel && s.TP > 1 {
		a.addLine("--sequence-parallel")
		if len(w.p.Nodes) > 0 && s.TP <= len(w.p.Nodes[0].GPUs) && j.Precision != workload.FP32 {
			a.addLine("--tp-comm-overlap")
		}
	}
	switch {
	case s.ZeRO > 1:
		a.group("ZeRO 2 and 3 are Megatron-FSDP, which has checkpoints of its own kind and refuses " +
			"CUDA_DEVICE_MAX_CONNECTIONS=1.")
		strategy := map[int]string{2: "optim_grads", 3: "optim_grads_params"}[s.ZeRO]
		a.addLine("--use-megatron-fsdp\n--data-parallel-sharding-strategy %s\n--no-gradient-accumulation-fusion\n"+
			"--use-distributed-optimizer\n--overlap-grad-reduce\n--overlap-param-gather\n--ckpt-format fsdp_dtensor", strategy)
	case s.ZeRO == 1:
		a.addLine("--use-distributed-optimizer")
		if !j.Sync {
			a.addLine("--overlap-grad-reduce\n--overlap-param-gather")
		}
	case s.DP*s.CP > 1 && !j.Sync:
		a.addLine("--overlap-grad-reduce")
	}
}

// megatronStages says how layers are cut: evenly by numbers, unevenly by a layout.
func (w *writer) megatronStages(a *arguments) {
	j := w.p.job
	s, layers := j.Split, j.Model.Dims.Layers
	chunks := j.Pipeline().Chunks
	if layers%int64(s.PP*chunks) != 0 {
		a.addLine("--pipeline-model-parallel-layout %s", megatronLayout(j.Pipeline(), int(layers)))
		return
	}
	if chunks > 1 {
		a.addLine("--num-layers-per-virtual-pipeline-stage %d", layers/int64(s.PP*chunks))
	}
}

// megatronLayout is the layers of every place of a pipeline as package step cuts them: ranks have as many as it goes
// evenly, and their chunks divide those.
func megatronLayout(shape pipeline.Shape, layers int) string {
	var stages []string
	places := shape.Ranks * shape.Chunks
	for place := range places {
		r, c := shape.Owner(place)
		mine := (r+1)*layers/shape.Ranks - r*layers/shape.Ranks
		text := strings.Repeat("t", (c+1)*mine/shape.Chunks-c*mine/shape.Chunks)
		if place == 0 {
			text = "E" + text
		}
		if place == places-1 {
			text += "L"
		}
		stages = append(stages, text)
	}
	return strings.Join(stages, "|")
}

// megatronPrecision are the arguments of a precision.
func megatronPrecision(p workload.Precision) []string {
	switch text := strings.TrimPrefix(string(p), "amp-"); text {
	case "bf16", "fp16":
		return []string{"--" + text}
	case "fp8", "fp8-delayed":
		return []string{"--bf16", "--fp8-format hybrid"}
	case "fp8-tensorwise", "fp8-current":
		return []string{"--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"}
	case "fp8-blockwise":
		return []string{"--bf16", "--fp8-format e4m3", "--fp8-recipe blockwise"}
	case "mxfp8":
		return []string{"--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"}
	case "nvfp4", "fp4":
		return []string{"--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4"}
	}
	return nil // float32 is what it computes in unasked
}

// megatronScript starts a rank of pretrain_gpt.py, all that the user decides in one block at its top.
func (w *writer) megatronScript() (string, string) {
	f, reason := w.framework("megatron")
	if reason != "" {
		return "", reason
	}
	if _, reason := w.megatronArgs(); reason != "" {
		return "", reason
	}
	j := w.p.job
	null := j.Model.Dims.Vocab
	if !f.Has("0.18") {
		null-- // NullTokenizer of before adds a token of its own
	}
	var b strings.Builder
	b.WriteString(w.scriptHead("megatron.sh", f))
	fmt.Fprintf(&b, `MEGATRON=${MEGATRON:-$HOME/Megatron-LM}   # a checkout of NVIDIA/Megatron-LM, release %s
DATA=${DATA:-}                            # prefixes of tokenized data (tools/preprocess_data.py); none: made-up data
TOKENIZER=${TOKENIZER:-}                  # folder of a Hugging Face tokenizer; none: numbers alone
`, f.Release)
	b.WriteString(w.trainingBlock())
	fmt.Fprintf(&b, `ASYNC=${ASYNC:-%s}                          # write checkpoints while training goes on
`, map[bool]string{true: "1", false: ""}[f.Has("0.12") && j.Split.ZeRO < 2])
	b.WriteString(scriptRule)
	b.WriteString(w.scriptEnv(f))
	b.WriteString(`
if [ -n "$DATA" ]; then set -- "$@" --data-path $DATA --split 99,1,0; else set -- "$@" --mock-data; fi
if [ -n "$TOKENIZER" ]; then set -- "$@" --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER"
`)
	fmt.Fprintf(&b, `else set -- "$@" --tokenizer-type NullTokenizer --vocab-size %d; fi
`, null)
	b.WriteString(`if [ -n "$ASYNC" ]; then set -- "$@" --async-save --use-persistent-ckpt-worker; fi
`)
	format := "torch_dist"
	if j.Split.ZeRO > 1 {
		format = "" // said beside the plan's arguments
	}
	if format != "" {
		fmt.Fprintf(&b, "set -- \"$@\" --ckpt-format %s\n", format)
	}
	b.WriteString(`set -f  # brackets in arguments are no patterns
exec python3 "$MEGATRON/pretrain_gpt.py" $(grep -v '^#' "$PLAN/megatron.args") \
  --train-iters "$STEPS" --lr "$LR" --min-lr "$MIN_LR" --lr-decay-style cosine --lr-warmup-iters "$WARMUP" \
  --optimizer adam --adam-beta1 0.9 --adam-beta2 0.95 --adam-eps 1e-8 --weight-decay 0.1 --clip-grad 1.0 \
  --save "$SAVE" --load "$SAVE" --save-interval "$SAVE_EVERY" --eval-interval "$SAVE_EVERY" --eval-iters 0 \
  --exit-signal-handler --log-interval 1 --log-throughput --manual-gc --manual-gc-interval 100 --distributed-timeout-minutes 30 "$@"
`)
	return b.String(), ""
}
