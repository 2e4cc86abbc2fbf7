package workload

import (
	"strings"
	"testing"
)

// Names as benchmark tables, model cards and articles write them are the framework, model or precision that is meant,
// or an error that lists what is known; none is silently another one.
func TestFrameworkSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"Megatron-LM": "megatron", "Megatron-LM (Megatron-Core, Transformer Engine)": "megatron", "MCore": "megatron",
		"megatron_core": "megatron", "Megatron-SWIFT": "megatron",
		"Primus": "megatron", "nanotron": "nanotron", "llm.c": "llm.c", "NeMo": "nemo", "NVIDIA NeMo Framework 2.0": "nemo",
		"Megatron-Bridge": "nemo", "NeMo / Megatron-Core": "nemo", "NeMo AutoModel (FSDP2)": "automodel",
		"NeMo / Megatron-Core (MLPerf)":          "mlperf",
		"PyTorch + DeepSpeed (MLPerf reference)": "deepspeed", "torchtitan": "torchtitan",
		"TorchTitan (FSDP2, float8)": "torchtitan", "PyTorch FSDP2 + torch.compile": "fsdp",
		"FSDP": "fsdp", "torchtune (PyTorch, eager)": "fsdp", "HF Accelerate FSDP2": "hf", "Accelerate": "fsdp",
		"llama-recipes": "fsdp", "LitGPT": "fsdp", "PyTorch Lightning": "fsdp",
		"OLMo-core": "fsdp", "fms-fsdp": "fsdp", "LLM Foundry / Composer": "llm-foundry", "PyTorch DDP": "ddp",
		"PyTorch": "ddp", "nanoGPT": "ddp", "DeepSpeed ZeRO-3": "deepspeed", "DeepSpeed-Chat": "deepspeed",
		"Megatron-DeepSpeed": "megatron-deepspeed", "GPT-NeoX (Megatron + DeepSpeed)": "megatron-deepspeed",
		"DeepSpeed + Megatron":              "megatron-deepspeed",
		"Hugging Face Transformers Trainer": "hf", "HuggingFace TRL + DeepSpeed ZeRO-2": "hf", "TRL": "hf", "PEFT": "hf",
		"Axolotl": "hf", "LLaMA-Factory (DeepSpeed)": "hf", "LLaMAFactory": "hf",
		"ms-swift (DeepSpeed ZeRO-3, HF Transformers)": "hf", "Unsloth": "unsloth", "Unsloth + TRL": "unsloth",
		"MaxText (JAX/XLA)": "maxtext", "Paxml (JAX/XLA) + Transformer Engine": "maxtext", "JAX": "maxtext",
		"Levanter": "maxtext", "Colossal-AI": "colossalai", "ColossalAI": "colossalai", "PaddlePaddle / PaddleNLP": "paddle",
		"InternEvo": "internevo", "DeepLearningExamples": "deeplearningexamples",
	} {
		if f, err := ParseFramework(text); err != nil || f.Name != want {
			t.Errorf("%q is %v, %v; expected %s", text, f, err, want)
		}
	}
	for _, text := range []string{
		"", "fused", "TensorFlow", "MindSpeed", "Optimum Habana", "AWS Neuron", "my own loop", "Caffe", "vLLM",
		strings.Repeat("jax ", 50),
	} {
		if f, err := ParseFramework(text); err == nil ||
			!strings.Contains(err.Error(), "there are megatron, nemo, torchtitan") {
			t.Errorf("%.20q is %v, %v; expected an error that lists what is known", text, f, err)
		}
	}
	if f, err := ParseFramework("hf, torch.compile"); err != nil || f.Kernels != string(Compiled) {
		t.Errorf("hf with torch.compile: %v, %v", f, err)
	}
	if f, err := FrameworkAt("torchtune (eager)", "2019"); err != nil || f.ID != "fsdp@1.12" ||
		f.Kernels != string(Eager) {
		t.Errorf("torchtune before FSDP: %v, %v", f, err)
	}
}

func TestPrecisionSpellings(t *testing.T) {
	for text, want := range map[string]Precision{
		"BF16": BF16, "bfloat16 (XLA)": BF16, "bf16 + fp32 master weights": BF16, "BF16/FP32": BF16,
		"FP32 master, BF16 compute": BF16, "bf16 with flash attention": BF16, "bf16-mixed": AMP, "autocast bf16": AMP,
		"FP16 O2": FP16,
		"FP8":     FP8, "FP8-DS": FP8, "FP8-CS": FP8Current, "fp8-current-scaling": FP8Current,
		"float8 tensorwise": FP8Current,
		"float8 rowwise":    FP8Current, "float8 dynamic with float8 all-gather": FP8Current,
		"FP8 (E4M3)": FP8, "fp8 hybrid": FP8, "fp8_e4m3": FP8, "FP8-SC": FP8Block, "FP8 blockwise": FP8Block,
		"fp8 (128x128 block scaling)": FP8Block, "FP8-MX": MXFP8, "MXFP8": MXFP8, "mxfp8 + bf16": MXFP8,
		"NVFP4": NVFP4, "FP4": NVFP4, "MXFP4": NVFP4, "nvfp4 (bf16 attention)": NVFP4, "fp8/nvfp4": NVFP4, "TF32": TF32,
		"fp32 (tf32)": TF32, "FP32": FP32,
	} {
		if got, err := ParsePrecision(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; expected %s", text, got, err, want)
		}
	}
	for _, text := range []string{"int8", "nf4", "fp6", "w4a16", "bf8", "fp8 sometimes", "posit16", "4-bit"} {
		if got, err := ParsePrecision(text); err == nil || !strings.Contains(err.Error(), "mxfp8, nvfp4") {
			t.Errorf("%q is %v, %v; expected an error that lists what is known", text, got, err)
		}
	}
}

// A program that is only taken as a framework says so; a framework's other names do not.
func TestTakenFrameworks(t *testing.T) {
	for text, other := range map[string]bool{
		"xtuner": true, "LitGPT": true, "Paxml (JAX/XLA)": false, "axolotl": false, "fsdp2": false, "OneFlow": true,
		"nanotron": false, "hf": false, "xtuner@2024-06": true,
	} {
		if f, err := ParseFramework(text); err != nil || f.Other != other {
			t.Errorf("%q: %v, other %t; expected %t", text, err, f.Other, other)
		}
	}
}
