package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"busbar.dev/report"
	"busbar.dev/unit"
)

// Spans of one track that overlap are put on threads of their own.
func TestSpans(t *testing.T) {
	ms := unit.Millisecond
	var b bytes.Buffer
	if err := report.Spans(&b, `a "step"`, []report.Span{
		{"rank 0", "buckets", "1", 2 * ms, 5 * ms, 10},
		{"rank 0", "compute", "forward", 0, 2 * ms, 0},
		{"rank 0", "buckets", "2", 3 * ms, 6 * ms, 20},
		{"rank 0", "buckets", "3", 5 * ms, 7 * ms, 20},
		{"rank 1", "compute", "forward", 0, 1 * ms, 0},
	}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		TraceEvents []struct {
			Name, Ph string
			Pid, Tid int
			Ts, Dur  float64
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	last := map[int]float64{}
	threads, spans := 0, 0
	for _, e := range doc.TraceEvents {
		switch {
		case e.Name == "thread_name":
			threads++
		case e.Ph == "X":
			spans++
			if e.Ts < last[e.Tid] {
				t.Errorf("%+v begins before %v", e, last[e.Tid])
			}
			last[e.Tid] = e.Ts + e.Dur
		}
	}
	if spans != 5 || threads != 4 {
		t.Errorf("%d spans on %d threads", spans, threads)
	}
}
