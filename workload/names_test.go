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

func TestModelSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"Llama-3.1 405B": "llama3.1-405b", "meta-llama/Llama-3.1-8B-Instruct": "llama3.1-8b", "Meta-Llama-3-8B": "llama3-8b",
		"llama31_8b": "llama3.1-8b", "LLAMA3_70B": "llama3-70b", "Llama 3 70B SFT": "llama3-70b",
		"Llama-2 70B LoRA": "llama2-70b", "LLAMA2-13B": "llama2-13b", "Llama-3.2-1B": "llama3.2-1b",
		"Llama-3.3-70B-Instruct": "llama3.3-70b", "Qwen/Qwen2.5-72B-Instruct": "qwen2.5-72b", "Qwen2.5 7B": "qwen2.5-7b",
		"Qwen3 30B-A3B (MoE)": "qwen3-30b-a3b", "Qwen3-235B-A22B": "qwen3-235b-a22b", "qwen3_8b": "qwen3-8b",
		"DeepSeek-V3 671B (MoE)": "deepseek-v3", "deepseek-ai/DeepSeek-V3": "deepseek-v3", "DeepSeek-R1": "deepseek-r1",
		"GPT-OSS 120B (MoE)": "gpt-oss-120b", "openai/gpt-oss-20b": "gpt-oss-20b", "Mixtral-8x7B-v0.1": "mixtral-8x7b",
		"Mixtral 8x22B": "mixtral-8x22b", "GPT-3 175B": "gpt3-175b", "GPT3-13B": "gpt3-13b", "GPT-3 1.3B": "gpt3-1.3b",
		"Nemotron-H 56B (hybrid Mamba)": "nemotron-h-56b", "google/gemma-2-9b": "gemma2-9b", "Gemma 3 27B": "gemma3-27b",
		"Grok-1 314B (MoE)": "grok-1", "SmolLM2-1.7B": "smollm2-1.7b", "OLMo 2 32B": "olmo2-32b",
	} {
		if m := Like(text); m == nil || m.Name != want {
			name := "none"
			if m != nil {
				name = m.Name
			}
			t.Errorf("%q is %s; expected %s", text, name, want)
		}
	}
	for _, text := range []string{
		"", "DeepSeek-V2-Lite 16B", "GPT-2 39B", "Llama-5 9B", "Stable Diffusion", "Qwen3 999B", "a model",
	} {
		if m := Like(text); m != nil {
			t.Errorf("%q is %s; expected none", text, m.Name)
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
