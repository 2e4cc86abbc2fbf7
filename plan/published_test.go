package plan

import (
	"strings"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/workload"
)

// TestPublished: every published run is of a model and a GPU that are known, states where it is from, and is found by a
// job of its kind and by no other.
func TestPublished(t *testing.T) {
	for kind, runs := range published() {
		gpu, _, _ := strings.Cut(kind, "/")
		for _, p := range runs {
			if _, ok := hardware.GPUByName(gpu); !ok || p.Tokens <= 0 || !strings.Contains(p.Source, "/") {
				t.Errorf("%s: %+v", kind, p)
			}
		}
	}
	m, err := workload.Find("qwen3-235b-a22b")
	if err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{Model: m, Seq: 4096, Precision: workload.FP8}
	if p := PublishedOf(j, "h100"); p == nil || p.Tokens != 1712 {
		t.Errorf("Qwen3 235B on H100 in 8 bits: %+v", p)
	}
	j.Seq = 65536
	if p := PublishedOf(j, "h100"); p != nil {
		t.Errorf("with long sequences: %+v", p)
	}
	j.Seq, j.LoRA.Rank = 4096, 16
	if p := PublishedOf(j, "h100"); p != nil {
		t.Errorf("with adapters: %+v", p)
	}
}
