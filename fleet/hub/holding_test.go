package hub

import (
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
)

// TestReported: what a node says of itself is a finding about it, drains it alone, and clears some time after it is not
// told any more.
func TestReported(t *testing.T) {
	now := time.Now()
	var r reported
	r.take("n1", []finding.Finding{
		{
			ID: "gpu-ecc", Severity: finding.Error, Where: "gpu0", Text: "GPU 0 of n1 had 3 errors\x1b[31m", Fix: "Reset it.",
			Nodes: []string{"n2"}, Confidence: 0.1,
		},
		{ID: "gpu-hot", Severity: finding.Warn, Where: "gpu1", Text: "GPU 1 is hot"},
		{ID: "gpu-persistence", Severity: finding.Note, Where: "gpu1", Text: "a note"},
		{ID: "../slow-host:n2", Severity: finding.Error, Where: strings.Repeat("x", 100), Text: "forged"},
	}, now)
	list := r.findings(now)
	if len(list) != 2 || list[0].ID != "gpu-ecc:n1/gpu0" || list[0].Kind != "gpu-ecc" || list[0].Nodes[0] != "n1" ||
		len(list[0].Nodes) != 1 || strings.Contains(list[0].Text, "\x1b") || !drains(list[0]) || drains(list[1]) ||
		!list[0].Since.Equal(now) {
		t.Fatalf("%+v", list)
	}
	// It is told for as long as it is so, with its beginning; then it clears, and is over.
	later := now.Add(time.Minute)
	r.take("n1", nil, later)
	if list = r.findings(later); len(list) != 2 || !list[0].Clearing || drains(list[0]) || !list[0].Since.Equal(now) {
		t.Errorf("%+v", list)
	}
	if list = r.findings(now.Add(holds + time.Second)); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	// A node that falls silent is a finding of its own.
	many := make([]finding.Finding, 50)
	for i := range many {
		many[i] = finding.Finding{ID: "gpu-ecc", Severity: finding.Error, Where: strings.Repeat("g", i%40+1), Text: "x"}
	}
	r.take("n2", many, now)
	if list = r.findings(now); len(list) != maxReported {
		t.Errorf("%d findings of one node", len(list))
	}
	if list = r.findings(now.Add(2 * holds)); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}
