package web

import (
	"strings"
	"testing"
)

// TestLongAnswers: an answer that is too long is refused, a long one has no indentation, and a short one has.
func TestLongAnswers(t *testing.T) {
	doc := make([]map[string]string, 100_000)
	for i := range doc {
		doc[i] = map[string]string{"name": strings.Repeat("x", 100)}
	}
	if _, err := encoded(doc, 8<<20); err == nil || !strings.Contains(err.Error(), "more than 8 MiB") {
		t.Errorf("11 MB of 8: %v", err)
	}
	if data, err := encoded(doc, 20<<20); err != nil || len(data) < 10<<20 ||
		strings.Contains(string(data[:1000]), "\n ") {
		t.Errorf("a long answer of %d bytes, %v: %.50s", len(data), err, data)
	}
	if data, err := encoded(doc[:2], 8<<20); err != nil || !strings.Contains(string(data), "\n ") ||
		!strings.HasSuffix(string(data), "]\n") {
		t.Errorf("a short one: %s, %v", data, err)
	}
}
