package hub

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// TestReported: what a node says of itself is a finding about it, drains it alone, and clears some time after it is not
// told any more.
func TestReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{})
		now := time.Now().UTC().Truncate(time.Second)
		h.reported("n1", []finding.Finding{
			{
				ID: "gpu-ecc", Severity: finding.Error, Where: "gpu0", Text: "GPU 0 of n1 had 3 errors\x1b[31m", Fix: "Reset it.",
				Nodes: []string{"n2"}, Confidence: 0.1,
			},
			{ID: "gpu-hot", Severity: finding.Warn, Where: "gpu1", Text: "GPU 1 is hot"},
			{ID: "gpu-persistence", Severity: finding.Note, Where: "gpu1", Text: "a note"},
			{ID: "../slow-host:n2", Severity: finding.Error, Where: strings.Repeat("x", 100), Text: "forged"},
		})
		list := h.view.notices.findings()
		if len(list) != 2 || list[0].ID != "gpu-ecc:n1/gpu0" || list[0].Kind != "gpu-ecc" || list[0].Nodes[0] != "n1" ||
			len(list[0].Nodes) != 1 || strings.Contains(list[0].Text, "\x1b") || !drains(list[0]) || drains(list[1]) ||
			!list[0].Since.Equal(now) {
			t.Fatalf("%+v", list)
		}
		// It is told for as long as it is so, with its beginning; then it clears, and is over.
		time.Sleep(noticeLasts/3 + time.Second)
		if list = h.view.notices.findings(); len(list) != 2 || !list[0].Clearing || drains(list[0]) ||
			!list[0].Since.Equal(now) {
			t.Errorf("%+v", list)
		}
		time.Sleep(noticeLasts)
		if list = h.view.notices.findings(); len(list) > 0 || len(h.view.notices.of) > 0 {
			t.Errorf("%+v", list)
		}
	})
}

// TestNoticesAreBounded: one node has few, and drives out those of no other.
func TestNoticesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{})
		h.Flood(bus.Flood{Node: "n1", What: "beats", Refused: 5})
		h.second("n1", "10.0.0.1")
		for i := range 100 {
			h.reported("n2", []finding.Finding{
				{ID: "gpu-ecc", Severity: finding.Error, Where: strings.Repeat("g", i%40+1), Text: "x"},
			})
		}
		for i := range 2 * fleet.MaxNodes {
			h.second(fleet.Name(strings.Repeat("x", i%5)+string(rune('a'+i%26))+strings.Repeat("y", i/5%9)), "here")
		}
		count := map[string]int{}
		for _, f := range h.view.notices.findings() {
			count[f.Nodes[0]]++
		}
		if count["n1"] != 2 || count["n2"] != maxNotices || len(count) > fleet.MaxNodes {
			t.Errorf("%d of n1, %d of n2, %d nodes", count["n1"], count["n2"], len(count))
		}
	})
}
