package query

import (
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/result/trace"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// TestTraceVerdict compares a traced step with ranges below, around and above it.
func TestTraceVerdict(t *testing.T) {
	for _, tt := range []struct {
		low, high unit.Span
		steps     int
		want      string
		findings  int
	}{
		{1, 3, 5, "within the range", 0},
		{3, 4, 5, "faster than predicted", 0},
		{0.5, 1, 5, "over by 1 s because exposed communication takes 1 s instead of 0 (all_reduce of 64 MiB takes 40 ms, " +
			"expected 6 ms to 14 ms, waiting", 1},
		{0.5, 1, 0, "No steps are marked", 0},
	} {
		d := &TraceDoc{
			Ranks: []traceRank{{Summary: trace.Summary{Steps: tt.steps, Step: 2, Compute: 1, Comm: 1, Exposed: 1}}},
			Calls: []traceCall{{
				Op: "all_reduce", Bytes: 64 << 20, Median: 40 * unit.Millisecond, Low: 6 * unit.Millisecond,
				High: 14 * unit.Millisecond,
			}},
			Step: &StepRow{Result: step.Result{Step: (tt.low + tt.high) / 2, Compute: 0.9}, Low: tt.low, High: tt.high},
		}
		if d.judge(); !strings.Contains(d.Verdict, tt.want) || len(d.Findings) != tt.findings {
			t.Errorf("%v to %v: %s %+v, want %s", tt.low, tt.high, d.Verdict, d.Findings, tt.want)
		}
		d.FailOn = failOn("warn")
		if d.Wrong() != (tt.findings > 0) || finding.AtLeast(d.Findings, finding.Error) {
			t.Errorf("%v to %v: Wrong is %v", tt.low, tt.high, d.Wrong())
		}
	}
}
