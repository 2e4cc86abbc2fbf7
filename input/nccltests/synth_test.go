package nccltests

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/internal/test/synth"
	"busbar.dev/sim"
)

// table is a synthetic sweep and the text that nccl-tests would print of it.
func table(t *testing.T, k coll.Kind) (synth.Machine, synth.Sweep, string) {
	t.Helper()
	m := synth.Machines()[0]
	list, err := m.Sweeps(sim.Fitted(), 0.02, synth.Sizes(8, 4), k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.Table(&list[0])
	if err != nil {
		t.Fatal(err)
	}
	return m, list[0], text
}

// What a table says of one run is the run.
func TestSyntheticRun(t *testing.T) {
	for _, k := range []coll.Kind{
		coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce, coll.AllToAll,
	} {
		_, g, text := table(t, k)
		out, err := ReadOutput("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		tab := &out.Tables[0]
		nodes, per, ok := tab.Layout()
		if len(out.Tables) != 1 || out.Unused+out.Untimed != 0 || tab.Op != k || nodes != g.Nodes || per != g.PerNode ||
			!ok || release(tab.Library) != g.NCCL {
			t.Errorf("%s: %+v", k, tab)
			continue
		}
		rows := points(tab)
		for i, us := range g.Micros {
			if math.Abs(rows[i].Out.Time.Mean.Micros()-us) > 0.006 || math.Abs(rows[i].In.Time.Mean.Micros()-1.01*us) > 0.006 {
				t.Errorf("%s: %d bytes take %v and %v, want %v", k, rows[i].Size, rows[i].Out.Time.Mean.Micros(),
					rows[i].In.Time.Mean.Micros(), us)
			}
		}
	}
}

// A table that is cut anywhere gives the rows it has left as they are in the whole one, and no others: what lacks a
// column is not taken for another row.
func TestCutTable(t *testing.T) {
	for _, k := range []coll.Kind{coll.AllReduce, coll.Reduce} {
		_, _, text := table(t, k)
		whole, err := ReadOutput("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, p := range points(&whole.Tables[0]) {
			want[line(&p)] = true
			p.In = nil
			want[line(&p)] = true
		}
		rows := strings.Index(text, "(elements)")
		last := 0
		for cut := rows; cut < len(text); cut++ {
			out, err := ReadOutput("f", strings.NewReader(text[:cut]))
			if err != nil {
				t.Fatal(err)
			}
			got := points(&out.Tables[0])
			for i := range got {
				if !want[line(&got[i])] {
					t.Errorf("%s: cut at %q: a row %s", k, text[cut-20:cut], line(&got[i]))
				}
			}
			if len(got) < last {
				t.Errorf("%s: cut at %q: %d rows; a shorter text has %d", k, text[cut-20:cut], len(got), last)
			}
			last = len(got)
		}
		if last != len(points(&whole.Tables[0])) {
			t.Errorf("%s: %d rows before the end of the text", k, last)
		}
	}
}

// A row whose last column is lost has its root and its times all the same.
func TestLostColumn(t *testing.T) {
	for _, root := range []int{-1, 0, 3} {
		text := head +
			fmt.Sprintf(" 8 2 float sum %d 126.9 0.03 0.06 0 125.6 0.04 0.07\n# Avg bus bandwidth    : 1.0\n", root)
		out, err := ReadOutput("f", strings.NewReader(text))
		if err != nil || len(points(&out.Tables[0])) != 1 || out.Unused != 1 {
			t.Fatalf("root %d: %v %+v", root, err, out)
		}
		if got := line(&points(&out.Tables[0])[0]); got != "8 126.9 0.03 0.06 0" || out.Tables[0].roots[0] != root {
			t.Errorf("root %d: %s, root %d", root, got, out.Tables[0].roots[0])
		}
	}
}
