package plan_test

import (
	"testing"

	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// published is a row of table 1 of Narayanan et al. 2021 (Efficient Large-Scale Language Model
// Training on GPU Clusters Using Megatron-LM): what was run on how many DGX A100s, and the TFLOPS of a GPU
// that it reached, recomputation counted.
type published struct {
	model  string
	tp, pp int
	nodes  int
	global int64
	tflops float64
}

var megatron = []published{
	{"megatron-1.7b", 1, 1, 4, 512, 137},
	{"megatron-3.6b", 2, 1, 8, 512, 138},
	{"megatron-7.5b", 4, 1, 16, 512, 142},
	{"megatron-18.4b", 8, 1, 32, 1024, 135},
	{"megatron-39.1b", 8, 2, 64, 1536, 138},
	{"megatron-76.1b", 8, 4, 128, 1792, 140},
	{"megatron-145.6b", 8, 8, 192, 2304, 148},
	{"megatron-310.1b", 8, 16, 240, 2160, 155},
	{"megatron-529.6b", 8, 35, 315, 2520, 163},
	{"megatron-1t", 8, 64, 384, 3072, 163},
}

// seconds is the time of a step that follows from the published rate, by the paper's formula.
func (x *published) seconds(m *workload.Model) unit.Span {
	l, h, s, v := float64(m.Dims.Layers), float64(m.Dims.Hidden), float64(m.Seq), float64(m.Dims.Vocab)
	flops := 96 * float64(x.global) * s * l * h * h * (1 + s/(6*h) + v/(16*l*h))
	return unit.Span(flops / (x.tflops * 1e12 * float64(8*x.nodes)))
}

// price prices the published configuration.
func (x *published) price(t *testing.T, q *plan.Query) *step.Result {
	t.Helper()
	j := q.Spaces[0].Base
	j.Recompute, j.MicroBatch = workload.Full, 1
	var err error
	if j.Split, err = (workload.Split{TP: x.tp, PP: x.pp}).On(8 * x.nodes); err != nil {
		t.Fatal(err)
	}
	r, err := step.Step(&j, q.GPU, step.NewFabric(q.Cluster, q.Layout, j.Split, q.Version))
	if err != nil {
		t.Fatalf("%s: %v", x.model, err)
	}
	return r
}

// The best plan of the models of Megatron's table on their hardware is no slower than what was
// published, with the same recomputation.
func TestMegatronTable(t *testing.T) {
	if testing.Short() {
		t.Skip("the searches of ten models take a minute under the race detector")
	}
	for _, x := range megatron {
		q := query(t, "dgx-a100", "a100-80", x.model, x.nodes, x.global)
		q.Top = 1
		q.Spaces[0].Recompute = []workload.Recompute{workload.Full}
		q.Spaces[0].Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
		a, err := plan.Search(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", x.model, err)
		}
		r, best := x.price(t, q), a.Plans[0]
		t.Logf("%s on %d GPUs: published tp=%d,pp=%d %.2f s; best %v, micro-batch %d, %s: %.2f s; %d considered", x.model,
			8*x.nodes, x.tp, x.pp, r.Step, best.Job.Split, best.Job.MicroBatch, best.Job.Schedule, best.Result.Step,
			a.Considered)
		if best.Result.Step > r.Step*(1+1e-9) {
			t.Errorf("%s: the best of %d plans takes %g s, the published one %g s", x.model, a.Considered, best.Result.Step,
				r.Step)
		}
	}
}

// Among all degrees that Megatron-LM of 2021 could run (no ZeRO, no sequence parallelism), the published ones are
// predicted to be where their measured throughput puts them: the place by the predicted time and the
// place by the measured one are near each other, and both are near the top, where people who
// tuned their runs should be.
func TestMegatronPlaces(t *testing.T) {
	if testing.Short() {
		t.Skip("ten searches take half a minute under the race detector")
	}
	all := 0.0
	for _, x := range megatron {
		q := query(t, "dgx-a100", "a100-80", x.model, x.nodes, x.global)
		q.Top = 1 << 20
		s := q.Spaces[0]
		s.Recompute, s.Schedule = []workload.Recompute{workload.Full},
			[]pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
		s.ZeRO, s.CP, s.SeqParallel, s.Shard = []int{0}, []int{1}, []bool{false}, []int{0}
		s.Order, s.Offload, s.Compress, s.Bucket = s.Order[:1], s.Offload[:1], s.Compress[:1], s.Bucket[:1]
		a, err := plan.Search(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", x.model, err)
		}
		predicted, measured := x.price(t, q).Step, x.seconds(s.Base.Model)
		place := func(seconds unit.Span) int {
			n := 1
			for _, p := range a.Plans {
				own := p.Job.Split.TP == x.tp && p.Job.Split.PP == x.pp
				if !own && p.Result.Step < seconds {
					n++
				}
			}
			return n
		}
		p, m := place(predicted), place(measured)
		t.Logf("%s: of %d degrees tp=%d,pp=%d is in place %d by prediction (%.2f s), %d by measurement (%.2f s); the best "+
			"is %v, %.2f s", x.model, len(a.Plans), x.tp, x.pp, p, predicted, m, measured, a.Plans[0].Job.Split,
			a.Plans[0].Result.Step)
		apart := float64(max(p-m, m-p)) / float64(len(a.Plans))
		all += apart / float64(len(megatron))
		if apart > 0.5 {
			t.Errorf("%s: place %d by prediction and %d by measurement, of %d", x.model, p, m, len(a.Plans))
		}
	}
	if all > 0.125 {
		t.Errorf("places by prediction and by measurement are %.2f of all apart in the mean; expected an eighth", all)
	}
}
