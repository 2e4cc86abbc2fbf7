package plan_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
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
	base := workload.Job{Model: m, Seq: m.Seq, GlobalBatch: global, Precision: workload.BF16, Kernels: workload.Fused}
	return &plan.Query{
		Spaces: []*plan.Space{plan.NewSpace(base, 8*nodes, 8)}, Objective: plan.Shortest, Cluster: c, Layout: l,
		Version: nccl.Newest, GPU: g, Top: 10, Reserve: 0.05,
	}
}

// The best plans are those that pricing everything finds, whatever the objective.
func TestSearchIsExact(t *testing.T) {
	for _, x := range []struct {
		preset, gpu, model string
		precision          workload.Precision
		goal               plan.Objective
		fewer, tuned       bool
	}{
		{"dgx-h100", "h100", "llama2-7b", workload.BF16, plan.Shortest, false, true},
		{"dgx-a100", "a100-80", "gpt2-xl", workload.AMP, plan.Cheapest, true, false},
		{"dgx-h100", "h100", "gpt2-xl", workload.BF16, plan.Cheapest, true, false},
		{"dgx-a100", "a100-80", "mixtral-8x7b", workload.BF16, plan.Shortest, false, false},
	} {
		if testing.Short() && x.model != "gpt2-xl" {
			continue // which takes long under the race detector
		}
		q := query(t, x.preset, x.gpu, x.model, 2, 16)
		q.Objective, q.Tuned = x.goal, x.tuned
		base := q.Spaces[0].Base
		base.Precision = x.precision
		q.Spaces = nil
		for ranks := 16; ranks > 0; ranks -= 8 {
			s := plan.NewSpace(base, ranks, 8)
			s.Micro, s.Chunks, s.Bucket = []int64{1, 2}, []int{1, 2}, []unit.Bytes{25 << 20, 100 << 20}
			if x.model != "gpt2-xl" {
				s.Recompute = []workload.Recompute{workload.None, workload.Full}
				s.Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved, pipeline.ZeroBubble}
			}
			if q.Spaces = append(q.Spaces, s); !x.fewer {
				break
			}
		}
		a, err := plan.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		all, want := everything(t, q)
		if all != a.Considered || len(a.Plans) != len(want) || !a.Whole {
			t.Fatalf("%s: %d considered of %d, %d plans of %d, whole %v", x.model, a.Considered, all, len(a.Plans), len(want),
				a.Whole)
		}
		for i, p := range a.Plans {
			if math.Abs(p.Value/want[i]-1) > 1e-9 {
				t.Errorf("%s: plan %d has %g; the best but %d have %g", x.model, i+1, p.Value, i, want[i])
			}
		}
		if a.Bound != a.Plans[0].Value {
			t.Errorf("%s: nothing is left below %g, and the bound is %g", x.model, a.Plans[0].Value, a.Bound)
		}
		if a.Bounded <= 0 || a.Cut < 0 || a.Priced <= 0 || a.Bounded+a.Cut+a.Priced != a.Considered {
			t.Errorf("%s: %d bounded, %d cut and %d priced are not %d settings", x.model, a.Bounded, a.Cut, a.Priced,
				a.Considered)
		}
		t.Logf("%s: %d settings, %d bounded, %d cut in groups, %d priced", x.model, a.Considered, a.Bounded, a.Cut, a.Priced)
		q.Each = true
		if b, err := plan.Search(t.Context(), q); err != nil ||
			!slices.EqualFunc(a.Plans, b.Plans, func(x, y plan.Plan) bool { return x.Value == y.Value }) || b.Cut != 0 {
			t.Errorf("%s: bounded one by one: %v, %+v", x.model, err, b)
		}
	}
}

