package hub

import (
	"testing"
	"time"

	"busbar.dev/fleet"
)

// Settle is said to nobody: these nodes are one agent each.
func (m *memory) Settle(fleet.Name, *fleet.Settled) error { return nil }

// TestRivals hears agents of one name come, end, come again and meet.
func TestRivals(t *testing.T) {
	t0 := time.Now()
	type beat struct {
		at, up float64
		agent  string
		want   string // nothing, "roll", or who gives up
	}
	for name, beats := range map[string][]beat{
		"one": {{0, 0, "a", ""}, {10, 10, "a", ""}, {20, 20, "a", ""}},
		"started again": {
			{0, 100, "a", ""}, {5, 0, "b", "roll"}, {5, 0, "b", ""}, {15, 10, "b", ""}, {18, 0, "c", "roll"}, {28, 10, "c", ""},
		},
		"long away": {{0, 100, "a", ""}, {50, 0, "b", ""}, {60, 10, "b", ""}},
		"a second": {
			{0, 100, "a", ""}, {5, 0, "b", "roll"}, {5.1, 105, "a", "b"}, {5.2, 0.2, "b", ""}, {15, 115, "a", "b"},
		},
		"server is new":  {{0, 3, "b", ""}, {5, 900, "a", "roll"}, {5.1, 8, "b", "b"}},
		"begun together": {{0, 1, "b", ""}, {0.1, 1.2, "a", "roll"}, {0.2, 1.2, "b", "b"}},
		"without a mark": {{0, 100, "a", ""}, {5, 0, "", "roll"}, {5.1, 105, "a", "none"}},
		"another, and gone": {
			{0, 100, "a", ""}, {5, 0, "b", "roll"}, {5.1, 105, "a", "b"}, {60, 160, "a", ""}, {70, 0, "c", "roll"},
		},
	} {
		var r rivals
		two := false
		for i, b := range beats {
			got := ""
			s := r.beat(&fleet.Beat{Node: "n", Up: b.up, Agent: b.agent}, t0.Add(time.Duration(b.at*float64(time.Second))))
			switch {
			case s == nil:
			case s.GoesOn == "" && s.GivesUp == "":
				got = "roll"
			case s.GivesUp == "":
				got = "none"
			default:
				got = s.GivesUp
			}
			if got != b.want {
				t.Errorf("%s: beat %d: %q, expected %q", name, i, got, b.want)
			}
			two = two || got != "" && got != "roll"
		}
		found := r.findings(t0.Add(80 * time.Second))
		if (len(found) == 1) != two || two && (found[0].Text != "two agents use the name n" || drains(found[0])) {
			t.Errorf("%s: found %+v", name, found)
		}
		if late := r.findings(t0.Add(12 * time.Minute)); len(late) != 0 {
			t.Errorf("%s: still found after ten minutes: %+v", name, late)
		}
	}
}
