package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// sweepOf is an all-reduce that took a time.
func sweepOf(micros float64) *result.Sweep {
	return &result.Sweep{
		Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float", Ranks: 4, Transport: result.NCCL,
		Machine: &result.Machine{GPU: "H"}, Points: []result.Point{{Size: unit.MiB, Out: result.Time(micros)}},
	}
}

// same holds a document to its own text after JSON.
func same[D any](t *testing.T, d *D, show func(w io.Writer, d *D) error) {
	t.Helper()
	back := new(D)
	data, err := json.Marshal(d)
	if err == nil {
		err = json.Unmarshal(data, back)
	}
	if err != nil {
		t.Fatal(err)
	}
	var was, is bytes.Buffer
	if err := show(&was, d); err != nil {
		t.Fatal(err)
	}
	if err := show(&is, back); !errors.Is(err, query.ErrDecoded) && (err != nil || was.String() != is.String()) {
		t.Errorf("%v; was:\n%s\nis:\n%s", err, was.String(), is.String())
	}
}

// alike makes a test of a question whose document is shown as it comes, and after JSON: the same, or refused.
func alike[D any](q interface {
	Run(ctx context.Context, env query.Env) (*D, error)
}, show func(w io.Writer, d *D) error,
) func(t *testing.T) {
	return func(t *testing.T) {
		d, err := q.Run(t.Context(), query.Env{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, d, show)
	}
}

// TestDecodedSame shows documents that were read from JSON: no text lacks a part in silence.
func TestDecodedSame(t *testing.T) {
	o := report.TextOptions{}
	job := query.Job{Cluster: "dgx-h100:4", Model: "llama3-8b", Parallel: "zero=3"}
	large := query.Job{Cluster: "dgx-h100:4", Model: "llama3-70b", Parallel: "zero=1"}
	pictures := query.Job{Cluster: "dgx-h100:4", Model: "resnet50", Micro: 64}
	for name, test := range map[string]func(*testing.T){
		"predict": alike(query.Predict{Cluster: "dgx-h100:2", Compare: "1x8,2x8"},
			func(w io.Writer, d *query.PredictDoc) error { return report.Predict(w, d, o) }),
		"predict links": alike(query.Predict{Cluster: "dgx-h100:2", Size: "1M", Links: true, Plan: true},
			func(w io.Writer, d *query.PredictDoc) error { return report.Predict(w, d, o) }),
		"curves": alike(query.Predict{Cluster: "dgx-h100:2", Algo: "each"}, func(w io.Writer, d *query.PredictDoc) error {
			p, err := report.Curves(d)
			if err == nil {
				err = p.SVG(w)
			}
			return err
		}),
		"step":     alike(query.Step{Job: job}, func(w io.Writer, d *query.StepDoc) error { return report.Step(w, d, report.TextOptions{Groups: true}) }),
		"scale":    alike(query.Scale{Job: job}, report.Scale),
		"misfit":   alike(query.Scale{Job: large}, report.Scale),
		"pictures": alike(query.Scale{Job: pictures}, report.Scale),
		"need":     alike(query.Need{Job: job}, report.Need),
		"envelope": alike(query.Envelope{Job: job}, report.Envelope),
		"goodput":  alike(query.Resilience{Job: pictures}, report.Resilience),
		"place":    alike(query.Place{Job: job, Nodes: 2}, report.Place),
		"plan":     alike(query.Plan{Cluster: "dgx-h100:1", Model: "llama3-8b", Framework: "fsdp"}, report.Plan),
		"experts":  alike(query.Experts{Cluster: "dgx-h100:4"}, report.Experts),
		"map": alike(query.Map{Sources: []string{"baskerville:2"}},
			func(w io.Writer, d *query.MapDoc) error { return report.Map(w, d, o) }),
		"audit": alike(query.Audit{Sources: []string{"baskerville:2"}},
			func(w io.Writer, d *query.AuditDoc) error { return report.Audit(w, d, o) }),
		"path": alike(query.Path{Sources: []string{"dgx-h100:2"}, Path: []string{"node0/gpu0,node1/gpu0"}}, report.Paths),
		"hang": alike(query.Hang{Sources: []string{"../docs/examples/hang"}},
			func(w io.Writer, d *query.HangDoc) error { return report.Hang(w, d, o) }),
		"jobs": alike(query.Jobs{Sources: []string{"../docs/examples/jobs"}},
			func(w io.Writer, d *query.JobsDoc) error { return report.Jobs(w, d, o) }),
		"trace": alike(query.Trace{Sources: []string{"../docs/examples/trace"}},
			func(w io.Writer, d *query.TraceDoc) error { return report.Traced(w, d, o) }),
		"measured": alike(query.DoctorBench{Result: "../docs/examples/two-nodes.log", Cluster: "dgx-h100:2"},
			func(w io.Writer, d *query.DoctorBenchDoc) error { return report.DoctorBench(w, d, o) }),
		"diff": alike(query.BenchDiff{Old: "../docs/examples/before.jsonl", New: "../docs/examples/after.jsonl"},
			func(w io.Writer, d *query.BenchDiffDoc) error { return report.BenchDiff(w, d, true) }),
		"schedule": alike(query.Sched{}, report.Sched),
		"bench": alike(query.Bench{Max: "1K", Iters: 2, Check: true},
			func(w io.Writer, d *query.BenchDoc) error { return report.Bench(w, d, 0) }),
		"bench, narrow": alike(query.Bench{Op: "broadcast", Max: "64", Iters: 1},
			func(w io.Writer, d *query.BenchDoc) error { return report.Bench(w, d, 90) }),
		"bench step": alike(
			query.BenchStep{Model: "layers=1,hidden=64,heads=1,vocab=100,context=16", Compute: 1e6, Iters: 1},
			func(w io.Writer, d *query.BenchStepDoc) error { return report.BenchStep(w, d, true) }),
		"bench step trace": alike(
			query.BenchStep{Model: "layers=1,hidden=64,heads=1,vocab=100,context=16", Compute: 1e6, Iters: 1},
			report.BenchStepTrace),
		"bench gpu": func(t *testing.T) {
			s := sweepOf(100)
			tree := sweepOf(80)
			tree.Env = map[string]string{"NCCL_ALGO": "tree"}
			for _, tool := range []string{"busbar-gpu devel", "nccl-tests 2.17.1"} {
				d := &query.BenchGPUDoc{Op: s.Op, Dtype: s.Dtype, Ranks: s.Ranks, Tool: tool, Notes: []string{"shared"}}
				d.Add(gpu.Setting{Algo: "auto", Proto: "auto"}, result.Sweeps{s})
				d.Add(gpu.Setting{Algo: "tree", Proto: "ll", Channels: 4}, result.Sweeps{tree})
				d.Refuse(gpu.Setting{Algo: "nvls", Proto: "simple"}, errors.New("not here"))
				d.Find()
				same(t, d, report.BenchGPU)
			}
		},
		"bench gpu node": func(t *testing.T) {
			same(t, &query.BenchGPUNodeDoc{
				Host: "a", Results: result.Sweeps{sweepOf(100)}, Peers: []query.BenchGPUPeer{{From: 0, To: 1, GBps: 9}},
				GPUs: []query.BenchGPUDevice{{
					Device: device.Device{Name: "H"}, Rates: []device.Rate{{What: "copy", GBps: 8}},
					Products: []query.BenchGPUProduct{{M: 8, N: 8, K: 8, Result: device.Result{TFLOPS: 7}}},
				}},
			}, report.BenchGPUNode)
		},
	} {
		t.Run(name, test)
	}
}
