package check

import (
	"math"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/lab"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// A step that is shrunk has the buckets of the whole one, and they are full at the same part
// of its computing.
func TestStretchedSteps(t *testing.T) {
	c := Check{Training: Training{Step: "gpt2-large", Shrink: 64, Batch: 8, Speed: 150}}
	env := &Env{Model: workload.Parse}
	whole, err := c.stepPlan(env)
	if err != nil {
		t.Fatal(err)
	}
	small, err := c.stepPlan(env)
	if err != nil {
		t.Fatal(err)
	}
	if longer := c.stretch(&small, lab.Scale{Num: 1, Den: 400}); longer != 6.25 {
		t.Fatalf("%g times as long", longer)
	}
	trial, err := newTrial(coll.AllReduce, "ring", 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	before, err := stepJobs(&trial, whole, true)
	if err != nil {
		t.Fatal(err)
	}
	after, err := stepJobs(&trial, small, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) != len(after) || len(before) < 50 {
		t.Fatalf("%d buckets, %d when shrunk", len(before), len(after))
	}
	for i := range before {
		bytes, start := float64(before[i].Op.Bytes)/float64(after[i].Op.Bytes), after[i].Start.Seconds()/before[i].Start.Seconds()
		if math.Abs(bytes/64-1) > 0.02 || math.Abs(start/6.25-1) > 0.001 {
			t.Errorf("bucket %d: bytes 1/%.2f, full after %.4f times the time", i, bytes, start)
		}
	}
	if got := small.Compute().Seconds() / whole.Compute().Seconds(); math.Abs(got/6.25-1) > 0.001 {
		t.Errorf("computing takes %.4f times as long", got)
	}
}

func TestStepJobs(t *testing.T) {
	trial, err := newTrial(coll.AllReduce, "ring", 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	p := bench.StepPlan{Forward: time.Second, First: 100, Cap: 1000}
	for range 4 {
		p.Grads = append(p.Grads, bench.Grad{Bytes: 512, After: time.Second})
	}
	for _, x := range []struct {
		wire    engine.Wire
		overlap bool
		bytes   []unit.Bytes
		start   []float64
	}{
		{engine.Uncompressed, true, []unit.Bytes{512, 1024, 512}, []float64{2, 4, 5}},
		{engine.Uncompressed, false, []unit.Bytes{512, 1024, 512}, []float64{5, 5, 5}},
		{engine.FP16, true, []unit.Bytes{256, 512, 256}, []float64{2, 4, 5}},
		{engine.Int8, true, []unit.Bytes{130, 260, 130}, []float64{2, 4, 5}},
	} {
		p.Wire = x.wire
		jobs, err := stepJobs(&trial, p, x.overlap)
		if err != nil || len(jobs) != len(x.bytes) {
			t.Fatalf("%v: %d jobs, %v", x.wire, len(jobs), err)
		}
		for i, j := range jobs {
			if j.Op.Bytes != x.bytes[i] || j.Start != unit.Seconds(x.start[i]) || len(j.Ranks) != 4 {
				t.Errorf("%v, overlap %v, bucket %d: %v at %v, want %v at %v s", x.wire, x.overlap, i, j.Op.Bytes, j.Start, x.bytes[i], x.start[i])
			}
		}
	}
}
