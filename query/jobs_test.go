package query

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/input/profile"
	"busbar.dev/internal/test/ringfile"
)

// TestJobsDamaged has a damaged ring alone and beside a whole one: it is named, and the answer is not that all is well.
func TestJobsDamaged(t *testing.T) {
	ring := &profile.Ring{
		PID: 7, Host: "a", World: 1, Created: time.Unix(1_800_000_000, 0),
		Comms: []profile.Comm{{Hash: 1, Ranks: 2, Nodes: 1}},
	}
	ring.Ops = []profile.Op{{
		Function: "AllReduce", Type: "Float32", Sequence: 1, Count: 1024, Launched: ring.Created, Channels: 1, Started: true,
		Ended: true, Took: time.Millisecond,
	}}
	whole := ringfile.Encode(ring)
	bad := slices.Clone(whole)
	for i := 32; i < 64; i++ {
		bad[i] = 0xff
	}
	files := fstest.MapFS{"bad.ring": {Data: bad}, "whole.ring": {Data: whole}}
	if _, err := (Jobs{Sources: []string{"bad.ring"}}).Run(t.Context(), Env{Files: files}); err == nil ||
		!strings.Contains(err.Error(), "bad.ring: this ring is damaged") {
		t.Error(err)
	}
	d, err := Jobs{Sources: []string{"whole.ring", "bad.ring"}}.Run(t.Context(), Env{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Wrong() || d.Lost != 0 || len(d.Damaged) != 1 || len(d.Findings) != 1 ||
		d.Findings[0].ID != "damaged-file:bad.ring" {
		t.Errorf("lost %d, damaged %q, findings %+v", d.Lost, d.Damaged, d.Findings)
	}
}
