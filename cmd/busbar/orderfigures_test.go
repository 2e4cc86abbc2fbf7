package main

import (
	"bytes"
	"strings"
	"testing"

	"busbar/coll"
	"busbar/result"
	"busbar/unit"
)

// TestPlaceOfCollectives: a size that was measured out of place and in place has two rows that differ.
func TestPlaceOfCollectives(t *testing.T) {
	row := func(in bool) *result.Record {
		return &result.Record{Op: coll.AllReduce, Ranks: 4, Size: unit.MiB, Algo: "ring", InPlace: in, Time: result.Times{Mean: 100}}
	}
	var b bytes.Buffer
	if err := (&figures{Records: []*result.Record{row(false), row(true)}}).print(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "place") || strings.Fields(lines[1])[4] != "out" || strings.Fields(lines[2])[4] != "in" {
		t.Errorf("%s", b.String())
	}
}
