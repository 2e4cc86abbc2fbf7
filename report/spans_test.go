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
		{Group: "rank 0", Track: "buckets", Name: "1", From: 2 * ms, To: 5 * ms, Bytes: 10},
		{Group: "rank 0", Track: "compute", Name: "forward", To: 2 * ms},
		{Group: "rank 0", Track: "buckets", Name: "2", From: 3 * ms, To: 6 * ms, Bytes: 20},
		{Group: "rank 0", Track: "buckets", Name: "3", From: 5 * ms, To: 7 * ms, Bytes: 20},
		{Group: "rank 1", Track: "compute", Name: "forward", To: 1 * ms},
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
