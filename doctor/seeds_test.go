package doctor

import (
	"slices"
	"testing"
)

// Symptoms and common mistakes of articles about network topology and interconnects for training, in their own words:
// the cause that the article names comes first.
func TestArticles(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"All-reduce time scales linearly with world size", []string{"linear-growth"}},
		{"One node always completes faster than others", []string{"straggler"}},
		{"Pipeline training has huge idle bubbles", []string{"pipeline-placement"}},
		{"Tensor parallelism works poorly across nodes", []string{"cross-node-tp"}},
		{"A single degraded optical link (CRC errors) halves the effective bandwidth", []string{"bad-link"}},
		{
			"all_reduce is more than 30% slower when the GPUs are spread across two racks than when all are in one rack",
			[]string{"fabric"},
		},
		{"performance drops at three nodes", []string{"fabric", "bad-link"}},
		{"all_reduce drops at three nodes", []string{"fabric", "bad-link"}},
		{
			"Asymmetry in topology causes stragglers: one node takes longer to finish its update, stalling the entire cluster",
			[]string{"straggler"},
		},
		{
			"The NIC is attached to a CPU socket different from the GPUs, data must travel across the UPI links between CPUs",
			[]string{"numa"},
		},
		{"Non-training traffic like logging, telemetry or data loading runs on the same network interface as the NCCL " +
			"traffic and causes packet drops and jitter", []string{"other-traffic"}},
		{"Using standard 1500-byte MTU frames on a high-speed fabric, training is slow", []string{"mtu-mismatch"}},
		{"Ring is slower than Tree for our cluster size with the default settings", []string{"ring-or-tree"}},
		{"The inter-node network is a generic 10GbE enterprise network and training throughput is 10 times slower than the " +
			"TFLOPS suggest", []string{"slow-network", "tcp-cpu-bound"}},
		{"It is 3x slower to send the same payload in 1000 smaller chunks", []string{"small-messages", "bucket-size"}},
		{
			"I measure about 40% of the advertised speed, and the advertised speed said duplex",
			[]string{"quantity-expectation"},
		},
		{
			"on an A100 node with advertised 600 GB/s I get only 235 GB/s with nccl-tests all_reduce, 40%",
			[]string{"quantity-expectation"},
		},
		{
			"expect the network bandwidth to be unreliable and fluctuate at different time of the day",
			[]string{"other-traffic"},
		},
		{"rates change with the time of day", []string{"other-traffic", "fabric"}},
	} {
		r := say(t, c.text)
		if len(r.Findings) == 0 || !slices.Contains(c.want, r.Findings[0].ID) {
			t.Errorf("%q: %v, want one of %v first", c.text, ids(r), c.want)
		}
	}
}
