package bench

import (
	"context"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/unit"
)

// TestStep takes steps of a small model both ways: buckets are those of the sizes asked for,
// computing is waited for, and a step is what it computes and what it waits.
func TestStep(t *testing.T) {
	p := StepPlan{Type: coll.BFloat16, First: 4096, Cap: 20000, Forward: time.Millisecond, Warm: 1, Iters: 3}
	for i := range 20 {
		p.Grads = append(p.Grads, Grad{Bytes: unit.Bytes(2 * (1000 + i)), After: 100 * time.Microsecond})
	}
	for _, algo := range []string{"", "ring"} {
		p.Algo = algo
		if err := p.Validate(3); err != nil {
			t.Fatal(err)
		}
		results := map[bool]*StepTimes{}
		together(t, 3, func(ctx context.Context, g *engine.Group) error {
			s, err := NewStepper(g, p)
			if err != nil {
				return err
			}
			for _, overlap := range []bool{true, false} {
				x, err := s.Run(ctx, overlap, nil)
				if err != nil {
					return err
				}
				if g.Rank() == 0 {
					results[overlap] = x
				}
			}
			return nil
		})
		for overlap, x := range results {
			if len(x.Steps) != 3 || x.Computed < p.Compute().Seconds() || x.Step < x.Computed || x.Exposed <= 0 {
				t.Errorf("overlap %v: %+v for %v of computing", overlap, x, p.Compute())
			}
			var sum unit.Bytes
			tensors := 0
			for i, b := range x.Buckets {
				sum += b.Bytes
				tensors += b.Tensors
				if b.Took <= 0 || b.Algo == "" || i > 0 && b.Ready < x.Buckets[i-1].Ready ||
					b.Ready < unit.Seconds(p.Forward.Seconds()) {
					t.Errorf("overlap %v: bucket %d: %+v", overlap, i, b)
				}
			}
			if sum != 2*(20*1000+190) || tensors != 20 || len(x.Buckets) != 3 {
				t.Errorf("overlap %v: %d buckets of %d tensors, %v", overlap, len(x.Buckets), tensors, sum)
			}
		}
		if len(results) != 2 {
			t.Errorf("%d results", len(results))
		}
	}
}

func TestStepPlanRefuses(t *testing.T) {
	good := StepPlan{Grads: []Grad{{Bytes: 8}}, Iters: 1}
	if err := good.Validate(2); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*StepPlan){
		"nothing":            func(p *StepPlan) { p.Grads = nil },
		"no steps":           func(p *StepPlan) { p.Iters = 0 },
		"a day":              func(p *StepPlan) { p.Forward = 24 * time.Hour },
		"an unknown way":     func(p *StepPlan) { p.Algo = "magic" },
		"switches":           func(p *StepPlan) { p.Algo = "nvls" },
		"not a power of two": func(p *StepPlan) { p.Algo = "halving_doubling" },
	} {
		p := good
		change(&p)
		if p.Validate(3) == nil {
			t.Errorf("%s was not refused", name)
		}
	}
}
