package workload_test

import (
	"testing"

	"busbar.dev/workload"
)

// Adapters of PEFT are float32 and cast every input: the Trainer's passes have those casts, those of releases before
// and of other frameworks have none.
func TestWideAdapters(t *testing.T) {
	m, err := workload.Find("qwen3-8b")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"hf": true, "hf@4.30": false, "fsdp": false, "megatron": false} {
		f, err := workload.ParseFramework(name)
		if err != nil {
			t.Fatal(err)
		}
		j := workload.Job{Model: m, LoRA: workload.LoRA{Rank: 16}, Precision: workload.BF16, MicroBatch: 1, Seq: 2048}
		f.Adopt(&j, "h100", 90)
		j.Complete(1)
		found := false
		for i := range m.Blocks {
			for _, x := range j.Pass(&m.Blocks[i]).Forward {
				found = found || x.Name == "adapter's casts"
			}
		}
		if found != want {
			t.Errorf("%s: casts of adapters: %v; want %v", name, found, want)
		}
	}
}
