package campaign

import (
	"math"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// Failures are certain errors about one node; those that overlap are one, and a node that joined again was there
// before.
func TestHistory(t *testing.T) {
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	day := func(n float64) time.Time { return now.Add(-time.Duration(n * 24 * float64(time.Hour))) }
	nodes := map[string]time.Time{"a": day(100), "b": day(1)}
	failed := func(node string, from, to float64) finding.Finding {
		f := finding.Finding{Nodes: []string{node}, Severity: finding.Error, Confidence: 0.95, Since: day(from)}
		if to > 0 {
			f.Cleared = day(to)
		}
		return f
	}
	unsure, warning, pair, always := failed("a", 9, 8), failed("a", 9, 8), failed("a", 9, 8), failed("a", 9, 8)
	unsure.Confidence, warning.Severity, pair.Nodes, always.Always = 0.5, finding.Warn, []string{"a", "b"}, true
	found := []finding.Finding{
		failed("a", 50, 48), failed("a", 49, 47), failed("b", 100, 99), failed("b", 2, 0), unsure, warning, pair, always,
		failed("gone", 5, 4),
	}
	h := NewHistory(nodes, found, now)
	if h.Failures != 3 || math.Abs(float64(h.Observed/unit.Day)-200) > 1e-6 ||
		math.Abs(float64(h.Repair/unit.Day)-2) > 1e-6 || !h.Since.Equal(day(100)) {
		t.Errorf("%+v; expected 3 failures in 200 days of two nodes, away for 2 days", h)
	}
	prior := MTBF().Value / 8
	if want := (200*unit.Day + prior) / 4; math.Abs(float64(h.Between/want)-1) > 1e-9 {
		t.Errorf("%v between failures; expected %v", h.Between, want)
	}
	// A fleet that nothing is known of promises what is published.
	if h := NewHistory(map[string]time.Time{"a": now.Add(-time.Minute)}, nil, now); math.Abs(
		float64(h.Between/prior)-1) > 1e-3 {
		t.Errorf("%+v", h)
	}
}
