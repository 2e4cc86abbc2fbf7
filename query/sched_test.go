package query

import (
	"errors"
	"strings"
	"testing"
)

// TestSched builds a schedule, and proves it.
func TestSched(t *testing.T) {
	q := Sched{Op: "all_gather", Algo: "bruck", Program: Program{Ranks: new(6)}}
	d, err := q.Run(t.Context(), Env{})
	if err != nil || len(d.Programs) != 6 || d.Schedule.Ranks != 6 || d.Wrong() {
		t.Errorf("%v, %+v", err, d)
	}
	on := Sched{Algo: "hierarchical", Layout: "2x4"} // whose nodes are the groups
	if d, err := on.Run(t.Context(), Env{}); err != nil || len(d.Programs) != 8 {
		t.Errorf("%v, %+v", err, d)
	}
	on.Cluster, on.Layout = "dgx-h100:2", ""
	if d, err := on.Run(t.Context(), Env{}); err != nil || len(d.Programs) != 16 {
		t.Errorf("%v, %+v", err, d)
	}
	q.Check = true
	if d, err = q.Run(t.Context(), Env{}); err != nil || d.Wrong() || d.Schedule.Rounds != 3 {
		t.Errorf("%v, %+v", err, d)
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
		{Sched{Program: Program{Ranks: new(1000003), Check: true}}, "too long to prove", true},
	} {
		if _, err := c.q.Run(t.Context(), Env{}); err == nil || !strings.Contains(err.Error(), c.want) ||
			errors.Is(err, ErrCannot) != c.cannot {
			t.Errorf("%+v: %v, want %q", c.q, err, c.want)
		}
	}
}
