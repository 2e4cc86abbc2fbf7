package main

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/step"
)

// Kinds of runs that no collection has are predicted with a rate that is possible and a bar that is wider than that of
// usual runs, or refused with a reason.
func TestUnseenRuns(t *testing.T) {
	usual, _ := unseen(t, `"gpu":"H100-SXM5-80GB","gpus":8,"nodes":1`, `"name":"Llama-3.1 8B","seq":8192`, `"precision":"bf16","micro_batch":1,"global_batch":8`, "NeMo")
	for _, c := range []struct{ name, hardware, model, parallel, framework string }{
		{"H20 fp8", `"gpu":"H20-SXM5-96GB","gpus":16,"nodes":2`, `"name":"Qwen2.5 32B","seq":4096`, `"precision":"fp8 blockwise","tp":4,"micro_batch":1,"global_batch":64`, "Megatron-LM"},
		{"H100 PCIe LoRA", `"gpu":"H100 PCIe","gpus":2`, `"name":"Mistral-7B LoRA","seq":2048,"lora":true`, `"precision":"bf16","micro_batch":4,"global_batch":8`, "Hugging Face TRL"},
		{"QLoRA on cards", `"gpu":"RTX 5090","gpus":1`, `"name":"Llama-3.1-8B QLoRA","seq":2048,"lora_rank":32`, `"precision":"nf4","micro_batch":2,"grad_accum":4`, "Unsloth"},
		{"LoRA of a mixture", `"gpu":"B300-SXM-288GB","gpus":8`, `"name":"gpt-oss-120b","seq":4096,"lora":true`, `"precision":"mxfp8","ep":8,"micro_batch":1,"global_batch":32`, "Megatron-Bridge"},
		{"FP4", `"gpu":"GB300","gpus":72,"gpus_per_node":4`, `"name":"Llama-3.1 405B","seq":8192`, `"precision":"NVFP4","tp":2,"cp":2,"zero":1,"micro_batch":1,"global_batch":36,"recompute":"gradient checkpointing"`, "NeMo"},
		{"AMD", `"gpu":"MI355X","gpus":8,"nodes":1`, `"name":"DeepSeek-V3","layers":61,"hidden":7168,"heads":128,"experts":256,"top_k":8,"expert_ffn":2048,"dense_layers":3,"vocab":129280,"ffn":18432,"attention":"MLA","seq":4096`, `"precision":"fp8","ep":8,"pp":1,"micro_batch":1,"global_batch":8`, "Primus"},
		{"unknown model", `"gpu":"L40S","gpus":8`, `"name":"Falcon 7B","params":7e9,"seq":2048`, `"precision":"bf16","fsdp":"HSDP","micro_batch":1,"global_batch":8`, "PyTorch Lightning"},
		{"long sequences", `"gpu":"GH200","gpus":16,"nodes":4`, `"name":"Qwen3-8B","seq":131072`, `"precision":"bf16","cp":8,"micro_batch":1,"global_batch":2`, "torchtitan v0.2"},
		{"hybrid", `"gpu":"H800","gpus":64`, `"name":"Nemotron-H 8B","seq":8192`, `"precision":"fp8-current","tp":2,"micro_batch":1,"global_batch":64`, "Megatron-LM"},
		{"no framework, no year", `"gpu":"A100 40GB","gpus":32`, `"name":"GPT-3 13B","seq":2048`, `"tp":4,"micro_batch":2,"global_batch":128`, ""},
	} {
		mfu, margin := unseen(t, c.hardware, c.model, c.parallel, c.framework)
		if mfu < 0.02 || mfu > 0.9 {
			t.Errorf("%s: %.3f of the peak; expected a share that is possible", c.name, mfu)
		}
		if margin <= usual-0.1 {
			t.Errorf("%s: bar ×%.2f, of usual runs ×%.2f", c.name, margin, usual)
		}
	}
	for _, c := range []struct{ name, hardware, model, parallel, framework, want string }{
		{"framework", `"gpu":"H100","gpus":8`, `"name":"Llama-3.1 8B","seq":8192`, `"micro_batch":1`, "our own", "there are megatron"},
		{"precision", `"gpu":"H100","gpus":8`, `"name":"Llama-3.1 8B","seq":8192`, `"micro_batch":1,"precision":"posit16"`, "NeMo", "expected one of fp32"},
		{"GPU", `"gpu":"TPU v5p","gpus":8`, `"name":"Llama-3.1 8B","seq":8192`, `"micro_batch":1`, "MaxText", "not in the catalogue"},
		{"pictures", `"gpu":"H100","gpus":8`, `"name":"Stable Diffusion v2","params":8.6e8,"seq":1024`, `"micro_batch":1`, "NeMo", "no language model"},
		{"segments", `"gpu":"A100 40GB","gpus":1`, `"name":"Transformer-XL base","layers":16,"hidden":512,"heads":8,"seq":192`, `"micro_batch":32,"precision":"tf32"`, "DeepLearningExamples", "no language model"},
		{"FP4 on Hopper", `"gpu":"H100","gpus":8`, `"name":"Llama-3.1 8B","seq":8192`, `"micro_batch":1,"precision":"nvfp4"`, "NeMo", "no FP4 matrix products"},
		{"unknown mixture", `"gpu":"H100","gpus":8`, `"name":"Odd MoE 50B","params":5e10,"experts":64,"seq":4096`, `"micro_batch":1`, "NeMo", "does not state its layers"},
	} {
		_, left := predictRuns(parseUnseen(t, c.hardware, c.model, c.parallel, c.framework), step.Default())
		if len(left) != 1 || !strings.Contains(left[0].Reason, c.want) {
			t.Errorf("%s: %v; expected %q", c.name, left, c.want)
		}
	}
}

func parseUnseen(t *testing.T, hardware, model, parallel, framework string) []*training {
	t.Helper()
	line := fmt.Sprintf(`{"id":"x","source":"unseen","cluster":"unseen","grade":"A","hardware":{%s},"model":{%s},"parallel":{%s},"measured":{"step_time_s":1},"framework":%q}`, hardware, model, parallel, framework)
	runs := readRuns([]byte(line))
	if len(runs) != 1 {
		t.Fatalf("%s: %d runs", line, len(runs))
	}
	return runs
}

func unseen(t *testing.T, hardware, model, parallel, framework string) (mfu, margin float64) {
	t.Helper()
	rows, left := predictRuns(parseUnseen(t, hardware, model, parallel, framework), step.Default())
	if len(rows) != 1 {
		t.Errorf("%s, %s, %s, %s: %v", hardware, model, parallel, framework, left)
		return 0.5, 2
	}
	r := rows[0]
	t.Logf("%-28.28s %-24.24s %-22.22s %8.3g s, MFU %.2f, bar ×%.2f, %s %s %s, %v", hardware, model, framework,
		r.Predicted, r.Result.MFU, r.Margin, r.Step.Job().Split, r.Step.Job().Precision, r.Step.Job().Recompute, r.Assumed)
	return r.Result.MFU * r.Step.Job().Precision.Operand() / r.Step.Job().Precision.Width(), r.Margin
}
