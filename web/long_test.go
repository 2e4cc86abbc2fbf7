package web

import (
	"io"
	"runtime"
	"strings"
	"testing"
)

// TestLongAnswers: an answer that is too long is refused before it is made, and what is about right is not.
func TestLongAnswers(t *testing.T) {
	type part struct {
		Name  string   `json:"name"`
		Empty []string `json:"nothing_at_all,omitempty"`
		Map   map[string]*float64
	}
	x := 1.5
	doc := make([]part, 100_000)
	for i := range doc {
		doc[i] = part{Name: strings.Repeat("x", 100), Map: map[string]*float64{"y": &x}}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := writeJSON(io.Discard, doc, 8<<20)
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil ||
		!strings.Contains(err.Error(), "more than 8 MiB") || mb > 64 {
		t.Errorf("%v, and %d MB were taken", err, mb)
	}
	if err := writeJSON(io.Discard, doc, 20<<20); err != nil {
		t.Errorf("13 MB of 20: %v", err)
	}
	if data, err := encoded(doc); err != nil || len(data) < 12<<20 || strings.Contains(string(data[:1000]), "\n ") {
		t.Errorf("a long answer of %d bytes, %v: %.50s", len(data), err, data)
	}
	if data, err := encoded(doc[:2]); err != nil || !strings.Contains(string(data), "\n ") ||
		!strings.HasSuffix(string(data), "]\n") {
		t.Errorf("a short one: %s, %v", data, err)
	}
}
