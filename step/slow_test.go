package step_test

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
)

func TestParseSlow(t *testing.T) {
	for in, want := range map[string]step.Slow{
		"node3=20%":      {Node: "node3", Count: 1, Loss: 0.2},
		"3=7.5%":         {Node: "3", Count: 1, Loss: 0.075},
		"node3:nic=50%":  {Node: "node3", Count: 1, NIC: true, Loss: 0.5},
		"1x20%":          {Count: 1, Loss: 0.2},
		"12x50%:nic":     {Count: 12, NIC: true, Loss: 0.5},
		" gpu-x-1 = 5% ": {Node: "gpu-x-1", Count: 1, Loss: 0.05},
	} {
		if got, err := step.ParseSlow(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "node3", "node3=20", "node3=100%", "=20%", ":nic=20%", "0x20%", "-1x20%", "x20%", "1x", "1xNaN%", "node3=-1%",
		"9999999999x1%",
	} {
		if got, err := step.ParseSlow(in); err == nil {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

func FuzzParseSlow(f *testing.F) {
	for _, s := range []string{"node3=20%", "node3:nic=50%", "1x20%", "2x5%:nic", "=%", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := step.ParseSlow(s); err == nil && !(x.Loss >= 0 && x.Loss < 1 && x.Count >= 1) {
			t.Fatalf("%q: %+v", s, x)
		}
	})
}

// A slow node costs nothing when it loses nothing, more the more it loses, and never more than all
// nodes being as slow. With replicas alone the whole step waits for it.
func TestSlowNode(t *testing.T) {
	for _, split := range []string{"", "zero=1", "zero=3", "tp=8", "tp=8,pp=2", "tp=4,pp=4,vpp=2"} {
		p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", split, 2, 8, 1, 32)
		base, err := p.Price(g)
		if err != nil {
			t.Fatal(split, err)
		}
		was := base.Step
		for _, loss := range []float64{0, 0.1, 0.2, 0.5} {
			one, err := p.PriceSlow(g, []step.Host{{Index: 1, Loss: loss}})
			if err != nil {
				t.Fatal(split, err)
			}
			both, err := p.PriceSlow(g, []step.Host{{Index: 0, Loss: loss}, {Index: 1, Loss: loss}})
			if err != nil {
				t.Fatal(split, err)
			}
			if loss == 0 && one.Step != base.Step || one.Step < was-1e-12 || one.Step > both.Step+1e-12 {
				t.Errorf("%s, %g lost: %g s, before %g s, with both nodes %g s", split, loss, one.Step, was, both.Step)
			}
			if extra := base.Compute * unit.Span(1/(1-loss)-1); one.Step-base.Step > extra*1.2 {
				t.Errorf("%s, %g lost: %g s longer, computing alone %g s", split, loss, one.Step-base.Step, extra)
			}
			if !strings.Contains(split, "pp") && loss == 0.5 && one.Step < base.Step+0.9*base.Compute {
				t.Errorf("%s: half the speed lost, and the step takes %g s instead of %g s", split, one.Step, base.Step)
			}
			was = one.Step
		}
		if p.StragglerReason() == "" {
			t.Error(split, "nobody says why")
		}
	}
}

// In a pipeline a stage that is not the slowest hides some of what it loses, and where it hurts most is
// found.
func TestSlowStage(t *testing.T) {
	p, g := prepared(t, "dgx-h100", "h100", "llama2-7b", "tp=8,pp=4", 4, 8, 1, 32)
	list, err := p.WorstHosts(g, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	worst, err := p.PriceSlow(g, []step.Host{{Index: list[0], Loss: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	for h := range 4 {
		r, err := p.PriceSlow(g, []step.Host{{Index: h, Loss: 0.1}})
		if err != nil || r.Step > worst.Step+1e-12 {
			t.Errorf("node %d: %v s, the worst (%d) %g s, %v", h, r.Step, list[0], worst.Step, err)
		}
	}
	if three, err := p.WorstHosts(g, 3, 0.1); err != nil || len(three) != 3 || three[0] == three[1] ||
		three[1] == three[2] {
		t.Errorf("three nodes: %v, %v", three, err)
	}
	if _, err := p.WorstHosts(g, 5, 0.1); err == nil || !strings.Contains(err.Error(), "4 take part") {
		t.Errorf("five of four nodes: %v", err)
	}
}

// One node with slow NICs makes the sum of gradients as slow as if all nodes had them, or nearly: a ring
// goes through it. It never costs less than none and never more than all.
func TestSlowNICs(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 4)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 4, 8)
	if err != nil {
		t.Fatal(err)
	}
	base, g := prepared(t, "dgx-h100", "h100", "llama2-7b", "", 4, 8, 1, 32)
	price := func(hosts ...step.Host) unit.Span {
		slow, ok := step.SlowNICs(c, hosts)
		if !ok {
			t.Fatal("no NICs")
		}
		r, err := step.Step(base.Job(), g, step.NewFabric(slow, l, base.Job().Split, nccl.Newest))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Traffic {
			if x.Group == step.Data {
				return x.Time
			}
		}
		t.Fatal("no sum of gradients")
		return 0
	}
	none := price(step.Host{Index: 2, Loss: 0})
	one := price(step.Host{Index: 2, Loss: 0.75})
	all := price(step.Host{Index: 0, Loss: 0.75}, step.Host{Index: 1, Loss: 0.75}, step.Host{Index: 2, Loss: 0.75},
		step.Host{Index: 3, Loss: 0.75})
	t.Logf("gradients: %.3g s, with one slow node %.3g s, with four %.3g s", none, one, all)
	if !(none < one && one <= all*1.001) || one < none*1.8 || math.Abs(float64(one/all)-1) > 0.25 {
		t.Errorf("%g s without, %g s with one slow node, %g s with four", none, one, all)
	}
	if twice := price(step.Host{Index: 2, Loss: 0.5},
		step.Host{Index: 2, Loss: 0.5}); math.Abs(float64(twice/one)-1) > 1e-9 {
		t.Errorf("half lost twice: %g s, three quarters lost: %g s", twice, one)
	}
	if c.Types[0].Name != "" && len(c.Types) != 1 {
		t.Error("the cluster itself was changed")
	}
}
