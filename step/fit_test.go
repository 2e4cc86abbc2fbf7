package step_test

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

// Where a job does not fit, what is proposed fits; and nothing that does not fit is said to help.
func TestWhatWouldFit(t *testing.T) {
	for _, c := range []struct {
		preset, gpu, model, split string
		gpus                      int
		micro                     int64
		recompute                 workload.Recompute
		want, not                 string
	}{
		{
			"baskerville", "a100-40", "llama2-7b", "zero=3", 4, 1, workload.None, "--recompute full would fit: 32.1 GiB",
			"raise",
		},
		{
			"baskerville", "a100-40", "llama2-7b", "zero=3", 4, 4, workload.None, "--recompute full would fit",
			"with --micro-batch",
		},
		{
			"dgx-h100", "h100", "llama2-13b", "", 8, 1, workload.None, "zero=2 in --parallel would fit: 73.1 GiB; zero=3",
			"offload",
		},
		{"dgx-a100", "a100-80", "llama2-70b", "zero=3", 8, 4, workload.Full, "--offload optimizer would fit", "raise"},
		{"dgx-h100", "h100", "gpt2", "", 8, 100000, workload.Full, "--micro-batch 200 would fit", "--micro-batch 1 "},
		{"dgx-h100", "h100", "resnet50", "", 8, 100000, workload.None, "--micro-batch 1250 would fit", "--micro-batch 1 "},
		{"dgx-h100", "h100", "llama3-405b", "tp=8", 8, 1, workload.None, "more GPUs are needed", "would fit"},
	} {
		p, g := prepared(t, c.preset, c.gpu, c.model, c.split, 1, c.gpus, c.micro, c.micro*int64(c.gpus))
		p.Job().Recompute = c.recompute
		r := changed(t, p, g, func(*workload.Job) {})
		text := r.Limit(p.Job(), g.Model.Memory).Text
		if !strings.Contains(text, "does not fit") || !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
			t.Errorf("%s %s: %s; want %q and not %q", c.model, c.split, text, c.want, c.not)
		}
		list, err := p.Changes(g, r, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if strings.HasPrefix(x.Setting, "--recompute") || x.Buy {
				t.Errorf("%s %s: advised is %s for a job that does not fit", c.model, c.split, x.Setting)
			}
		}
	}
}

// The parts of a step make up the step, on many ranks too, whose slowest counts.
func TestPartsMakeUpTheStep(t *testing.T) {
	for _, c := range []struct {
		model, split  string
		nodes, global int
	}{
		{"llama2-13b", "tp=4,pp=4", 16, 256},
		{"llama3-8b", "zero=3", 2, 16},
		{"mixtral-8x7b", "ep=8,zero=1,tp=2,pp=2", 8, 256},
	} {
		p, g := prepared(t, "dgx-h100", "h100", c.model, c.split, c.nodes, 8, 1, int64(c.global))
		r := changed(t, p, g, func(*workload.Job) {})
		if sum := r.Compute + r.Exposed + r.Bubble + r.Optimizer + r.Host; sum < r.Step*(1-1e-9) || sum > r.Step*(1+1e-9) {
			t.Errorf("%s %s: parts of %g s in a step of %g s", c.model, c.split, sum, r.Step)
		}
	}
}
