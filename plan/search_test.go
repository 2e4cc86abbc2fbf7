package plan_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"busbar/hardware"
	"busbar/nccl"
	"busbar/pipeline"
	"busbar/plan"
	"busbar/step"
	"busbar/workload"
)

func query(t testing.TB, preset, gpu, model string, nodes int, global int64) *plan.Query {
	t.Helper()
	m, err := workload.Find(model)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, 8)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := hardware.GPUByName(gpu)
	g, err := step.NewGPU(x, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	base := workload.Job{Model: m, Seq: m.Seq, GlobalBatch: global, Precision: workload.BF16, Framework: workload.Fused}
	return &plan.Query{Spaces: []*plan.Space{plan.NewSpace(base, 8*nodes, 8)}, Objective: plan.Shortest(), Cluster: c, Layout: l, Version: nccl.Newest, GPU: g, Top: 10, Reserve: 0.05}
}

// The best plans are those that pricing everything finds.
func TestSearchIsExact(t *testing.T) {
	for _, x := range []struct{ preset, gpu, model string }{{"dgx-h100", "h100", "llama2-7b"}, {"dgx-a100", "a100-80", "mixtral-8x7b"}} {
		if testing.Short() && x.model != "llama2-7b" {
			continue // which takes long under the race detector
		}
		q := query(t, x.preset, x.gpu, x.model, 2, 16)
		q.Spaces[0].Micro, q.Spaces[0].Chunks = []int64{1, 2}, []int{1, 2}
		a, err := plan.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var all []float64
		kept := map[[6]int]float64{}
		f := step.NewFabric(q.Cluster, q.Layout, workload.Split{}, q.Version)
		q.Spaces[0].Each(func(j *workload.Job) {
			mine := *j
			r, err := step.Prepare(&mine, f.With(mine.Split)).Price(q.GPU)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r.Step)
			if r.Memory.Total() > 0.95*float64(q.GPU.Model.Memory) {
				return
			}
			s := &mine.Split
			k := [6]int{s.DP, s.TP, s.PP, s.CP, s.EP, s.ZeRO}
			if old, ok := kept[k]; !ok || r.Step < old {
				kept[k] = r.Step
			}
		})
		var want []float64
		for _, v := range kept {
			want = append(want, v)
		}
		slices.Sort(want)
		want = want[:min(len(want), q.Top)]
		if int64(len(all)) != a.Considered || len(a.Plans) != len(want) || !a.Whole {
			t.Fatalf("%s: %d considered of %d, %d plans of %d, whole %v", x.model, a.Considered, len(all), len(a.Plans), len(want), a.Whole)
		}
		for i, p := range a.Plans {
			if math.Abs(p.Result.Step/want[i]-1) > 1e-9 {
				t.Errorf("%s: plan %d takes %g s; the best but %d take %g s", x.model, i+1, p.Result.Step, i, want[i])
			}
		}
		if a.Bound != a.Plans[0].Result.Step {
			t.Errorf("%s: nothing is left below %g s, and the bound is %g s", x.model, a.Plans[0].Result.Step, a.Bound)
		}
		t.Logf("%s: %d settings, %d bounded, %d cut in groups, %d priced", x.model, a.Considered, a.Bounded, a.Cut, a.Priced)
	}
}

// A search that is ended has the best so far, and says how much better the rest could be.
func TestSearchIsEnded(t *testing.T) {
	q := query(t, "dgx-h100", "h100", "llama2-70b", 8, 512)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q.Watch = func(p plan.Progress) {
		if p.Priced > 0 {
			cancel()
		}
	}
	a, err := plan.Search(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if a.Whole || len(a.Plans) == 0 || !(a.Bound > 0 && a.Bound <= a.Plans[0].Result.Step) {
		t.Errorf("whole %v, %d plans, bound %g", a.Whole, len(a.Plans), a.Bound)
	}
}

func TestNothingFits(t *testing.T) {
	q := query(t, "dgx-a100", "a100-80", "gpt3-175b", 1, 8)
	if _, err := plan.Search(t.Context(), q); !errors.Is(err, plan.ErrNone) {
		t.Errorf("GPT-3 on eight GPUs: %v", err)
	}
}

// BenchmarkSearch is GPT-3 on 1,024 A100s, the whole space.
func BenchmarkSearch(b *testing.B) {
	for b.Loop() {
		a, err := plan.Search(b.Context(), query(b, "dgx-a100", "a100-80", "gpt3-175b", 128, 1536))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(a.Considered), "settings")
		b.ReportMetric(float64(a.Bounded), "bounded")
		b.ReportMetric(float64(a.Cut), "cut")
		b.ReportMetric(float64(a.Priced), "priced")
	}
}

// The best plan of the models of Megatron's table on their hardware is no slower than what was
// published (Narayanan et al. 2021, table 1), with the same recomputation.
func TestMegatronTable(t *testing.T) {
	if testing.Short() {
		t.Skip("the searches of ten models take a minute under the race detector")
	}
	for _, x := range []struct {
		model  string
		tp, pp int
		nodes  int
		global int64
	}{
		{"megatron-1.7b", 1, 1, 4, 512},
		{"megatron-3.6b", 2, 1, 8, 512},
		{"megatron-7.5b", 4, 1, 16, 512},
		{"megatron-18.4b", 8, 1, 32, 1024},
		{"megatron-39.1b", 8, 2, 64, 1536},
		{"megatron-76.1b", 8, 4, 128, 1792},
		{"megatron-145.6b", 8, 8, 192, 2304},
		{"megatron-310.1b", 8, 16, 240, 2160},
		{"megatron-529.6b", 8, 35, 315, 2520},
		{"megatron-1t", 8, 64, 384, 3072},
	} {
		q := query(t, "dgx-a100", "a100-80", x.model, x.nodes, x.global)
		q.Top = 1
		q.Spaces[0].Recompute = []workload.Recompute{workload.Full}
		q.Spaces[0].Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
		a, err := plan.Search(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", x.model, err)
		}
		j := q.Spaces[0].Base
		j.Recompute, j.MicroBatch = workload.Full, 1
		if j.Split, err = (workload.Split{TP: x.tp, PP: x.pp}).On(8 * x.nodes); err != nil {
			t.Fatal(err)
		}
		r, err := step.Step(&j, q.GPU, step.NewFabric(q.Cluster, q.Layout, j.Split, q.Version))
		if err != nil {
			t.Fatalf("%s: %v", x.model, err)
		}
		best := a.Plans[0]
		t.Logf("%s on %d GPUs: published tp=%d,pp=%d %.2f s; best %v, micro-batch %d, %s: %.2f s; %d considered", x.model, 8*x.nodes, x.tp, x.pp, r.Step, best.Job.Split, best.Job.MicroBatch, best.Job.Schedule, best.Result.Step, a.Considered)
		if best.Result.Step > r.Step*(1+1e-9) {
			t.Errorf("%s: the best of %d plans takes %g s, the published one %g s", x.model, a.Considered, best.Result.Step, r.Step)
		}
	}
}
