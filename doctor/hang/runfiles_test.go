package hang

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/synth/livejob"
)

// otherRun is a RAS answer as of another run: other processes and communicators.
func otherRun(text string) string {
	text = regexp.MustCompile(`("pid": )1`).ReplaceAllString(text, "${1}3")
	return regexp.MustCompile(`("hash": ")`).ReplaceAllString(text, "${1}f")
}

// TestTwoRunsOfRAS has the answers of two runs in one place: the newest is judged, whatever the other is.
func TestTwoRunsOfRAS(t *testing.T) {
	hung, well := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2},
		&livejob.Job{Ranks: 4, TP: 2, Steps: 9}
	for _, x := range []struct {
		first, second *livejob.Job
		live          bool
		want          Kind
	}{
		{hung, well, false, UnknownKind},
		{well, hung, false, Late},
		{hung, well, true, UnknownKind},
		{well, hung, true, Late},
	} {
		for _, order := range []bool{false, true} {
			c := NewCase()
			add := func(name, text string, live bool) {
				_, err := c.Add(name, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				if n := len(c.ras) - 1; live {
					r := c.ras[n]
					c.ras = c.ras[:n]
					c.AddRAS(r, time.Date(2026, 11, 16, 0, 0, n, 0, time.UTC)) // by a clock that is behind
				}
			}
			second := func() {
				for _, at := range []string{"2026-11-16 02:00:05", "2026-11-16 02:00:08"} {
					add("b/ras."+at[17:]+".json", otherRun(x.second.RAS(at, true)), x.live)
				}
			}
			if order {
				second()
			}
			add("a/ras.json", x.first.RAS("2026-11-16 01:00:05", true), false)
			if !order {
				second()
			}
			v := c.Judge()
			if notes := strings.Join(v.Notes, "\n"); v.Kind != x.want || c.Mixed() != nil ||
				!strings.Contains(notes, "Left out: a/ras.json.") {
				t.Errorf("live %v: %s %s %v: %s\n%s", x.live, v.State, v.Kind, c.Mixed(), v.Text, notes)
			}
		}
	}
	c := NewCase()
	for i, text := range []string{
		hung.RAS("2026-11-16 02:00:05", true), otherRun(well.RAS("2026-11-16 02:00:06", true)),
		hung.RAS("2026-11-16 02:00:07", true),
	} {
		if _, err := c.Add(fmt.Sprintf("ras.%d.json", i), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Mixed(); err == nil || !strings.Contains(err.Error(), "several jobs at the same time") {
		t.Errorf("two jobs at once: %v", err)
	}
}

// TestTwoRunsOfLogs has the logs of two runs: in the first rank 1 raised an error, in the second rank 2 is late.
func TestTwoRunsOfLogs(t *testing.T) {
	hung := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	const down = "[rank%d]:[E1116 01:%02d:09.000000001 ProcessGroupNCCL.cpp:764] [Rank %d] To avoid data inconsistency, " +
		"we are taking the entire process down.\n"
	init := func(pid, rank int) string {
		return fmt.Sprintf("gpu01:%d:%d [%d] NCCL INFO ncclCommInitRankConfig comm 0x5581 rank %d nranks 4 cudaDev %d "+
			"nvmlDev %d busId 1000 commId 0x%x - Init START\n", pid+rank, pid+rank, rank, rank, rank, rank, 0xabc0+pid)
	}
	raised := func(rank int) string {
		text := fmt.Sprintf("[rank%d]:[W1116 01:00:00.000000001 ProcessGroupNCCL.cpp:10] [Rank %d] starts\n", rank, rank)
		if rank == 1 {
			text += "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/job/train.py\", line 9, in <module>\n" +
				"[rank1]: ValueError: loss is NaN\n"
		}
		return text
	}
	for name, x := range map[string]struct {
		first, second func(rank int) string
		want          Kind
		left          bool
	}{
		"the second run alone": {nil, hung.Log, Late, false},
		"taken down, then again": {
			func(r int) string { return raised(r) + fmt.Sprintf(down, r, 40, r) }, hung.Log, Late, true,
		},
		"other processes": {
			func(r int) string { return init(1000, r) + raised(r) }, func(r int) string { return init(2000, r) + hung.Log(r) },
			Late, true,
		},
		"the same processes": {
			func(r int) string { return init(1000, r) + raised(r) }, func(r int) string { return init(1000, r) + hung.Log(r) },
			Exited, false,
		},
		"who writes while it ends": {
			func(r int) string { return raised(r) + fmt.Sprintf(down, r, 59, r) },
			func(r int) string { return init(1000, r) + hung.Log(r) }, Exited, false,
		},
		"not known to be two runs": {raised, hung.Log, Exited, false},
		"without an error of their": {
			func(r int) string { return init(1000, r) + raised(0) }, func(r int) string { return init(2000, r) + hung.Log(r) },
			Late, true,
		},
	} {
		c := NewCase()
		for r := range 4 {
			if x.first != nil {
				if _, err := c.Add(fmt.Sprintf("a/stderr.%d.log", r), []byte(x.first(r))); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Add(fmt.Sprintf("b/stderr.%d.log", r), []byte(x.second(r))); err != nil {
				t.Fatal(err)
			}
		}
		v := c.Judge()
		if notes := strings.Join(v.Notes, "\n"); v.Kind != x.want ||
			strings.Contains(notes, "Left out: a/stderr.0.log, a/stderr.1.log, a/stderr.2.log, a/stderr.3.log.") != x.left {
			t.Errorf("%s: %s %s %v: %s\n%s", name, v.State, v.Kind, ranksOf(v), v.Text, notes)
		}
	}
}
