package query

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSched builds, proves and lowers a schedule, and reads the file again.
func TestSched(t *testing.T) {
	q := Sched{Op: "all_gather", Algo: "bruck", Ranks: new(6)}
	d, err := q.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddPrograms(); err != nil || len(d.Programs) != 6 || d.Schedule.Ranks != 6 || d.Wrong() {
		t.Errorf("%v, %+v", err, d)
	}
	a, err := d.MSCCL()
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if err := a.Write(&file); err != nil {
		t.Fatal(err)
	}
	env := Env{Files: fstest.MapFS{"ag.xml": {Data: []byte(file.String())}}}
	proven, err := Sched{File: "ag.xml", Check: true}.Run(t.Context(), env)
	if err != nil || proven.Wrong() || proven.File.Ranks != 6 || len(proven.Check.Calls) != 2 {
		t.Errorf("%v, %+v", err, proven)
	}
	mistaken, err := Sched{File: "../docs/examples/mistaken.xml", Check: true}.Run(t.Context(), Env{})
	if err != nil || !mistaken.Wrong() || mistaken.Check.Fault == nil {
		t.Errorf("%v, %+v", err, mistaken)
	}
}

// TestSchedRefuses tells what cannot be asked from what cannot be done.
func TestSchedRefuses(t *testing.T) {
	for _, c := range []struct {
		q      Sched
		want   string
		cannot bool
	}{
		{Sched{Ranks: new(0)}, "0 ranks", false},
		{Sched{Channels: new(0)}, "channels 0; expected at least 1", false},
		{Sched{Algo: "hierarchical"}, "needs groups", false},
		{Sched{Algo: "hierarchical", Groups: "3"}, "not a whole number of groups of 3", false},
		{Sched{Algo: "hierarchical", Groups: "0-9"}, "expected ranks from 0 to 7", false},
		{Sched{Ranks: new(1000003), Check: true}, "too long to prove", true},
		{Sched{File: "nowhere.xml"}, "no such file", false},
	} {
		if _, err := c.q.Run(t.Context(), Env{}); err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrCannot) != c.cannot {
			t.Errorf("%+v: %v, want %q", c.q, err, c.want)
		}
	}
	d, err := Sched{Ranks: new(64)}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.MSCCL(); !errors.Is(err, ErrCannot) || !strings.Contains(err.Error(), "needs 127 steps") {
		t.Errorf("a long program: %v", err)
	}
}
