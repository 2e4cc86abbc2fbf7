package step_test

import (
	"math"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// prepared is a job on a preset.
func prepared(t testing.TB, preset, gpu, model, split string, nodes, gpus int, micro, global int64,
	changes ...func(*workload.Job),
) (*step.Prepared, *step.GPU) {
	t.Helper()
	m, err := workload.Find(model)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, gpus)
	if err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{
		Model: m, Seq: m.Seq, MicroBatch: micro, GlobalBatch: global, Precision: workload.BF16, Recompute: workload.None,
		Kernels: workload.Fused,
	}
	s, err := workload.ParseSplit(split)
	if err != nil {
		t.Fatal(err)
	}
	if j.Split, err = s.On(nodes * gpus); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(j)
	}
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	row, _ := hardware.GPUByName(gpu)
	g, err := step.NewGPU(row, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	return step.Prepare(j, step.NewFabric(c, l, j.Split, nccl.Newest)), g
}

// TestTimeline holds the played step to the priced one: where bars lie, nothing overlaps on a
// stream, and the end is near.
func TestTimeline(t *testing.T) {
	for _, x := range []struct {
		split  string
		global int64
	}{
		{"", 32},
		{"zero=1", 64},
		{"zero=3", 32},
		{"tp=8,pp=2", 16},
		{"tp=4,pp=4", 32},
		{"tp=4,pp=4,vpp=4", 32},
		{"tp=2,pp=8,vpp=2", 16},
	} {
		p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", x.split, 2, 8, 1, x.global)
		r, err := p.Price(g)
		if err != nil {
			t.Fatal(x.split, err)
		}
		bars, err := p.Timeline(g)
		if err != nil {
			t.Fatal(x.split, err)
		}
		last := map[[2]int]unit.Span{}
		end := unit.Span(0)
		for _, b := range bars {
			k := [2]int{b.Stage, 0}
			switch {
			case b.Host:
				k[1] = 2
			case b.Traffic:
				k[1] = 1
			}
			if b.From < last[k]-1e-9 {
				t.Fatalf("%s: %s begins at %g, before the one before it ends (%g)", x.split, b.Name, b.From, last[k])
			}
			last[k] = b.To
			end = max(end, b.To)
		}
		if d := math.Abs(float64(end/r.Step) - 1); d > 0.05 {
			t.Errorf("%s: the timeline ends after %.3g s, the step takes %.3g s", x.split, end, r.Step)
		}
	}
}

// TestTimelineAdapters holds the drawn update of frozen weights to the priced one: that of the adapters, not of the
// model.
func TestTimelineAdapters(t *testing.T) {
	for _, split := range []string{"", "zero=1", "zero=3", "pp=2"} {
		p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", split, 1, 8, 1, 16,
			func(j *workload.Job) { j.LoRA = workload.LoRA{Rank: 16} })
		r, err := p.Price(g)
		if err != nil {
			t.Fatal(split, err)
		}
		bars, err := p.Timeline(g)
		if err != nil {
			t.Fatal(split, err)
		}
		updates := 0
		for _, b := range bars {
			if b.Kind == 'u' {
				updates++
				if took := float64((b.To - b.From) / r.Optimizer); took > 1.05 || took < 0.5 {
					t.Errorf("%s: the update is drawn with %v, priced with %v", split, b.To-b.From, r.Optimizer)
				}
			}
		}
		if updates == 0 {
			t.Errorf("%s: no update is drawn", split)
		}
	}
}
