package predict

import (
	"strings"
	"testing"

	"busbar.dev/result"
	"busbar.dev/unit"
)

// Sizes with the same winner and the same reason are told once, those with
// another on their own.
func TestRulings(t *testing.T) {
	var rows []Row
	add := func(layout string, size unit.Bytes, us float64, kind result.LimitKind) {
		rows = append(rows, Row{
			Layout: layout, Time: unit.Micros(us), Limit: result.Limit{Kind: kind, Text: "of it"}, Asked: size, Chosen: true,
			Algo: "ring",
		})
	}
	for i, kind := range []result.LimitKind{
		result.ByNothing, result.ByLatency, result.ByLatency, result.ByHost, result.ByHost, result.ByHost,
	} {
		size := unit.Bytes(1024) << i
		slow := []float64{1, 2, 3, 4, 5, 6}[i]
		add("1x4", size, 1, result.ByNVLink)
		add("2x2", size, slow, kind)
	}
	list := Compare([]Side{{Layout: "1x4", Nodes: 1, Ranks: 4}, {Layout: "2x2", Nodes: 2, Ranks: 4}}, rows, nil)
	if len(list) != 6 || list[5].Winner != "1x4" ||
		!strings.HasPrefix(list[5].Text, "1x4 wins: 1 µs against 6 µs (2x2)") {
		t.Fatalf("verdicts %+v", list)
	}
	got := GroupVerdicts(list)
	if len(got) != 3 {
		t.Fatalf("rulings %+v", got)
	}
	for i, want := range []string{"the layouts are alike", "1x4 wins, 2 to 3 times as fast as 2x2; at 4 KiB 1 µs " +
		"against 3 µs (2x2); 2x2 loses because of it", "1x4 wins, 4 to 6 times as fast as 2x2; at 32 KiB 1 µs"} {
		if !strings.HasPrefix(got[i].Text, want) || len(got[i].Sizes) != i+1 {
			t.Errorf("%v: %s; want %s", got[i].Sizes, got[i].Text, want)
		}
	}
}
