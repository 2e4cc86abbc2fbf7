package workload_test

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

// chosen is a job of Llama 3 8B on 8 GPUs with fully sharded states, as Megatron-Bridge runs it.
func chosen(t *testing.T, texts ...string) (*workload.Job, error) {
	t.Helper()
	m, err := workload.Find("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	f, err := workload.ParseFramework("nemo")
	if err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{Model: m, Seq: 8192, MicroBatch: 1, GlobalBatch: 8, Recompute: workload.None}
	for _, text := range texts {
		if err := j.Choose(text); err != nil {
			return nil, err
		}
	}
	if j.Split, err = (workload.Split{ZeRO: 1}).On(8); err != nil {
		t.Fatal(err)
	}
	f.Adopt(j, "h100", 90)
	return j, j.Check()
}

// TestChoices: what a job's owner chooses changes what its GPUs hold, by as much as its parts say.
func TestChoices(t *testing.T) {
	plain, err := chosen(t)
	if err != nil {
		t.Fatal(err)
	}
	of := func(text string) (workload.Memory, float64) {
		t.Helper()
		j, err := chosen(t, text)
		if err != nil {
			t.Fatal(err)
		}
		return j.Memory(), j.UpdateBytes()
	}
	base := plain.Memory()
	if m, _ := of("optimizer=adam-bf16"); m.Optimizer != base.Optimizer/2 {
		t.Errorf("moments and the rest of weights in 16 bits: %v of %v", m.Optimizer, base.Optimizer)
	}
	if m, _ := of("optimizer=adam-8bit"); m.Optimizer != base.Optimizer/2 {
		t.Errorf("moments in 8 bits: %v of %v", m.Optimizer, base.Optimizer)
	}
	if m, _ := of("optimizer=sgd"); m.Optimizer != base.Optimizer*8/12 {
		t.Errorf("one moment: %v of %v", m.Optimizer, base.Optimizer)
	}
	if _, bytes := of("optimizer=adam-foreach"); bytes < 2*plain.UpdateBytes() {
		t.Errorf("one kernel for every operation moves %v bytes a parameter, one for all %v", bytes, plain.UpdateBytes())
	}
	if m, _ := of("loss=whole"); m.Other <= base.Other { // Megatron-Bridge writes gradients over scores
		t.Errorf("scores in float32 too: %v, in place %v", m.Other, base.Other)
	}
	half, _ := of("host.layers=17") // one of them is on its way
	if got := half.Activations; got < base.Activations*0.45 || got > base.Activations*0.55 || half.Host <= 0 {
		t.Errorf("half of the layers' activations on the host: %v of %v, %v on the host", got, base.Activations, half.Host)
	}
}

// TestChoicesRefused: what is not known, or has no use, is an error that says what is expected.
func TestChoicesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"optimizer=lion":    "expected one of adam-bf16",
		"optimizer=":        "expected one of",
		"loss=a,b":          "expected one of",
		"host.layers=0":     "expected a number of layers",
		"host.layers=32":    "the last stays",
		"dispatcher=flex":   "expected one of allgather, alltoall",
		"optimiser=sgd":     "expected a key",
		"host.layers=1e3":   "expected a number of layers",
		"host.layers=-1":    "expected a number of layers",
		"dispatcher=deepep": "has no experts",
	} {
		if _, err := chosen(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
