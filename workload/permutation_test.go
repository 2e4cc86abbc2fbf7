package workload

import (
	"testing"

	"busbar.dev/unit"
)

// Tokens that are sent once to a domain are put in the order of experts once, those that are sent to every expert
// twice; attention is in FP8 where a recipe for experts has the whole step in one graph.
func TestDispatched(t *testing.T) {
	m, err := Find("qwen3-30b-a3b")
	if err != nil {
		t.Fatal(err)
	}
	passed := func(r Recipe) (bytes unit.Volume, narrow bool) {
		j := &Job{
			Model: m, Seq: 4096, MicroBatch: 1, GlobalBatch: 8, Precision: MXFP8, Kernels: Fused, Split: Split{DP: 8, EP: 8},
			Recipe: r,
		}
		for _, x := range j.Pass(&m.Blocks[1]).Forward {
			if x.Name == "permutation" {
				bytes += x.Bytes
			}
			narrow = narrow || x.Kind == Score && x.Narrow
		}
		return bytes, narrow
	}
	each, wide := passed(Recipe{Dispatcher: AllToAll})
	once, narrow := passed(Recipe{Dispatcher: HybridEP, Graphs: GraphWhole})
	if each != 2*once || once <= 0 || wide || !narrow {
		t.Errorf("%v and %v bytes, FP8 %v and %v; expected twice as many, and FP8 with one graph", each, once, wide, narrow)
	}
}
