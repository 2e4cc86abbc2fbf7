package workload_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/unit"
	"busbar.dev/workload"
)

// bekman is the job of Bekman's Networking, 2B parameters on A100s, with as many tokens a GPU on any number of nodes.
func bekman(nodes int, gbit float64) workload.Envelope {
	return workload.Envelope{
		Params: 2e9, Seq: 2048, Batch: 16 * int64(nodes), GPUs: 8 * nodes, Nodes: nodes, Recompute: true,
		Peak: 312e12, MFU: 0.5, Intra: 300e9, Inter: unit.Rate(gbit / 8 * 1e9),
	}
}

// TestEnvelope holds the formulas to the figures of the articles that they come from, to the digits printed there;
// docs/seeds.md lists them.
func TestEnvelope(t *testing.T) {
	one, two, four, plain := bekman(1, 0), bekman(4, 200), bekman(4, 400), bekman(1, 0)
	plain.Recompute = false
	twenty, large := bekman(4, 200), bekman(4, 200)
	twenty.Params, large.Params = 20e9, 200e9
	office := workload.Envelope{
		Params: 70e9, Batch: 24, GPUs: 24, Nodes: 3, Peak: 1e15, MFU: 0.5, Inter: unit.Rate(10e9 / 8),
	}
	fast := office
	fast.Inter *= 40
	for _, want := range []struct {
		of    workload.Envelope
		name  string
		value string
	}{
		{one, "memory for training", "36"},
		{one, "operations of a GPU", "65.536"},
		{one, "compute", "0.42"},
		{one, "gradients", "8"},
		{one, "factor of an all-reduce", "1.75"},
		{one, "sent by a GPU", "16"},
		{one, "exchange inside a node", "0.053"},
		{plain, "operations of a GPU", "49.152"},
		{two, "compute", "0.42"},
		{two, "exchange across nodes", "0.64"},
		{two, "  at 80% of the advertised rate", "0.8"},
		{two, "across over inside", "12"}, // the article's 23 sends the gradients once inside a node
		{four, "exchange across nodes", "0.32"},
		{four, "  at 80% of the advertised rate", "0.4"},
		{twenty, "compute", "4.2"},
		{twenty, "exchange across nodes", "6.4"},
		{large, "exchange across nodes", "64"},
		{office, "exchange across nodes", "448"},
		{fast, "exchange across nodes", "11.2"},
		{two, "asynchronous SGD: updates in between", "3"},
	} {
		digits := 0
		if _, after, ok := strings.Cut(want.value, "."); ok {
			digits = len(after)
		}
		if s := strconv.FormatFloat(value(&want.of, want.name).Value, 'f', digits, 64); s != want.value {
			t.Errorf("%+v, %s: %s; expected %s", want.of, want.name, s, want.value)
		}
	}
	if n := value(&two, "exchange across nodes").Note; n != "bottleneck: 0.64 s > 0.4201 s of compute" {
		t.Errorf("at 200 Gb/s: %s", n)
	}
	if n := value(&four, "exchange across nodes").Note; n != "hides: 0.32 s < 0.4201 s of compute" {
		t.Errorf("at 400 Gb/s: %s", n)
	}
	// An article promises 15 to 20% for an exchange that takes 10% less; even a step that is nothing else gains 11%.
	less := bekman(4, 200/0.9)
	if gain := value(&two, "exchange across nodes").Value/value(&less, "exchange across nodes").Value -
		1; math.Abs(gain-0.111) > 0.001 {
		t.Errorf("10%% less time of exchange gives %g", gain)
	}
	for _, l := range append(two.Lines(), two.Servers()...) {
		if strings.Contains(l.Worked, "%s") || l.Formula == "" || l.Worked == "" || math.IsNaN(l.Value) {
			t.Errorf("%+v", l)
		}
	}
}

// value is the line of a name.
func value(e *workload.Envelope, name string) workload.Line {
	for _, l := range append(e.Lines(), e.Servers()...) {
		if l.Name == name {
			return l
		}
	}
	return workload.Line{Value: math.NaN()}
}
