package query

import (
	"errors"
	"strings"
	"testing"

	"busbar.dev/unit"
)

// TestSched plays schedules.
func TestSched(t *testing.T) {
	q := Sched{Op: "all_gather", Algo: "bruck", Program: Program{Ranks: new(6)}}
	d, err := q.Run(t.Context(), Env{})
	if err != nil || len(d.Rounds) != 3 || d.Schedule.Ranks != 6 || d.Schedule.Rounds != 3 {
		t.Errorf("%v, %+v", err, d)
	}
	on := Sched{Algo: "hierarchical", Layout: "2x4"} // whose nodes are the groups
	if d, err := on.Run(t.Context(), Env{}); err != nil || len(d.Rounds) != 8 {
		t.Errorf("%v, %+v", err, d)
	}
	on.Cluster, on.Layout = "dgx-h100:2", ""
	if d, err := on.Run(t.Context(), Env{}); err != nil || len(d.Names) != 16 ||
		d.Rounds[0].Phase != "reduce-scatter inside nodes" {
		t.Errorf("%v, %+v", err, d)
	}
}

// TestSchedPlaysBaskerville holds the rounds of the three layouts to what the ring and the trees of four ranks are:
// what a rank sends in all, in which phases, and that no round loads a link beyond what the row has on it in all.
func TestSchedPlaysBaskerville(t *testing.T) {
	const size = 1_320_000_000
	for _, x := range []struct {
		layout Layout
		algo   string
		rounds int
		sent   unit.Bytes // by all ranks
		first  string
	}{
		{"1x4", "ring", 6, 6 * size, "reduce-scatter"},
		{"2x2", "ring", 6, 6 * size, "reduce-scatter"},
		{"4x1", "ring", 6, 6 * size, "reduce-scatter between nodes"},
		{"2x2", "tree", 4, 6 * size, "reduce inside nodes"},
		{"4x1", "tree", 4, 6 * size, "reduce between nodes"},
	} {
		d, err := Sched{Cluster: "baskerville", Layout: x.layout, Algo: x.algo, Size: "1.32GB"}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		sent := unit.Bytes(0)
		for _, r := range d.Rounds {
			if r.Time <= 0 || len(r.Links) == 0 || r.Links[0].Uses[0].Share > 1 {
				t.Errorf("%s %s: a round without links: %+v", x.layout, x.algo, r)
			}
			for _, s := range r.Sends {
				sent += s.Bytes
			}
		}
		if len(d.Rounds) != x.rounds || sent != x.sent || d.Rounds[0].Phase != x.first {
			t.Errorf("%s %s: %d rounds, %v sent, first %q; want %d, %v, %q", x.layout, x.algo, len(d.Rounds), sent,
				d.Rounds[0].Phase, x.rounds, x.sent, x.first)
		}
	}
}

// TestSchedRefuses tells what cannot be asked from what cannot be done.
func TestSchedRefuses(t *testing.T) {
	for _, c := range []struct {
		q      Sched
		want   string
		cannot bool
	}{
		{Sched{Program: Program{Ranks: new(0)}}, "0 ranks", false},
		{Sched{Program: Program{Channels: new(0)}}, "channels 0; expected at least 1", false},
		{Sched{Algo: "hierarchical"}, "needs groups", false},
		{Sched{Layout: "2x"}, "2x", false},
		{Sched{Algo: "hierarchical", Program: Program{Groups: "3"}}, "not a whole number of groups of 3", false},
		{Sched{Algo: "hierarchical", Program: Program{Groups: "0-9"}}, "expected ranks from 0 to 7", false},
		{Sched{Program: Program{Ranks: new(1000003)}}, "more than 131072 ops", true},
	} {
		if _, err := c.q.Run(t.Context(), Env{}); err == nil || !strings.Contains(err.Error(), c.want) ||
			errors.Is(err, ErrCannot) != c.cannot {
			t.Errorf("%+v: %v, want %q", c.q, err, c.want)
		}
	}
}
