package step_test

import (
	"strings"
	"testing"

	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Gradients that are made smaller take less of a slow network, and time of the GPU; quantized ones
// are gathered, which many replicas pay for.
func TestCompression(t *testing.T) {
	amp := func(w workload.Wire) func(*workload.Job) {
		return func(j *workload.Job) { j.Precision, j.Compress = workload.AMP, w }
	}
	data := func(r *step.Result) step.Traffic {
		for _, x := range r.Traffic {
			if x.Group == step.Data {
				return x
			}
		}
		t.Fatal("no gradients travel")
		return step.Traffic{}
	}
	p, g := prepared(t, "baskerville", "a100-40", "gpt2-large", "", 4, 1, 4, 16)
	plain, half, byte8 := changed(t, p, g, amp("")), changed(t, p, g, amp(workload.WireBF16)),
		changed(t, p, g, amp(workload.WireInt8))
	t.Logf("four nodes: float32 %.0f ms, bf16 %.0f ms, int8 %.0f ms", plain.Step*1e3, half.Step*1e3, byte8.Step*1e3)
	if a, b := data(plain).Bytes, data(half).Bytes; a != 2*b {
		t.Errorf("a bucket of %g bytes as bf16, of %g else", b, a)
	}
	if half.Step >= plain.Step {
		t.Error("half the bytes over one NIC are no faster")
	}
	// Among many GPUs of one fast node nothing waits, and encoding costs.
	p, g = prepared(t, "dgx-h100", "h100", "llama2-7b", "", 1, 8, 1, 8)
	plain, half, byte8 = changed(t, p, g, amp("")), changed(t, p, g, amp(workload.WireFP16)),
		changed(t, p, g, amp(workload.WireInt8))
	t.Logf("one node of eight: float32 %.0f ms, fp16 %.0f ms, int8 %.0f ms", plain.Step*1e3, half.Step*1e3, byte8.Step*1e3)
	if !(plain.Step < half.Step && half.Step < byte8.Step) {
		t.Error("encoding costs nothing")
	}
}

// What limits sharded parameters is what limits their largest call, not that of the last norm's few bytes.
func TestLimitOfLargestCall(t *testing.T) {
	p, g := prepared(t, "4xa6000", "a6000", "gpt2-large", "zero=3", 1, 4, 4, 16)
	r := changed(t, p, g, func(*workload.Job) {})
	if text := r.Limit(p.Job()).Text; !strings.Contains(text, "PCIe link carries 31.5 GB/s") {
		t.Error(text)
	}
}

// Sharding inside a node spares a slow network between nodes: parameters are gathered over NVLink.
func TestHybridSharding(t *testing.T) {
	price := func(split string) *step.Result {
		p, g := prepared(t, "gcp-a2", "a100-40", "gpt2-xl", split, 4, 8, 1, 32)
		r, err := p.Price(g)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	all, inside := price("zero=3"), price("zero=3,shard=8")
	t.Logf("divided among all %.0f ms, among the eight of a node %.0f ms", all.Step*1e3, inside.Step*1e3)
	if inside.Step >= all.Step || inside.Memory.Total() <= all.Memory.Total() {
		t.Errorf("among all: %g s, %g bytes; inside nodes: %g s, %g bytes", all.Step, all.Memory.Total(), inside.Step,
			inside.Memory.Total())
	}
}

// Ranks that share a sequence sit beside each other first: what crosses nodes costs more, whichever
// way they exchange, and gathering sends as much as the ring without hiding it.
func TestContexts(t *testing.T) {
	for _, way := range []workload.Context{workload.Ring, workload.Gather, workload.Ulysses} {
		waits := map[int]unit.Span{}
		for _, gpus := range []int{8, 1} {
			p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", "cp=8", 8/gpus, gpus, 1, 1)
			r := changed(t, p, g, func(j *workload.Job) { j.Context = way })
			for _, x := range r.Traffic {
				if x.Group == step.Context {
					waits[gpus] = x.Time
				}
			}
		}
		t.Logf("%s: %.1f ms within a node, %.1f ms over eight", way, waits[8]*1e3, waits[1]*1e3)
		if !(waits[8] > 0 && waits[8] < waits[1]) {
			t.Errorf("%s takes %g s within a node and %g s over eight", way, waits[8], waits[1])
		}
	}
}

// Tokens of experts on other nodes go over the network, all groups at once.
func TestExpertsCrossNodes(t *testing.T) {
	took := map[string]float64{}
	for _, split := range []string{"tp=1,ep=8", "tp=4,ep=8,zero=1"} {
		p, g := prepared(t, "dgx-h100", "h100", "mixtral-8x7b", split, 4, 8, 1, 32)
		r, err := p.Price(g)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Traffic {
			if x.Group == step.Experts {
				took[split] = float64(x.Time) / x.Calls / float64(x.Bytes)
			}
		}
		if want := split != "tp=1,ep=8"; p.Fabric().CrossesHosts(step.Experts) != want {
			t.Errorf("%s: groups of experts cross nodes: %v", split, !want)
		}
	}
	if !(took["tp=1,ep=8"] < took["tp=4,ep=8,zero=1"]) {
		t.Errorf("seconds for a byte: %v", took)
	}
}

// TestFrozenWeightsAreGatheredAsTheyAreKept: the bytes that are named go no faster than a GPU's links, whatever the
// bits of frozen weights.
func TestFrozenWeightsAreGatheredAsTheyAreKept(t *testing.T) {
	for _, bits := range []int{0, 4, 8} {
		p, g := prepared(t, "dgx-h100", "h100", "llama3-70b", "zero=3", 1, 8, 1, 8)
		r := changed(t, p, g, func(j *workload.Job) { j.LoRA = workload.LoRA{Rank: 16, Bits: bits} })
		for _, x := range r.Traffic {
			if rate := float64(x.Bytes) * x.Calls / float64(x.Time); x.Group == step.Shards && !(rate > 100e9 && rate < 550e9) {
				t.Errorf("%d bits: %.0f calls of %v in %v are %.3g B/s; expected about the 450e9 of the links", bits, x.Calls,
					x.Bytes, x.Time, rate)
			}
		}
	}
}
