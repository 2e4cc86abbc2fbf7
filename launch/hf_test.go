package launch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/workload"
)

// TestAdapters: lora.json names the modules that the plan prices adapters of, and no others. The count is PEFT's for
// Qwen3-8B with rank 16 on all linear layers of a block.
func TestAdapters(t *testing.T) {
	c, l, m := placed(t, "dgx-h100", 1, 2, "qwen3-8b")
	f, err := workload.ParseFramework("hf")
	if err != nil {
		t.Fatal(err)
	}
	split, err := (workload.Split{}).On(2)
	if err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{
		Model: m, Split: split, Seq: 4096, MicroBatch: 1, GlobalBatch: 16, Precision: workload.BF16, Recompute: workload.None,
		Kernels: workload.Eager, Framework: f,
	}
	j.LoRA.Rank = 16
	for _, x := range []struct {
		attention bool
		count     int64
	}{{false, 43646976}, {true, 15335424}} {
		j.LoRA.Attention = x.attention
		folder := emitted(t, "hf", func() (*launch.Plan, error) { return launch.New(c, l, nccl.Newest, j, nil, true) })
		var plan struct {
			Job launch.Job `json:"job"`
		}
		read(t, filepath.Join(folder, "plan.json"), &plan)
		if plan.Job.Adapters != x.count || plan.Job.LoRA != j.LoRA.String() {
			t.Errorf("plan.json: %d parameters of adapters by %q; expected %d by %q", plan.Job.Adapters, plan.Job.LoRA, x.count,
				j.LoRA)
		}
		var lora struct {
			Rank    int64  `json:"r"`
			Targets string `json:"target_modules"`
		}
		read(t, filepath.Join(folder, "lora.json"), &lora)
		targets := regexp.MustCompile("^(?:" + lora.Targets + ")$")
		for module, want := range map[string]bool{
			"model.layers.3.self_attn.q_proj": true, "model.layers.3.mlp.down_proj": !x.attention,
			"model.layers.3.self_attn.q_norm": false, "lm_head": false, "model.layers.3.mlp.gate": false,
		} {
			if targets.MatchString(module) != want {
				t.Errorf("targets %s: %s has adapters: %v; expected %v", lora.Targets, module, !want, want)
			}
		}
		if lora.Rank != 16 {
			t.Errorf("rank %d; expected 16", lora.Rank)
		}
	}
}

// read reads a JSON file.
func read(t *testing.T, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