// everything prices every setting of a query: how many there are, and the best of each kind.
func everything(t *testing.T, q *plan.Query) (settings int64, best []float64) {
	t.Helper()
	kept := map[[6]int]float64{}
	for _, space := range q.Spaces {
		f := step.NewFabric(q.Cluster, q.Layout[:space.Ranks], workload.Split{}, q.Version)
		if q.Tuned {
			f = f.Tuned()
		}
		space.Each(func(j *workload.Job) {
			settings++
			mine := *j
			r, err := step.Prepare(&mine, f.With(mine.Split)).Price(q.GPU)
			if err != nil {
				t.Fatal(err)
			}
			if r.Memory.Total() > 0.95*unit.Volume(q.GPU.Model.Memory) ||
				q.HostMemory > 0 && r.Memory.Host*unit.Volume(space.Node) > unit.Volume(q.HostMemory) {
				return
			}
			s := &mine.Split
			k := [6]int{s.DP, s.TP, s.PP, s.CP, s.EP, s.ZeRO}
			if old, ok := kept[k]; !ok || q.Objective.Value(r) < old {
				kept[k] = q.Objective.Value(r)
			}
		})
	}
	for _, v := range kept {
		best = append(best, v)
	}
	slices.Sort(best)
	return settings, best[:min(len(best), q.Top)]
}

// With a longest step the cheapest plan is one that keeps it; where none does, the answer says how
// long the shortest takes at least.
func TestLongestStep(t *testing.T) {
	q := query(t, "dgx-h100", "h100", "llama2-7b", 2, 64)
	base := q.Spaces[0].Base
	q.Spaces = []*plan.Space{q.Spaces[0], plan.NewSpace(base, 8, 8)}
	q.Objective = plan.Cheapest
	a, err := plan.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	q.MaxStep = a.Plans[0].Result.Step * 0.9
	b, err := plan.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range b.Plans {
		if p.Result.Step > q.MaxStep {
			t.Errorf("plan %d takes %g s of %g", i+1, p.Result.Step, q.MaxStep)
		}
	}
	if b.Plans[0].Value < a.Plans[0].Value {
		t.Errorf("cheaper with a limit: %g, without %g", b.Plans[0].Value, a.Plans[0].Value)
	}
	q.MaxStep = 1e-3
	if c, err := plan.Search(t.Context(), q); !errors.Is(err, plan.ErrNone) || c.Late <= q.MaxStep {
		t.Errorf("in a millisecond: %v, %+v", err, c)
	}
}

// The same query has the same answer and the same counts on one processor as on several.
func TestSearchIsRepeatable(t *testing.T) {
	var first *plan.Answer
	q := query(t, "dgx-h100", "h100", "gpt2-xl", 2, 16)
	for _, n := range []int{1, 2, 4} {
		old := runtime.GOMAXPROCS(n)
		a, err := plan.Search(t.Context(), q)
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = a
		}
		if a.Considered != first.Considered || a.Bounded != first.Bounded || a.Cut != first.Cut || a.Priced != first.Priced {
			t.Errorf("%d processors: %d settings, %d bounded, %d cut, %d priced; with one %d, %d, %d, %d", n, a.Considered,
				a.Bounded, a.Cut, a.Priced, first.Considered, first.Bounded, first.Cut, first.Priced)
		}
		for i := range a.Plans {
			if a.Plans[i].Job != first.Plans[i].Job || a.Plans[i].Value != first.Plans[i].Value {
				t.Errorf("%d processors: plan %d is %v, with one %v", n, i+1, a.Plans[i].Job.Split, first.Plans[i].Job.Split)
			}
		}
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
	if a.Whole || len(a.Plans) == 0 || !(a.Bound > 0 && a.Bound <= a.Plans[0].Result.Step.Seconds()) {
		t.Errorf("whole %v, %d plans, bound %g", a.Whole, len(a.Plans), a.Bound)
	}
}

func TestNothingFits(t *testing.T) {
	q := query(t, "dgx-a100", "a100-80", "gpt3-175b", 1, 8)
	q.HostMemory = 1e12 // of the 2.8 TB that the optimizer's state is
	a, err := plan.Search(t.Context(), q)
	if !errors.Is(err, plan.ErrNone) || a.Leanest == nil {
		t.Fatalf("GPT-3 on eight GPUs: %v, %+v", err, a)
	}
	if q.Fits(q.Spaces[0]) != nil {
		t.Error("what does not fit fits")
	}
	if x := q.Fits(plan.NewSpace(q.Spaces[0].Base, 64, 8)); x == nil ||
		x.Memory.Total() > 0.95*unit.Volume(q.GPU.Model.Memory) {
		t.Errorf("GPT-3 on 64 GPUs: %+v", x)
	}
}
