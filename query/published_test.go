package query

import (
	"strings"
	"testing"

	"busbar.dev/plan"
	"busbar.dev/workload"
)

// TestPublishedPlans: of tuned runs that were published, with their sources in plan/data/published.csv, the setting is
// in the space, fits, and is the first plan; that promises at most plan.Beyond times of what was measured.
func TestPublishedPlans(t *testing.T) {
	if testing.Short() {
		t.Skip("searches of large models take a minute")
	}
	for _, x := range []struct {
		model, cluster, precision, parallel string
		global, seq, micro                  int64
		tokens                              float64
	}{
		{"llama3.1-70b", "dgx-h100:8", "fp8", "tp=4,pp=8,vpp=5", 256, 8192, 1, 1664},
		{"llama3.1-405b", "dgx-h100:128", "fp8", "tp=8,pp=8,cp=2,vpp=8", 1536, 8192, 1, 326},
		{"qwen3-235b-a22b", "dgx-h100:32", "fp8", "tp=2,pp=8,ep=32,vpp=4", 8192, 4096, 1, 1712},
		{"qwen3-30b-a3b", "dgx-h100:2", "fp8-tensorwise", "pp=2,ep=8,vpp=24", 512, 4096, 2, 10494},
	} {
		q := Plan{
			Cluster: x.cluster, Model: x.model, Framework: "nemo", Global: x.global, Seq: x.seq, Top: 3,
			Precision: workload.Precision(x.precision),
		}

		d, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		first := d.Plans[0]
		t.Logf("%s on %s: %s, %.2f times of what was measured; %s", x.model, x.cluster, first.Parallel, first.PerGPU/x.tokens,
			first.Reason)
		for _, part := range strings.Split(x.parallel, ",") {
			if !strings.Contains(","+first.Parallel.String()+",", ","+part+",") {
				t.Errorf("%s: %s; expected %s of the published run", x.model, first.Parallel, part)
			}
		}
		if first.Micro != x.micro || first.PerGPU > plan.Beyond*x.tokens || first.Tight {
			t.Errorf("%s: %+v", x.model, first)
		}
	}
}
