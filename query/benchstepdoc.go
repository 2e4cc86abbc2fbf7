package query

import (
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// BenchStepDoc is the answer of BenchStep.
type BenchStepDoc struct {
	Dtype         string         `json:"dtype"`
	GradientBytes int64          `json:"gradient_bytes"` // of all tensors
	Hosts         []string       `json:"hosts"`
	Iters         int            `json:"iters"`
	Model         string         `json:"model"`
	Params        int64          `json:"params"`
	Compute       float64        `json:"planned_compute_s"` // of a step
	Ranks         int            `json:"ranks"`
	Rows          []BenchStepRow `json:"rows"`
	Tensors       int            `json:"tensors"`
	Transport     string         `json:"transport"`
	Warmup        int            `json:"warmup"`

	Title string         `json:"-"` // of the model
	Plan  bench.StepPlan `json:"-"`
	Noted
}

// BenchStepRow is steps with or without overlap.
type BenchStepRow struct {
	Overlap  string            `json:"overlap"` // on or off
	Step     float64           `json:"step_s"`  // the median, of an even number the lower
	Min      float64           `json:"min_step_s"`
	Max      float64           `json:"max_step_s"`
	Computed float64           `json:"compute_s"`      // what the median step computed
	Exposed  float64           `json:"exposed_comm_s"` // how long it went on after that
	Steps    []float64         `json:"steps_s"`        // sorted
	Buckets  []BenchStepBucket `json:"buckets"`

	Times *bench.StepTimes `json:"-"`
}

// BenchStepBucket is one bucket on rank 0: when it was full and how long it took, while others were under way too.
type BenchStepBucket struct {
	Size    int64   `json:"size_bytes"`
	Tensors int     `json:"tensors"`
	Ready   float64 `json:"ready_us"` // from the beginning of the step until it was full
	Took    float64 `json:"time_us"`
	BusBW   float64 `json:"busbw_GBps"` // its share, while others are under way
	Algo    string  `json:"algo"`
}

func newBenchStepDoc(g *engine.Group, m *workload.Model, p bench.StepPlan) *BenchStepDoc {
	return &BenchStepDoc{
		Model: m.Name, Title: m.Title, Params: m.Params(), Tensors: len(p.Grads), GradientBytes: int64(p.Memory()), Dtype: p.Type.String(),
		Ranks: g.Size(), Hosts: g.Hosts(), Transport: string(g.Transport()), Iters: p.Iters, Warmup: p.Warm,
		Compute: p.Compute().Seconds(), Rows: []BenchStepRow{}, Plan: p,
	}
}

// add takes what steps took.
func (d *BenchStepDoc) add(overlap bool, t *bench.StepTimes) {
	x := BenchStepRow{
		Overlap: onOff(overlap), Step: t.Median().Seconds(), Min: t.Steps[0].Seconds(), Max: t.Steps[len(t.Steps)-1].Seconds(),
		Computed: t.Computed.Seconds(), Exposed: t.Exposed.Seconds(), Buckets: []BenchStepBucket{}, Times: t,
	}
	for _, s := range t.Steps {
		x.Steps = append(x.Steps, s.Seconds())
	}
	for _, b := range t.Buckets {
		x.Buckets = append(x.Buckets, BenchStepBucket{int64(b.Bytes), b.Tensors, micros(b.Ready), micros(b.Took), d.BusBW(b).GBps(), b.Algo})
	}
	d.Rows = append(d.Rows, x)
}

// BusBW is that of a bucket from its start to its end, while others are under way too.
func (d *BenchStepDoc) BusBW(b bench.StepBucket) unit.Rate {
	if b.Took <= 0 {
		return 0
	}
	n := float64(d.Ranks)
	return unit.Rate(float64(b.Bytes) * 2 * (n - 1) / n / b.Took.Seconds())
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
