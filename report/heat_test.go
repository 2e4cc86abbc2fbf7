package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

func TestHeat(t *testing.T) {
	table := &pairs.Table{}
	for i := range 8 {
		table.Names = append(table.Names, fmt.Sprintf("node%d", i))
	}
	for a := range 8 {
		for b := range 8 {
			r := 12 * unit.GBps
			if a == 3 || b == 3 {
				r /= 2
			}
			if a == 1 && b == 6 {
				r /= 4
			}
			if a != b {
				table.Cells = append(table.Cells, pairs.Measure{From: a, To: b, Rate: r, Latency: 20 * unit.Microsecond})
			}
		}
	}
	var out bytes.Buffer
	if err := drawn(&out)(Heat(table)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"node3 is slow with all others", "from node1 to node6 it is slow", "<title>node1 to node6: 3 GB/s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the map lacks %q", want)
		}
	}
	if _, err := Heat(&pairs.Table{}); err == nil {
		t.Error("an empty table was drawn")
	}
	if _, err := Heat(&pairs.Table{Names: make([]string, 1000)}); err == nil {
		t.Error("a map of a thousand ranks was drawn")
	}
}
