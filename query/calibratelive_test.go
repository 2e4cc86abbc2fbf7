package query_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine/device"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/measure"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// modelGPUs are workers that answer what the models say with other figures: of GPUs whose products reach more of the
// peak and whose memory more of its rate, and of collectives that take a quarter longer.
type modelGPUs struct {
	gpu     *step.GPU
	coll    *predict.Predictor
	pricing sync.Mutex
	name    string
	count   int
	broken  device.Do // a request that is refused
	hosts   int       // that workers are on, one after the other; 0 is one
	began   int
	slow    map[int]float64 // how many times as long products take, by host
	pair    float64         // µs of a large message
	sm      int             // MHz under load
}

// liveProcess is one of them.
type liveProcess struct {
	io.Reader
	io.Writer
	end func()
}

func (p *liveProcess) End(time.Duration) { p.end() }
func (p *liveProcess) Why() error        { return nil }

func (m *modelGPUs) start([]string, []string) (device.Process, error) {
	r, answers := io.Pipe()
	requests, w := io.Pipe()
	host := 1
	if m.hosts > 0 {
		host = m.began%m.hosts + 1
		m.began++
	}
	go func() {
		defer answers.Close()
		answers.Write(device.Line(device.Answer{Hello: &device.Hello{
			Program: "busbar-gpu test", Host: fmt.Sprint("node", host), PID: 1,
		}}))
		for scan := bufio.NewScanner(requests); scan.Scan(); {
			var q device.Request
			if json.Unmarshal(scan.Bytes(), &q) != nil {
				return
			}
			a := m.answer(q)
			if by := m.slow[host]; by > 0 && a.Product != nil {
				a.Product.Micros *= by
				a.Product.TFLOPS /= by
				a.Product.MHz = m.sm
			}
			a.ID = q.ID
			answers.Write(device.Line(a))
		}
	}()
	return &liveProcess{r, w, func() { w.Close(); r.Close() }}, nil
}

func (m *modelGPUs) answer(q device.Request) device.Answer {
	if q.Do == m.broken {
		return device.Answer{Failure: &device.Failure{Text: "not here"}}
	}
	switch q.Do {
	case device.GPUs:
		return device.Answer{Count: m.count}
	case device.Open:
		return device.Answer{Device: &device.Device{
			Name: m.name, PCI: fmt.Sprintf("0000:%02x:00.0", q.GPU), NCCL: "2.28.9", Vendor: "nvidia",
		}}
	case device.Product:
		x, y, k := float64(q.M), float64(q.N), float64(q.K)
		p := workload.BF16
		if q.Dtype == "f8e4m3" {
			p = workload.FP8
		}
		t := m.gpu.Time(&workload.Task{Kind: workload.Product, M: x, N: y, K: k, Count: 1, Flops: 2 * x * y * k, Starts: 1},
			p)
		return device.Answer{Product: &device.Result{
			Micros: float64(t) * 1e6, TFLOPS: 2 * x * y * k / float64(t) / 1e12, Tested: 6,
		}}
	case device.Memory:
		t := m.gpu.Time(&workload.Task{Kind: workload.Stream, Bytes: unit.Volume(2 * q.Bytes), Starts: 1}, workload.BF16)
		return device.Answer{Rates: []device.Rate{{
			What: "copy", Bytes: q.Bytes, GBps: 2 * float64(q.Bytes) / float64(t) / 1e9,
		}}}
	case device.Health:
		return device.Answer{Health: slices.Repeat([]device.State{{Name: m.name}}, 8)}
	case device.Pair:
		us := 20.0
		if q.Bytes > 1024 {
			us = m.pair
		}
		return device.Answer{Timing: &device.Timing{Micros: us, Wrong: new(int64)}}
	case device.Collective:
		m.pricing.Lock() // the workers answer at the same time, and a predictor serves one
		defer m.pricing.Unlock()
		op := coll.Op{Kind: q.Op, Bytes: unit.Bytes(q.Bytes), Type: coll.Float}
		s, err := m.coll.Auto(op)
		if err != nil {
			return device.Answer{Failure: &device.Failure{Text: err.Error()}}
		}
		run, err := m.coll.Price(op, s)
		if err != nil {
			return device.Answer{Failure: &device.Failure{Text: err.Error()}}
		}
		return device.Answer{Timing: &device.Timing{
			Micros: 1.25 * float64(run.Time) / float64(unit.Microsecond), Wrong: new(int64),
		}}
	}
	return device.Answer{Key: "00"}
}

