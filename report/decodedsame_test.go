package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/coll"
	"busbar.dev/doctor"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/measure"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// sweepOf is an all-reduce that took a time.
func sweepOf(micros float64) *result.Sweep {
	return &result.Sweep{
		Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float", Ranks: 4, Transport: result.NCCL,
		Machine: &result.Machine{GPU: "H"}, Points: []result.Point{{Size: unit.MiB, Out: result.Time(micros)}},
	}
}

// alike makes a test of a question whose document is shown as it comes, and after JSON: the same.
func alike[D any](q interface {
	Run(ctx context.Context, env query.Env) (*D, error)
}, show func(w io.Writer, d *D) error,
) func(t *testing.T) {
	return func(t *testing.T) {
		d, err := q.Run(t.Context(), query.Env{})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "", d, show)
	}
}

// compare shows a document as it comes, and after JSON.
func compare[D any](t *testing.T, name string, d *D, show func(w io.Writer, d *D) error) {
	t.Helper()
	back := new(D)
	data, err := json.Marshal(d)
	if err == nil {
		err = json.Unmarshal(data, back)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var was, is bytes.Buffer
	if err := show(&was, d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := show(&is, back); err != nil || was.String() != is.String() {
		t.Errorf("%s: %v; was:\n%s\nis:\n%s", name, err, was.String(), is.String())
	}
}

// verbosely shows all of a document's text.
func verbosely[D any](text func(*report.Page, *D)) func(w io.Writer, d *D) error {
	return func(w io.Writer, d *D) error {
		return report.Print(w, report.TextOptions{Verbose: true}, text, d)
	}
}

// benched prints a measurement whole, as it is printed row by row.
func benched(p *report.Page, d *query.BenchDoc) {
	so := *d
	so.Results = nil
	for _, s := range d.Results {
		for i := range s.Points {
			part := *s
			part.Points = s.Points[i : i+1]
			so.Results.Append(&part)
			report.BenchRow(p, &so)
		}
	}
	report.BenchEnd(p, d)
}

// pictureOf shows a document by its picture.
func pictureOf[D any](draw func(*D) (*report.Picture, error)) func(w io.Writer, d *D) error {
	return func(w io.Writer, d *D) error {
		p, err := draw(d)
		if err == nil {
			err = p.SVG(w)
		}
		return err
	}
}

// TestDecodedSame shows documents that were read from JSON: no text lacks a part in silence. TestReadBack of cmd/busbar
// does so with every question that is a command of its own, by its first example.
func TestDecodedSame(t *testing.T) {
	const examples = "../docs/examples/"
	job := query.Job{Cluster: "dgx-h100:4", Model: "llama3-8b", Parallel: "zero=3"}
	piped := query.Job{Cluster: "dgx-h100:2", Model: "llama2-13b", Parallel: "tp=4,pp=2", Global: 16}
	large := query.Job{Cluster: "dgx-h100:4", Model: "llama3-70b", Parallel: "zero=1"}
	pictures := query.Job{Cluster: "dgx-h100:4", Model: "resnet50", Micro: 64}
	asked := query.Campaign{
		Slow: []string{"node1=20%"}, Tokens: "300B",
		Failures: query.Failures{Goodput: true, Spares: new(1), Elastic: true, Async: true},
		Prices:   query.Prices{Price: "2.50/gpu-hour"},
	}
	predicted := verbosely(report.Predict)
	stepped := verbosely(report.Step)
	mapped := verbosely(report.Map)
	measured := verbosely(report.DoctorBench)
	doctored := func(w io.Writer, d *query.DoctorDoc) error { return doctor.Text{All: true}.Write(w, d.Report) }
	validated := verbosely(report.Validate)
	listed := verbosely(report.Models)
	drawn := query.Step{Job: piped, Drawn: true}
	for name, test := range map[string]func(*testing.T){
		"predict":       alike(query.Predict{Cluster: "dgx-h100:2", Compare: "1x8,2x8"}, predicted),
		"predict links": alike(query.Predict{Cluster: "dgx-h100:2", Size: "1M", Links: true, Plan: true}, predicted),
		"predict all":   alike(query.Predict{Cluster: "baskerville:2", Size: "1M", Algo: "all"}, predicted),
		"curves":        alike(query.Predict{Cluster: "dgx-h100:2", Algo: "each"}, pictureOf(report.Curves)),
		"step":          alike(query.Step{Job: job}, stepped),
		"step large":    alike(query.Step{Job: large}, stepped),
		"step compared": alike(query.Step{Job: query.Job{Cluster: "baskerville:4", Model: "gpt2-large", Compare: "1x4,2x2"}},
			stepped),
		"step campaign":   alike(query.Step{Job: job, Campaign: asked}, stepped),
		"step timeline":   alike(drawn, pictureOf(report.StepTimeline)),
		"step trace":      alike(drawn, report.StepTrace),
		"scale":           alike(query.Scale{Job: job}, verbosely(report.Scale)),
		"scale failures":  alike(query.Scale{Job: job, Failures: query.Failures{Goodput: true}}, verbosely(report.Scale)),
		"scale drawn":     alike(query.Scale{Job: job}, pictureOf(report.ScaleCurve)),
		"bars":            alike(query.Predict{Cluster: "baskerville:2", Size: "1M", Algo: "all"}, pictureOf(report.Curves)),
		"misfit":          alike(query.Scale{Job: large}, verbosely(report.Scale)),
		"pictures":        alike(query.Scale{Job: pictures}, verbosely(report.Scale)),
		"goodput":         alike(query.Goodput{Job: pictures}, verbosely(report.Goodput)),
		"goodput elastic": alike(query.Goodput{Job: job, Failures: asked.Failures}, verbosely(report.Goodput)),
		"place":           alike(query.Place{Job: job, Nodes: 2}, verbosely(report.Place)),
		"plan": alike(query.Plan{Cluster: "dgx-h100:1", Model: "llama3-8b", Framework: "fsdp"},
			verbosely(report.Plan)),
		"plan files": alike(query.Plan{
			Cluster: "dgx-h100:2", Model: "llama3-8b", Framework: "fsdp", Emit: "run", Set: []string{"nics=4"},
		}, verbosely(report.Plan)),
		"map":      alike(query.Map{Sources: []string{"baskerville:2"}}, mapped),
		"map rack": alike(query.Map{Sources: []string{"gb200-nvl72"}}, mapped),
		"map joined": alike(query.Map{Sources: []string{"gpu001=" + examples + "topo.txt", examples + "two-types.yaml"}},
			mapped),
		"map drawn":  alike(query.Map{Sources: []string{examples + "rails.yaml"}}, pictureOf(report.MapPicture)),
		"rack drawn": alike(query.Map{Sources: []string{"gb200-nvl72"}}, pictureOf(report.MapPicture)),
		"map leaves": alike(query.Map{Sources: []string{examples + "leaf-spine.yaml"}}, pictureOf(report.MapPicture)),
		"audit": alike(query.Audit{Sources: []string{"baskerville:2"}},
			verbosely(report.Audit)),
		"path": alike(query.Path{Sources: []string{"dgx-h100:2"}, Path: []string{"node0/gpu0,node1/gpu0"}},
			verbosely(report.Paths)),
		"path unknown": alike(query.Path{Sources: []string{examples + "topo.txt"}, Path: []string{"gpu0,gpu1"}},
			verbosely(report.Paths)),
		"doctor":         alike(query.Doctor{Sources: []string{examples + "job.log"}}, doctored),
		"doctor asks":    alike(query.Doctor{Sources: []string{"training hangs in the first step"}}, doctored),
		"doctor slow":    alike(query.Doctor{Sources: []string{examples + "allreduce.txt"}}, doctored),
		"doctor traces":  alike(query.Doctor{Sources: []string{examples + "trace/rank0.json"}}, doctored),
		"measured":       alike(query.DoctorBench{Result: examples + "two-nodes.log", Cluster: "dgx-h100:2"}, measured),
		"measured azure": alike(query.DoctorBench{Result: examples + "allreduce.txt", Cluster: "azure-ndv5:2"}, measured),
		"measured curve": alike(query.DoctorBench{Result: examples + "two-nodes.log", Cluster: "dgx-h100:2"},
			pictureOf(report.MeasuredCurve)),
		"explain": alike(query.Explain{Logs: []string{examples + "rings.log"}, Size: "256M"},
			verbosely(func(p *report.Page, d *query.ExplainDoc) { report.Traffic(p, d.Run, d.Size) })),
		"hang": alike(query.Hang{Sources: []string{examples + "hang"}},
			verbosely(report.Hang)),
		"jobs": alike(query.Jobs{Sources: []string{examples + "jobs"}},
			verbosely(report.Jobs)),
		"trace": alike(query.Trace{Sources: []string{examples + "trace"}},
			verbosely(report.Traced)),
		"diff": alike(query.Diff{Old: examples + "before.jsonl", New: examples + "after.jsonl"},
			verbosely(report.Diff)),
		"bench": alike(query.Bench{Max: "1K", Iters: 2, Check: true},
			verbosely(benched)),
		"bench, narrow": alike(query.Bench{Op: "broadcast", Max: "64", Iters: 1},
			func(w io.Writer, d *query.BenchDoc) error {
				return report.Print(w, report.TextOptions{Width: 90}, benched, d)
			}),
		"bench step": alike(
			query.BenchStep{Model: "layers=1,hidden=64,heads=1,vocab=100,context=16", Compute: 1e6, Iters: 1},
			verbosely(report.BenchStep)),
		"bench step trace": alike(
			query.BenchStep{Model: "layers=1,hidden=64,heads=1,vocab=100,context=16", Compute: 1e6, Iters: 1},
			report.BenchStepTrace),
		"bench gpu": func(t *testing.T) {
			s := sweepOf(100)
			tree := sweepOf(80)
			tree.Env = map[string]string{"NCCL_ALGO": "tree"}
			for _, tool := range []string{"busbar-gpu devel", "nccl-tests 2.17.1"} {
				d := &query.BenchGPUDoc{Op: s.Op, Dtype: s.Dtype, Ranks: s.Ranks, Tool: tool, Notes: []string{"shared"}}
				d.Add(gpu.Auto, result.Sweeps{s})
				d.Add(gpu.Setting{Algo: "tree", Proto: "ll", Channels: 4}, result.Sweeps{tree})
				d.Refuse(gpu.Setting{Algo: "nvls", Proto: "simple"}, errors.New("not here"))
				d.Find()
				compare(t, "", d, verbosely(report.BenchGPU))
			}
		},
		"bench gpu node": func(t *testing.T) {
			compare(t, "", &measure.GPUNode{
				Host: "a", Results: result.Sweeps{sweepOf(100)}, Peers: []measure.GPUPeer{{From: 0, To: 1, GBps: 9}},
				GPUs: []measure.GPUDevice{{
					Device: device.Device{Name: "H"}, Rates: []device.Rate{{What: "copy", GBps: 8}},
					Products: []measure.GPUProduct{{M: 8, N: 8, K: 8, Result: device.Result{TFLOPS: 7}}},
				}},
			}, verbosely(report.BenchGPUNode))
		},
		"validate": alike(query.Validate{Files: []string{examples + "points.jsonl"}}, validated),
		"calibrate": alike(query.Calibrate{
			Files: []string{examples + "two-nodes.log"}, Cluster: "dgx-h100:2", NCCL: "2.28",
		}, verbosely(func(p *report.Page, d *query.CalibrateDoc) { report.Calibrate(p, d, "site.yaml") })),
		"suggest":       alike(query.Suggest{Cluster: "dgx-h100:2"}, verbosely(report.Suggest)),
		"pairs":         alike(query.BenchPairs{Size: "4K", Iters: 1}, verbosely(report.BenchPairs)),
		"schedule":      alike(query.Sched{}, verbosely(report.Sched)),
		"schedule nvls": alike(query.Sched{Algo: "nvls"}, verbosely(report.Sched)),
		"algorithms": alike(query.List{What: "algorithms"},
			verbosely(report.Algorithms)),
		"hardware": alike(query.List{What: "hardware"}, verbosely(report.Hardware)),
		"version":  alike(query.Release{}, verbosely(report.Release)),
		"model":    alike(query.List{What: "models", Words: []string{"gpt2"}}, listed),
	} {
		t.Run(name, test)
	}
}

// TestMeasuredSame does so with documents of what takes several machines.
func TestMeasuredSame(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	odd := []finding.Finding{
		{ID: "pair-slow", Severity: finding.Error, Where: "n1", Text: "n1 receives slowly", Fix: "look at its cable"},
		{ID: "pair-crowded", Severity: finding.Note, Text: "two ranks a core"},
	}
	cell := pairs.Measure{From: 0, To: 1, Rate: 48e9, Both: 40e9, Latency: unit.Micros(2.5), Failed: "no end within 60 s"}
	state := fleet.OrderState{Measured: 3, Failed: 2, LeftOut: 1, Next: at.Add(time.Hour)}
	state.ID, state.State, state.Parts, state.Every, state.Ran, state.Since = "9b3d", fleet.Done, 6, time.Hour, at,
		at.Add(time.Minute)
	state.Reasons = []fleet.Reason{{Parts: 2, Nodes: []fleet.Name{"n1"}, Why: "port 7643 is in use"}}
	order := &query.OrderDoc{
		OrderReply: &fleet.OrderReply{OrderState: state, Verdict: &fleet.Verdict{
			Healthy: []fleet.Name{"n0"}, Unmeasured: []fleet.Name{"n2"}, Unhealthy: []fleet.Out{{Node: "n1", Why: "slow"}},
		}},
		Results: result.Sweeps{sweepOf(100)}, Waited: true, Rate: &fleet.Spread{Median: 48, Worst: 5, From: "n0", To: "n1"},
		Latency: &fleet.Spread{Median: 2.5, Worst: 90, From: "n1", To: "n0"},
	}
	compare(t, "order", order, verbosely(report.Order))
	compare(t, "orders", &query.OrdersDoc{Orders: []fleet.OrderState{state}}, verbosely(report.Orders))
	compare(t, "check", &measure.Check{
		By: "tcp", ByWhy: "n1 lacks perftest", Findings: odd, Rounds: 3, Partners: 1, Seconds: 1.5, Hostlist: "n1",
		Expected: "the median of all pairs", Notes: []string{"brief"}, Nodes: []measure.CheckNode{
			{Host: "n0", Verdict: "healthy", GPUs: 8, Loaded: 4, Ports: 2},
			{Host: "n1", Verdict: "suspect", Reasons: []string{"slow"}},
		},
	}, verbosely(report.Check))
	compare(t, "rdma", &measure.RDMA{
		Hosts: []string{"n0", "n1"}, Programs: []string{"ib_write_bw"}, Findings: odd, Notes: []string{"brief"}, Rounds: 2,
		Rails: []measure.Rail{{Rail: 0, Ports: []string{"n0/mlx5_0/1"}, Link: 50e9, Rate: 48, Both: 40, Latency: 2.5}},
		Pairs: []measure.RailPair{{From: "n0/mlx5_0/1", To: "n1/mlx5_0/1", Measure: cell}}, SizeBytes: unit.MiB,
		SmallBytes: 8,
	}, verbosely(report.BenchRDMA))
	node := fleet.NodeState{Name: "n0", State: fleet.NodeUp, AgeS: 1.25, Load: 0.5, Findings: []string{"pair-slow"}}
	compare(t, "nodes", &query.NodesDoc{
		Nodes: []fleet.NodeState{node, {Name: "n1", AgeS: -1}}, Findings: odd, Hostlist: "n[0-1]",
		Slurm: []fleet.SlurmOut{{Node: "n1", State: "drained", Reason: "XID 79"}},
	}, verbosely(report.Nodes))
	compare(t, "link", &query.LinkDoc{
		From: "n0", To: "n1", There: []health.Point{{Time: at, Rate: 48e9}, {Time: at.Add(time.Hour), Failed: true}},
	}, verbosely(report.Link))
}

// TestDecodedCorpus maps real samples of the formats that describe a node or a fabric: a map that was read from JSON
// prints and draws the same.
func TestDecodedCorpus(t *testing.T) {
	const most = 40
	shown := 0
	for _, e := range corpus.Index(t) {
		env := query.Env{Files: fstest.MapFS{"sample": {Data: corpus.Open(t, e.File)}}}
		d, err := query.Map{Sources: []string{"sample"}}.Run(t.Context(), env)
		if err != nil {
			continue // the readers' own tests judge that
		}
		compare(t, e.File, d, verbosely(report.Map))
		compare(t, e.File+" drawn", d, pictureOf(report.MapPicture))
		if shown++; shown == most {
			break
		}
	}
	if shown < 30 {
		t.Errorf("%d samples are maps; expected 30 at least", shown)
	}
}
