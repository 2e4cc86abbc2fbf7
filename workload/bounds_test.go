package workload_test

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

// Batches whose products would not be whole numbers any more are refused before they are multiplied.
func TestBatchesAreBounded(t *testing.T) {
	m, err := workload.Find("llama2-7b")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ micro, global int64 }{
		{1 << 60, 16}, {1 << 62, 1 << 62}, {1, 1 << 62}, {-1, -16}, {0, 0}, {1<<24 + 1, 16},
	} {
		j := workload.Job{
			Model: m, Split: workload.Split{DP: 16}, Seq: 4096, MicroBatch: x.micro, GlobalBatch: x.global,
			Precision: workload.BF16, Recompute: workload.None, Kernels: workload.Fused,
		}
		if err := j.Check(); err == nil || !strings.Contains(err.Error(), "a micro-batch of") {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

func TestParseSplitRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"tp=2,tp=4": "said twice", "tp=0": "at least 1", "dp=0": "at least 1", "zero=1,shard=0": "at least 1",
		"sp=2,tp=2": "expected 0 or 1", "zero=4": "expected 0 to 3",
	} {
		if s, err := workload.ParseSplit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; expected %q", text, s, err, want)
		}
	}
	for _, word := range []string{"params=20B,params=30B", "params=20B,layers=0"} {
		if _, err := workload.Parse(word); err == nil {
			t.Errorf("%s is taken", word)
		}
	}
}
