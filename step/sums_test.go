package step_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// The parts of a step add up to it, nobody waits for traffic longer than it takes, and dividing
// more among replicas never takes more memory.
func TestPartsAddUp(t *testing.T) {
	gpu, _ := hardware.GPUByName("h100")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	const nodes = 2
	c, err := hardware.Preset("dgx-h100", nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, 8)
	if err != nil {
		t.Fatal(err)
	}
	shared := step.NewFabric(c, l, workload.Split{}, nccl.Newest)
	rapid.Check(t, func(t *rapid.T) {
		m, err := workload.Find(rapid.SampledFrom([]string{"llama2-7b", "gpt2-large", "mixtral-8x7b"}).Draw(t, "model"))
		if err != nil {
			t.Fatal(err)
		}
		j, ok := anyJob(t, m, nodes)
		if !ok {
			return
		}
		r, err := step.Step(j, g, shared.With(j.Split))
		if err != nil {
			t.Fatal(err)
		}
		if all := r.Compute + r.Exposed + r.Bubble + r.Optimizer + r.Host; math.Abs(float64(all/r.Step)-1) > 1e-6 {
			t.Errorf("%s: parts are %g s, the step %g s: %+v", j.Split, all, r.Step, r)
		}
		for _, x := range r.Traffic {
			if x.Exposed > x.Time*(1+1e-9) {
				t.Errorf("%s: %s traffic takes %g s, and %g s of it are exposed", j.Split, x.Group, x.Time, x.Exposed)
			}
		}
		most := unit.Volume(math.Inf(1))
		for z := range 4 {
			k := *j
			k.Split.ZeRO = z
			if k.Check() != nil {
				continue
			}
			if total := k.Memory().Total(); total > most*(1+1e-9) {
				t.Errorf("%s takes %g bytes, and one level less %g", k.Split, total, most)
			} else {
				most = total
			}
		}
	})
}

// Sums of gradients are in the picture of a pipeline too.
func TestTimelineOfPipelineHasGradients(t *testing.T) {
	p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", "tp=4,pp=2,zero=1", 2, 8, 1, 8)
	j := *p.Job()
	j.Sync = true
	p = step.Prepare(&j, p.Fabric())
	r, err := p.Price(g)
	if err != nil {
		t.Fatal(err)
	}
	bars, err := p.Timeline(g)
	if err != nil {
		t.Fatal(err)
	}
	end := unit.Span(0)
	for _, b := range bars {
		end = max(end, b.To)
	}
	if d := math.Abs(float64(end/r.Step) - 1); d > 0.12 {
		t.Errorf("the timeline ends after %.3g s, the step takes %.3g s", end, r.Step)
	}
}

// Pipelines whose messages share NICs wait longer for them.
func TestMessagesShareNICs(t *testing.T) {
	p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", "tp=8,pp=2", 2, 8, 1, 8)
	all, err := p.Price(g)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		t.Fatal(err)
	}
	one, ok := step.WithPorts(c, 1)
	if !ok {
		t.Fatal("no NIC")
	}
	l, err := nccl.Block(one, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	few, err := step.Step(p.Job(), g, step.NewFabric(one, l, p.Job().Split, nccl.Newest))
	if err != nil {
		t.Fatal(err)
	}
	if few.Exposed < 1.01*all.Exposed || few.Step <= all.Step {
		t.Errorf("one NIC for eight GPUs: %g s, %g s exposed; eight: %g s, %g s", few.Step, few.Exposed, all.Step,
			all.Exposed)
	}
}

// What counts of a pipeline is the pair of stages whose messages leave a host, wherever it is.
func TestStagesThatLeaveTheHost(t *testing.T) {
	took := map[string]unit.Span{}
	for _, order := range []workload.Order{workload.TensorDataPipeline, workload.TensorPipelineData} {
		p, g := prepared(t, "baskerville", "a100-40", "gpt2-xl", "pp=8", 2, 4, 1, 16)
		j := *p.Job()
		j.Split.Order = order
		r, err := step.Step(&j, g, p.Fabric().With(j.Split))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Traffic {
			if x.Group == step.Next {
				took[string(order)] = x.Time / unit.Span(x.Calls)
			}
		}
	}
	// Both orders number eight stages of one replica alike: four on each of two nodes.
	if a, b := took[string(workload.TensorDataPipeline)], took[string(workload.TensorPipelineData)]; a != b || a <= 0 {
		t.Errorf("a message takes %g s and %g s", a, b)
	}
	p, g := prepared(t, "baskerville", "a100-40", "gpt2-xl", "pp=2", 1, 2, 1, 16)
	r, err := p.Price(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Traffic {
		if inside := x.Time / unit.Span(x.Calls); x.Group == step.Next &&
			inside*3 > took[string(workload.TensorDataPipeline)] {
			t.Errorf("a message inside a node takes %g s, one of a pipeline that leaves it %g s", inside,
				took[string(workload.TensorDataPipeline)])
		}
	}
}
