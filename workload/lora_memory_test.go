package workload

import (
	"strings"
	"testing"
)

// jobOf is a job of a named model by a framework.
func jobOf(t *testing.T, model, framework string, split Split) *Job {
	t.Helper()
	m, err := Find(model)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseFramework(framework)
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{Model: m, Seq: 2048, MicroBatch: 1, GlobalBatch: 64, Split: split, Recompute: Full}
	f.Adopt(j, "a100", 80)
	return j
}

// Frozen weights are neither cast nor updated: adapters of an 8-billion model in bf16 take its 16 GB and a few more,
// whoever runs them, and next to nothing of the host's memory.
func TestFrozenMemory(t *testing.T) {
	for _, framework := range []string{"hf", "ddp", "deepspeed", "fsdp"} {
		j := jobOf(t, "qwen3-8b", framework, Split{DP: 4})
		j.LoRA = LoRA{Rank: 16}
		whole := j.Memory().Total().GB()
		j.LoRA.Bits = 4
		if few := j.Memory().Total().GB(); whole < 18 || whole > 27 || few < 6 || few > 15 {
			t.Errorf("%s: %.1f GB with 16 bits, %.1f with 4; expected 18 to 27 and 6 to 15", framework, whole, few)
		}
		j.Split.ZeRO, j.Offload = 3, OffloadOptimizer
		if host := j.Memory().Host.GB(); host > 1 {
			t.Errorf("%s: %.1f GB of the host's memory for adapters", framework, host)
		}
	}
}

// torchtitan's selective recomputation is by operation, and its pipelines of split backward passes are not compiled.
func TestTorchtitanWords(t *testing.T) {
	j := jobOf(t, "llama3-8b", "torchtitan", Split{DP: 8, ZeRO: 3})
	j.Recompute = Selective
	one := j.Memory().Total()
	j.Recompute = PerOp
	if err := j.Framework.Refuses(j); err != nil || j.Memory().Total() != one {
		t.Errorf("per-op: %v, %v GB; selective %v GB", err, j.Memory().Total().GB(), one.GB())
	}
	j.Split, j.Schedule = Split{DP: 2, PP: 4, ZeRO: 3}, "zb-v"
	if err := j.Framework.Refuses(j); err == nil || !strings.Contains(err.Error(), "torch.compile") {
		t.Errorf("zb-v with compiled stages: %v", err)
	}
	if j.Kernels = Eager; j.Framework.Refuses(j) != nil {
		t.Errorf("zb-v with eager stages: %v", j.Framework.Refuses(j))
	}
}