func newModelGPUs(t *testing.T, count int) *modelGPUs {
	t.Helper()
	m, _ := hardware.GPUByName("h200")
	c, err := hardware.Preset("dgx-h200", 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Calibration = &cluster.Calibration{Figures: []cluster.Calibrated{
		{Name: "step.hopper.ceiling", Value: 0.85}, {Name: "step.hopper.mem_share", Value: 0.9},
	}}
	f, err := step.Calibrated(c)
	if err != nil {
		t.Fatal(err)
	}
	g, err := step.NewGPU(m, f)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 1, count)
	if err != nil {
		t.Fatal(err)
	}
	p, err := predict.New(c, l, nccl.Newest, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &modelGPUs{gpu: g, coll: p, name: "NVIDIA H200", count: count}
}

// calibrate --live finds the curve of collectives, writes it so that predict takes it, and says what is off before and
// after.
func TestCalibrateLive(t *testing.T) {
	dir := t.TempDir()
	site := filepath.Join(dir, "site.yaml")
	c, err := hardware.Preset("dgx-h200", 1)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, c *cluster.Cluster) {
		t.Helper()
		var b strings.Builder
		if err := clusterfile.Write(&b, c); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(site, c)
	env, ctx := query.Env{}, context.Background()
	gpus := newModelGPUs(t, 8)
	with := measure.Programs{Worker: gpus.start, Helper: func() (string, error) { return "busbar-gpu", nil }}
	d, err := query.CalibrateLive{Cluster: site, Iters: 5, Ops: []string{"all_reduce"}}.RunWith(ctx, env, with)
	if err != nil {
		t.Fatal(err)
	}
	if d.After.Points == 0 || d.Points != 10 || d.Before.Median < 0.15 || d.After.Median > 0.08 || !d.Better {
		t.Errorf("collectives: %d points, error %v before, %v after", d.Points, d.Before, d.After)
	}
	name, err := env.CalibrationFile(ctx, site)
	if err != nil || name != filepath.Join(dir, "site.calibration.yaml") {
		t.Fatal(name, err)
	}
	measured, err := d.Described.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	write(name, measured)
	p, err := query.Predict{Cluster: site, Op: "all_reduce", Min: "64M", Max: "64M"}.Run(ctx, env)
	if err != nil || !strings.Contains(p.Model, "calibrated on this cluster") && !strings.Contains(p.Model, "curve") {
		t.Errorf("%v %+v", err, p)
	}
}

// What cannot be calibrated is said.
func TestCalibrateLiveRefusals(t *testing.T) {
	ctx := context.Background()
	for _, x := range []struct {
		name string
		set  func(*modelGPUs, *query.CalibrateLive)
		want string
	}{
		{"no cluster", func(_ *modelGPUs, q *query.CalibrateLive) { q.Cluster = "" }, "which cluster"},
		{"another GPU", func(g *modelGPUs, _ *query.CalibrateLive) { g.name = "NVIDIA A100-SXM4-80GB" }, "described with"},
		{"shared", func(g *modelGPUs, q *query.CalibrateLive) { g.count, q.PerHost = 2, 4 }, "two ranks share GPU"},
		{"one GPU", func(g *modelGPUs, q *query.CalibrateLive) { g.count = 1 }, "one GPU"},
	} {
		gpus := newModelGPUs(t, 8)
		q := query.CalibrateLive{Cluster: "dgx-h200:1", Iters: 5}
		x.set(gpus, &q)
		with := measure.Programs{Worker: gpus.start, Helper: func() (string, error) { return "busbar-gpu", nil }}
		if _, err := q.RunWith(ctx, query.Env{}, with); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestCheckAgainstPredictions: check holds GPUs against predictions: one that is slow under load is named with its
// clock, healthy ones are not; where all pairs are slow the prediction of a pair says so.
func TestCheckAgainstPredictions(t *testing.T) {
	ctx := context.Background()
	run := func(set func(*modelGPUs, *query.Check)) *measure.Check {
		t.Helper()
		gpus := newModelGPUs(t, 1)
		gpus.hosts, gpus.pair, gpus.sm = 8, 1600, 900
		q := query.Check{Hosts: "node[1-8]", Size: "4M", Iters: 2, SSH: "ssh"}
		set(gpus, &q)
		var one sync.Mutex // hosts are asked at the same time
		start := func(args, _ []string) (device.Process, error) {
			one.Lock()
			defer one.Unlock()
			fmt.Sscanf(args[1], "node%d", &gpus.began)
			gpus.began--
			return gpus.start(nil, nil)
		}
		d, err := q.RunWith(ctx, query.Env{}, measure.Programs{
			Worker: start, Helper: func() (string, error) { return "busbar-gpu", nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	named := func(d *measure.Check) (list []string) {
		for _, n := range d.Nodes {
			if n.Verdict != "healthy" {
				list = append(list, n.Host+" "+n.Verdict)
			}
		}
		return list
	}
	if d := run(func(*modelGPUs, *query.Check) {}); d.Wrong() || !strings.Contains(d.Expected, "prediction of products") {
		t.Errorf("healthy: %v, held against %s", named(d), d.Expected)
	}
	d := run(func(g *modelGPUs, _ *query.Check) { g.slow = map[int]float64{5: 2} })
	if fmt.Sprint(named(d)) != "[node5 unhealthy]" || d.Hostlist != "node5" ||
		!strings.Contains(d.Nodes[4].Reasons[0], "at 900 MHz; the prediction says") {
		t.Errorf("locked clocks: %v %+v", named(d), d.Findings)
	}
	// A fifth below its peers is within the prediction's bar, and not within theirs.
	if d := run(func(g *modelGPUs,
		_ *query.Check,
	) {
		g.slow = map[int]float64{2: 1.2}
	}); fmt.Sprint(named(d)) != "[node2 unhealthy]" || !strings.Contains(d.Nodes[1].Reasons[0], "median of its peers") {
		t.Errorf("slower than its peers: %v %+v", named(d), d.Findings)
	}
	if d := run(func(g *modelGPUs, q *query.Check) { g.slow, q.NoLoad = map[int]float64{5: 2}, true }); d.Wrong() {
		t.Errorf("without load: %v", named(d))
	}
	// All pairs at a tenth of what the network gives.
	if d := run(func(g *modelGPUs, q *query.Check) { g.pair, q.Cluster = 20000, "dgx-h200:8" }); len(named(d)) != 8 ||
		!strings.Contains(d.Nodes[0].Reasons[0], "beyond its error bar") {
		t.Errorf("slow pairs: %v %+v", named(d), d.Findings)
	}
	if d := run(func(_ *modelGPUs, q *query.Check) { q.Cluster = "dgx-h200:8" }); d.Wrong() {
		t.Errorf("pairs as predicted: %v %+v", named(d), d.Findings)
	}
}
