package workload

import "strings"

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
