package step_test

import (
	"testing"

	"busbar.dev/step"
)

// Under a tuner no step is longer, and what it chooses gains more than it must.
func TestTuned(t *testing.T) {
	chosen := 0
	for _, split := range []string{"", "zero=1", "zero=3", "pp=2,zero=1"} {
		p, g := prepared(t, "dgx-a100", "a100-80", "gpt2-xl", split, 16, 8, 1, 128)
		own, err := p.Price(g)
		if err != nil {
			t.Fatal(err)
		}
		f := p.Fabric().Tuned()
		r, err := step.Step(p.Job(), g, f)
		if err != nil {
			t.Fatal(err)
		}
		if r.Step > own.Step*(1+1e-12) {
			t.Errorf("%q: %g s under a tuner, %g s without", split, r.Step, own.Step)
		}
		for _, c := range f.Choices() {
			if chosen++; c.Gain < 1.05 || c.Own == c.Algo && c.OwnProto == c.Proto {
				t.Errorf("%q: %+v", split, c)
			}
		}
		if n := len(p.Fabric().Choices()); n != 0 {
			t.Errorf("%q: %d choices without a tuner", split, n)
		}
	}
	if chosen == 0 {
		t.Error("no choice was tried")
	}
	t.Logf("%d choices", chosen)
}
