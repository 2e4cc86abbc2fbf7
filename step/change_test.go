package step_test

import (
	"slices"
	"testing"

	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// The layout behind the product: two GPUs of a node share a NIC, and the first thing to do about it is
// not to buy faster ones.
func TestChangesOfSharedNIC(t *testing.T) {
	p, g := prepared(t, "baskerville", "a100-40", "gpt2-large", "", 2, 2, 2, 8)
	r, err := p.Price(g)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.Changes(g, r, true)
	if err != nil {
		t.Fatal(err)
	}
	var settings []string
	for i, c := range list {
		settings = append(settings, c.Setting)
		if i > 0 && c.Gain > list[i-1].Gain {
			t.Errorf("%s helps more than %s before it", c.Setting, list[i-1].Setting)
		}
		if c.Buy {
			t.Errorf("%s is advised", c.Setting)
		}
	}
	for _, s := range []string{"NCCL_NET_GDR_LEVEL=SYS", "NCCL_ALGO=allreduce:tree"} {
		if !slices.Contains(settings, s) {
			t.Errorf("advised are %v, without %s", settings, s)
		}
	}
}

// Nothing is advised that leaves less memory free than plans do.
func TestChangesLeaveTheReserve(t *testing.T) {
	p, g := prepared(t, "baskerville", "a100-40", "gpt2-xl", "zero=3", 2, 4, 1, 64)
	r := changed(t, p, g, func(*workload.Job) {})
	larger := *p.Job()
	larger.MicroBatch = 2
	for _, c := range []struct {
		free    float64
		advised bool
	}{{2 * step.Reserve, true}, {step.Reserve / 2, false}} {
		gpu := *g
		need, err := step.Prepare(&larger, p.Fabric()).Price(g)
		if err != nil {
			t.Fatal(err)
		}
		gpu.Model.Memory = (need.Memory.Total() / unit.Volume(1-c.free)).Bytes()
		list, err := p.Changes(&gpu, r, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(list,
			func(x step.Change) bool { return x.Setting == "--micro-batch 2" }); got != c.advised {
			t.Errorf("with %g of the memory left free: %+v", c.free, list)
		}
	}
}

// What a change promises is what the changed job takes.
func TestChangesHoldTheirPromise(t *testing.T) {
	p, g := prepared(t, "dgx-a100", "a100-80", "gpt3-13b", "tp=4", 1, 8, 2, 8)
	r := changed(t, p, g, func(j *workload.Job) { j.Recompute = workload.Full })
	j := *p.Job()
	j.Recompute = workload.Full
	list, err := step.Prepare(&j, p.Fabric()).Changes(g, r, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Setting != "sp=1 in --parallel" {
			continue
		}
		k := j
		k.Split.SeqParallel = true
		x, err := step.Step(&k, g, p.Fabric().With(k.Split))
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(r.Step/x.Step) - 1; got < c.Gain-1e-9 || got > c.Gain+1e-9 {
			t.Errorf("%s promises %g and gives %g", c.Setting, c.Gain, got)
		}
		return
	}
	t.Errorf("sequence parallelism is not among %+v", list)
}
