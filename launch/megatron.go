package launch

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/workload"
)

// megatronReason is why Megatron-LM's pretrain_gpt.py does not run the plan.
func (w *writer) megatronReason() string {
	if reason := w.beyondSwiGLU("megatron.args", "llama3", "yarn"); reason != "" {
		return reason
	}
	o := &w.Plan.Job.Options
	switch wire := workload.Wire(o.Compress); {
	case o.Offload == string(workload.OffloadParams):
		return "offload parameters: Megatron-LM keeps parameters on the GPU"
	case wire == workload.WireFP16 || wire == workload.WireInt8:
		return fmt.Sprintf("compress %s: Megatron-LM reduces gradients in float32 or bfloat16", wire)
	}
	return ""
}

// bridgePrecisions are Megatron-Bridge's names.
var bridgePrecisions = map[workload.Precision]string{
	"bf16": "bf16_mixed", "amp-bf16": "bf16_mixed", "fp16": "fp16_mixed", "amp-fp16": "fp16_mixed",
	"fp8": "bf16_with_fp8_current_scaling_mixed", "fp8-delayed": "bf16_with_fp8_delayed_scaling_mixed",
	"fp8-tensorwise": "bf16_with_fp8_current_scaling_mixed", "fp8-current": "bf16_with_fp8_current_scaling_mixed",
	"fp8-blockwise": "bf16_with_fp8_subchannel_scaling_mixed", "mxfp8": "bf16_with_mxfp8_mixed",
	"nvfp4": "bf16_with_nvfp4_mixed",
}

// BridgePrecision is the name of the plan's.
func (w *writer) BridgePrecision() string { return bridgePrecisions[w.Job.Precision] }

// bridgeReason is why there is no recipe of Megatron-Bridge, which NeMo's containers have.
func (w *writer) bridgeReason() string {
	return cmp.Or(w.beyondSwiGLU("bridge.py", "llama3", "yarn"),
		when(!w.Framework.Has("25.09"), "releases of NeMo before Megatron-Bridge (25.09) have recipes of another kind; "+
			"megatron.args with --framework megatron says the same"),
		when(w.BridgePrecision() == "",
			fmt.Sprintf("precision %s: Megatron-Bridge has no name for it", w.Job.Precision)))
}

// NormsHeads tells that queries and keys are normed.
func (w *writer) NormsHeads() bool { return w.Arch.QKNorm == workload.HeadNorm || w.Arch.Latent != nil }

// RotaryBase is that of rotary positions.
func (w *writer) RotaryBase() int64 { return int64(max(w.Details.RotaryBase, 1)) }

// Balance is how experts get as many tokens each.
func (w *writer) Balance() string { return when(w.Details.Score == "sigmoid", "seq_") + "aux_loss" }

// Sharding is what Megatron-FSDP divides.
func (w *writer) Sharding() string { return "optim_grads" + when(w.Split.ZeRO == 3, "_params") }

// SplitsSequence tells that tensor-parallel ranks divide what lies between their products too.
func (w *writer) SplitsSequence() bool { return w.Split.SeqParallel && w.Split.TP > 1 }

// Replicated tells that gradients are reduced.
func (w *writer) Replicated() bool { return w.Split.DP*w.Split.CP > 1 }

// Exchange is how context-parallel ranks do, where that is no ring.
func (w *writer) Exchange() string {
	return map[workload.Context]string{workload.Gather: "allgather", workload.Ulysses: "a2a"}[w.Job.Context]
}

// Precision is that of products and activations.
func (w *writer) Precision() string { return strings.TrimPrefix(string(w.Job.Precision), "amp-") }

// Positions is how many tokens a sequence may have.
func (w *writer) Positions() int64 { return max(w.Dims.Context, w.Job.Seq) }

// VocabMultiple is the multiple to which every tensor-parallel rank's part of the vocabulary is padded: 128, as usual,
// or less where that leaves a vocabulary as it is.
func (w *writer) VocabMultiple() int64 {
	for n := int64(128); n >= 8; n /= 2 {
		if w.Dims.Vocab%(n*int64(max(w.Split.TP, 1))) == 0 {
			return n
		}
	}
	return 128
}

// stageLayers is how many layers every place of the pipeline has, as package step cuts them: ranks have as many as it
// goes evenly, and their chunks divide those.
func (w *writer) stageLayers() []int {
	shape, layers := w.Job.Pipeline(), int(w.Dims.Layers)
	list := make([]int, shape.Ranks*shape.Chunks)
	for place := range list {
		r, c := shape.Owner(place)
		mine := (r+1)*layers/shape.Ranks - r*layers/shape.Ranks
		list[place] = (c+1)*mine/shape.Chunks - c*mine/shape.Chunks
	}
	return list
}

// StageLayers is how many layers every place has where they are cut evenly.
func (w *writer) StageLayers() int { return w.stageLayers()[0] }

// UnevenStages is a layout of the layers in Megatron's letters; "" where numbers say it.
func (w *writer) UnevenStages() string {
	list := w.stageLayers()
	if int(w.Dims.Layers)%len(list) == 0 {
		return ""
	}
	stages := make([]string, len(list))
	for place, n := range list {
		stages[place] = strings.Repeat("t", n)
	}
	return "E" + strings.Join(stages, "|") + "L"
}
