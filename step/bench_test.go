package step_test

import (
	"testing"

	"busbar/step"
)

// BenchmarkPriceAgain is one job whose tasks are laid out and whose collectives were asked for before.
func BenchmarkPriceAgain(b *testing.B) {
	for _, x := range []struct {
		name, split string
		global      int64
	}{{"replicas", "", 64}, {"zero3", "zero=3", 64}, {"tensor", "tp=8,zero=1,sp=1", 64}, {"pipeline", "tp=4,pp=4", 256}, {"interleaved", "tp=4,pp=4,vpp=4", 256}} {
		b.Run(x.name, func(b *testing.B) {
			p, g := prepared(b, "dgx-h100", "h100", "llama2-13b", x.split, 4, 8, 1, x.global)
			if _, err := p.Price(g); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Price(g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPrepare is laying out the tasks.
func BenchmarkPrepare(b *testing.B) {
	p, _ := prepared(b, "dgx-h100", "h100", "llama2-13b", "tp=4,pp=4", 4, 8, 1, 256)
	f := p.Fabric()
	b.ReportAllocs()
	for b.Loop() {
		step.Prepare(p.Job(), f)
	}
}

// BenchmarkStepAnew is a job on a fabric that nobody asked anything before, and on one that
// another split was priced on.
func BenchmarkStepAnew(b *testing.B) {
	p, g := prepared(b, "dgx-h100", "h100", "llama2-13b", "tp=4,pp=4", 4, 8, 1, 256)
	f := p.Fabric()
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if _, err := step.Step(p.Job(), g, f.Cold()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("warm", func(b *testing.B) {
		for b.Loop() {
			if _, err := step.Step(p.Job(), g, f.With(p.Job().Split)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
