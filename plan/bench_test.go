//go:build unix

package plan_test

import (
	"syscall"
	"testing"

	"busbar.dev/plan"
	"busbar.dev/workload/pipeline"
)

// cpuSeconds is what this process has used of its processors.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkSearch is GPT-3 on A100s, the ten best plans of the whole space: with the schedules that
// busbar plan tries by itself, with all, and with every setting bounded by itself.
func BenchmarkSearch(b *testing.B) {
	for _, x := range []struct {
		name   string
		nodes  int
		global int64
		usual  bool
		each   bool
	}{
		{"1024", 128, 1536, true, false},
		{"1024-all", 128, 1536, false, false},
		{"1024-each", 128, 1536, true, true},
		{"4096", 512, 4096, true, false},
		{"4096-each", 512, 4096, true, true},
	} {
		b.Run(x.name, func(b *testing.B) {
			q := query(b, "dgx-a100", "a100-80", "gpt3-175b", x.nodes, x.global)
			q.Each = x.each
			if x.usual {
				q.Spaces[0].Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
			}
			var a *plan.Answer
			var err error
			before := cpuSeconds(b)
			for b.Loop() {
				cold := *q // which knows no prices
				if a, err = plan.Search(b.Context(), &cold); err != nil {
					b.Fatal(err)
				}
			}
			each := (cpuSeconds(b) - before) / float64(b.N)
			b.ReportMetric(float64(a.Considered), "settings")
			b.ReportMetric(float64(a.Cut), "cut")
			b.ReportMetric(float64(a.Bounded), "bounded")
			b.ReportMetric(float64(a.Priced), "priced")
			b.ReportMetric(each, "cpu-s/op")
			b.ReportMetric(float64(a.Considered)/each, "settings/cpu-s")
		})
	}
}
