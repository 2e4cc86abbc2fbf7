package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"busbar.dev/step"
)

// From its description alone a run is the job that it was.
func TestSyntheticRuns(t *testing.T) {
	list := runs(t, step.Default(), 0)
	rows, left := predictRuns(list, step.Default())
	if len(rows) != len(list) || len(left) != 0 {
		t.Fatalf("%d rows of %d, left %v", len(rows), len(list), left)
	}
	for _, r := range rows {
		if r.APE > 1e-6 {
			t.Errorf("%s: %v s, measured %v", r.ID, r.Predicted, r.Seconds())
		}
	}
	if s := rateRuns("all", rows); s.Machines != 4 || s.Points != len(rows) || s.Worst > 1e-6 {
		t.Errorf("%+v", s)
	}
	n := 0
	for _, s := range splitRuns(rows, func(r *runRow) string { return r.Class }) {
		n += s.Points
	}
	if n != len(rows) {
		t.Errorf("%d runs by class, want %d", n, len(rows))
	}
}

// However a source states its speed, the step takes as long.
func TestSyntheticThroughput(t *testing.T) {
	base := runs(t, step.Default(), 0)[0]
	want := base.Seconds()
	tokens := float64(base.Parallel.GlobalBatch * base.Model.Seq)
	for name, set := range map[string]func(r *training){
		"derived":        func(r *training) { r.Derived.Step = want },
		"tokens":         func(r *training) { r.Measured.Tokens = tokens / want },
		"derived tokens": func(r *training) { r.Derived.Tokens = tokens / want },
		"tokens a GPU":   func(r *training) { r.Measured.PerGPU = tokens / want / float64(r.Hardware.GPUs) },
		"TFLOPS":         func(r *training) { r.Measured.TFLOPS = r.flops() / want / 1e12 / float64(r.Hardware.GPUs) },
		"TFLOPS of products": func(r *training) {
			r.Measured.Kind = "model"
			r.Measured.TFLOPS = r.flops() / want / 1e12 / float64(r.Hardware.GPUs)
		},
	} {
		r := *base
		r.Measured.Step = 0
		if r.Seconds() != 0 {
			t.Fatal("a step without a time has one")
		}
		if _, err := r.Prepare(); err == nil {
			t.Error("a run without a time was prepared")
		}
		if set(&r); math.Abs(r.Seconds()-want) > 1e-9*want {
			t.Errorf("%s: %v s, want %v", name, r.Seconds(), want)
		}
	}
}

// What a source leaves open is assumed and noted; what nothing can be predicted for is left with the reason.
func TestSyntheticAssumed(t *testing.T) {
	base := *runs(t, step.Default(), 0)[0]
	for _, c := range []struct {
		name    string
		set     func(r *training)
		assumed string
		err     string
	}{
		{"heads", func(r *training) { r.Model.Heads = 0 }, "16 heads of 128", ""},
		{"micro-batches", func(r *training) { r.Parallel.MicroBatch = 0 }, "micro-batches of 8", ""},
		{"replicas", func(r *training) { r.Parallel.DP = 3 }, "dp=16, which the GPUs give; the source prints 3", ""},
		{"NICs", func(r *training) { r.Hardware.NICs, r.Hardware.Fabric = nil, "" }, "8 NICs of 400 Gb/s a node", ""},
		{
			"NICs of A100", func(r *training) { r.Hardware.NICs, r.Hardware.GPU = nil, "A100-SXM4-80GB" },
			"8 NICs of 200 Gb/s a node", "",
		},
		{
			"framework", func(r *training) { r.Framework, r.Source, r.Cluster, r.ID = "", "", "", "x" },
			"as the source names no framework", "",
		},
		{
			"precision", func(r *training) { r.Parallel.Precision, r.Parallel.Family = "e4m3-odd", "fp8" },
			`precision fp8 for "e4m3-odd"`, "",
		},
		{"depth", func(r *training) { r.Model.Layers = 0 }, "", "does not state its layers and width"},
		{"ResNet", func(r *training) { r.Model.Layers, r.Model.Name = 0, "RetinaNet" }, "", "no language model"},
		{
			"padding", func(r *training) { r.Source, r.Model.Name, r.Model.Seq = "DeepLearningExamples", "BERT", 512 }, "",
			"without their padding",
		},
		{"GPU", func(r *training) { r.Hardware.GPU = "synthetic accelerator" }, "", "not in the catalogue"},
		{"grade", func(r *training) { r.Grade = "C" }, "", "grade C"},
	} {
		r := base
		r.Assumed = nil
		c.set(&r)
		rows, left := predictRuns([]*training{&r}, step.Default())
		switch {
		case c.err != "":
			if len(left) != 1 || !strings.Contains(left[0].Reason, c.err) {
				t.Errorf("%s: left %v, want %q", c.name, left, c.err)
			}
		case len(rows) != 1 || !strings.Contains(fmt.Sprint(r.Assumed), c.assumed):
			t.Errorf("%s: %d rows, left %v, assumed %q; want %q", c.name, len(rows), left, r.Assumed, c.assumed)
		}
	}
	// Frameworks and precisions change what a step takes: FP8 is faster, recomputing slower.
	predicted := func(set func(r *training)) float64 {
		r := base
		set(&r)
		rows, left := predictRuns([]*training{&r}, step.Default())
		if len(rows) != 1 {
			t.Fatalf("left %v", left)
		}
		return rows[0].Predicted
	}
	plain := predicted(func(*training) {})
	for name, c := range map[string]struct {
		set    func(r *training)
		slower bool
	}{
		"fp8":            {func(r *training) { r.Parallel.Precision = "fp8" }, false},
		"tf32":           {func(r *training) { r.Parallel.Precision = "tf32" }, true},
		"fp32":           {func(r *training) { r.Parallel.Precision = "fp32" }, true},
		"full recompute": {func(r *training) { r.Parallel.Recompute = "full" }, true},
		"unfused":        {func(r *training) { r.Framework = "" }, true},
	} {
		if got := predicted(c.set); got == plain || got > plain != c.slower {
			t.Errorf("%s: %v s, %v without", name, got, plain)
		}
	}
}
