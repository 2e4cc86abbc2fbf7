//go:build unix

package plan_test

import (
	"math/bits"
	"testing"

	"busbar.dev/plan"
	"busbar.dev/workload/pipeline"
)

// BenchmarkCheapest is GPT-3 on up to 1,024 A100s: the ten plans with the fewest GPU hours, over numbers of nodes of
// four significant digits.
func BenchmarkCheapest(b *testing.B) {
	q := query(b, "dgx-a100", "a100-80", "gpt3-175b", 128, 1536)
	base := q.Spaces[0].Base
	q.Spaces, q.Objective, q.HostMemory = nil, plan.Cheapest, 1e12
	for n := 128; n > 0; n-- {
		if bits.Len(uint(n))-bits.TrailingZeros(uint(n)) <= 4 {
			s := plan.NewSpace(base, 8*n, 8)
			s.Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
			q.Spaces = append(q.Spaces, s)
		}
	}
	before := cpuSeconds(b)
	var a *plan.Answer
	for b.Loop() {
		cold := *q
		var err error
		if a, err = plan.Search(b.Context(), &cold); err != nil {
			b.Fatal(err)
		}
	}
	each := (cpuSeconds(b) - before) / float64(b.N)
	b.ReportMetric(float64(a.Considered), "settings")
	b.ReportMetric(float64(a.Bounded), "bounded")
	b.ReportMetric(each, "cpu-s/op")
	b.ReportMetric(float64(a.Considered)/each, "settings/cpu-s")
}
