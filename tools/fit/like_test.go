package main

import "testing"

// Names as tables write them are the model that is meant, or none.
func TestModelSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"Llama-3.1 405B": "llama3.1-405b", "meta-llama/Llama-3.1-8B-Instruct": "llama3.1-8b", "Meta-Llama-3-8B": "llama3-8b",
		"LLAMA3_70B": "llama3-70b", "Llama 3 70B SFT": "llama3-70b",
		"Llama-2 70B LoRA": "llama2-70b", "LLAMA2-13B": "llama2-13b", "Llama-3.2-1B": "llama3.2-1b",
		"Llama-3.3-70B-Instruct": "llama3.3-70b", "Qwen/Qwen2.5-72B-Instruct": "qwen2.5-72b", "Qwen2.5 7B": "qwen2.5-7b",
		"Qwen3 30B-A3B (MoE)": "qwen3-30b-a3b", "Qwen3-235B-A22B": "qwen3-235b-a22b", "qwen3_8b": "qwen3-8b",
		"DeepSeek-V3 671B (MoE)": "deepseek-v3", "deepseek-ai/DeepSeek-V3": "deepseek-v3", "DeepSeek-R1": "deepseek-r1",
		"GPT-OSS 120B (MoE)": "gpt-oss-120b", "openai/gpt-oss-20b": "gpt-oss-20b", "Mixtral-8x7B-v0.1": "mixtral-8x7b",
		"Mixtral 8x22B": "mixtral-8x22b", "GPT-3 175B": "gpt3-175b", "GPT3-13B": "gpt3-13b", "GPT-3 1.3B": "gpt3-1.3b",
		"Nemotron-H 56B (hybrid Mamba)": "nemotron-h-56b", "google/gemma-2-9b": "gemma2-9b", "Gemma 3 27B": "gemma3-27b",
		"Grok-1 314B (MoE)": "grok-1", "SmolLM2-1.7B": "smollm2-1.7b", "OLMo 2 32B": "olmo2-32b",
	} {
		if m := like(text); m == nil || m.Name != want {
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
		if m := like(text); m != nil {
			t.Errorf("%q is %s; expected none", text, m.Name)
		}
	}
}
