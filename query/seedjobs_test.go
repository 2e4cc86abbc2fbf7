package query

import "testing"

// "Because it was so slow we had to use Megatron-Deepspeed for training BLOOM-176B instead of the much easier to use
// DeepSpeed ZeRO": over Omni-Path, tensor and pipeline parallelism give at least twice the rate of ZeRO-3.
func TestBloomOnOmniPath(t *testing.T) {
	rate := func(framework, parallel string) float64 {
		q := Step{Job: Job{
			Cluster: "jean-zay-a100:48", Model: "bloom-176b", Framework: framework, Parallel: Parallel(parallel),
			Recompute: "full",
		}}
		doc, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		return doc.Rows[0].TokensPerS
	}
	if zero, megatron := rate("deepspeed", "zero=3"), rate("megatron-deepspeed", "tp=4,pp=12,zero=1"); megatron < 2*zero {
		t.Errorf("%.0f tokens a second by tp=4,pp=12 and %.0f by zero=3; the document could not use ZeRO there", megatron,
			zero)
	}
}

// "The GPUs on 11 nodes have 80GB RAM, while those on the remaining 46 nodes have 40GB RAM": two presets are one
// cluster.
func TestBaskervilleWhole(t *testing.T) {
	c, err := LoadCluster(t.Context(), Env{}, "b[00-45]=baskerville", "b[46-56]=baskerville-80")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Hosts) != 57 || len(c.Types) != 2 {
		t.Errorf("%d hosts of %d types; want 57 of 2", len(c.Hosts), len(c.Types))
	}
}
