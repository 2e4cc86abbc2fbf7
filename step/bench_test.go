package step_test

import (
	"math"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// BenchmarkPriceAgain is one job whose tasks are laid out and whose collectives were asked for before.
func BenchmarkPriceAgain(b *testing.B) {
	for _, x := range []struct {
		name, split string
		global      int64
	}{
		{"replicas", "", 64},
		{"zero3", "zero=3", 64},
		{"tensor", "tp=8,zero=1,sp=1", 64},
		{"pipeline", "tp=4,pp=4", 256},
		{"interleaved", "tp=4,pp=4,vpp=4", 256},
	} {
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

// BenchmarkNewSize is a collective of a group that was asked for others.
func BenchmarkNewSize(b *testing.B) {
	for _, split := range []string{"tp=8", ""} {
		b.Run("dp "+split, func(b *testing.B) {
			p, _ := prepared(b, "dgx-h100", "h100", "llama2-13b", split, 64, 8, 1, 512)
			f := p.Fabric()
			bytes := unit.Volume(1e6)
			for b.Loop() {
				bytes += 1000
				if _, _, err := f.Time(step.Data, coll.AllReduce, bytes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSearch goes through all settings of a job on 32 GPUs, in order, and prices those whose
// bound fits and is below the best price so far.
func BenchmarkSearch(b *testing.B) {
	p, g := prepared(b, "dgx-h100", "h100", "llama2-13b", "", 4, 8, 1, 256)
	f := p.Fabric()
	bounds := step.NewBounds(p.Job().Model, g)
	all := settings(p.Job(), 32)
	asked := 0
	var best unit.Span
	for b.Loop() {
		best, asked = unit.Span(math.Inf(1)), 0
		for i := range all {
			x := bounds.Family(&all[i]).Bound(&all[i])
			if x.Step >= best || x.Memory.Total() > unit.Volume(g.Model.Memory) {
				continue
			}
			asked++
			r, err := step.Step(&all[i], g, f.With(all[i].Split))
			if err != nil {
				b.Fatal(err)
			}
			best = min(best, r.Step)
		}
	}
	b.ReportMetric(float64(len(all)), "settings")
	b.ReportMetric(float64(asked), "priced")
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "settings/s")
	b.ReportMetric(best.Seconds()*1e3, "best-ms")
}

// settings are all that can be, of some.
func settings(like *workload.Job, ranks int) []workload.Job {
	var list []workload.Job
	for _, tp := range []int{1, 2, 4, 8} {
		for _, pp := range []int{1, 2, 4, 8} {
			for _, vpp := range []int{1, 2, 5} {
				for _, cp := range []int{1, 2, 4} {
					for zero := range 4 {
						for _, sp := range []bool{false, true} {
							s, err := workload.Split{TP: tp, PP: pp, CP: cp, Chunks: vpp, ZeRO: zero, SeqParallel: sp}.On(ranks)
							if err != nil {
								continue
							}
							for _, micro := range []int64{1, 2, 4, 8} {
								for _, again := range []workload.Recompute{workload.None, workload.Selective, workload.Full} {
									for _, schedule := range append(pipeline.Schedules(), "") {
										j := *like
										j.Split, j.MicroBatch, j.Recompute, j.Schedule = s, micro, again, schedule
										if j.Check() == nil {
											list = append(list, j)
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
	return list
}
