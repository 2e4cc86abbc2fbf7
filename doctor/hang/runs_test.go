package hang

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/internal/test/synth/livejob"
)

// later is a dump as of a run that began seconds later: the times of its entries stand in it as eight bytes.
func later(t *testing.T, j *livejob.Job, rank, seconds int) []byte {
	t.Helper()
	data := j.Dump(rank)
	for _, e := range j.Entries(rank) {
		was, is := make([]byte, 8), make([]byte, 8)
		binary.LittleEndian.PutUint64(was, uint64(e.Created))
		binary.LittleEndian.PutUint64(is, uint64(e.Created)+uint64(seconds)*1e9)
		if !bytes.Contains(data, was) {
			t.Fatalf("rank %d: no time %d in the dump", rank, e.Created)
		}
		data = bytes.ReplaceAll(data, was, is)
	}
	return data
}

func addDumps(t *testing.T, c *Case, folder string, j *livejob.Job, seconds int) {
	t.Helper()
	for r := range j.Ranks {
		if _, err := c.Add(fmt.Sprintf("%s/nccl_trace_rank_%d", folder, r), later(t, j, r, seconds)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTwoRuns has the dumps of two runs in one place: the newest is judged, whatever the other is and however they are
// given.
func TestTwoRuns(t *testing.T) {
	hung := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	well := &livejob.Job{Ranks: 4, TP: 2, Steps: 9}
	for _, apart := range []int{8, 1000} {
		for _, x := range []struct {
			first, second *livejob.Job
			want          State
		}{{hung, well, Healthy}, {well, hung, Stalled}, {hung, hung, Stalled}} {
			for _, order := range []bool{false, true} {
				c := NewCase()
				if order {
					addDumps(t, c, "b", x.second, apart)
				}
				addDumps(t, c, "a", x.first, 0)
				if !order {
					addDumps(t, c, "b", x.second, apart)
				}
				v := c.Judge()
				notes := strings.Join(v.Notes, "\n")
				if v.State != x.want || !strings.Contains(notes, "Left out: a/nccl_trace_rank_0, a/nccl_trace_rank_1, "+
					"a/nccl_trace_rank_2, a/nccl_trace_rank_3.") {
					t.Errorf("%d s apart: %s, want %s: %s\n%s", apart, v.State, x.want, v.Text, notes)
				}
			}
		}
	}
}

// TestTwoJobs has what two jobs of the same time left, from one source at a time: nothing is concluded, and a sentence
// says why. Of two runs that followed each other the newest is judged.
func TestTwoJobs(t *testing.T) {
	late := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	answer := func(c *Case, name, clock string, other bool) {
		text := late.RAS(clock, false)
		if other {
			text = strings.ReplaceAll(text, `"hash": "0x1`, `"hash": "0x2`)
		}
		if _, err := c.Add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	rings := func(c *Case, folder string, pid int, later time.Duration) {
		for i, r := range ringJob(0) {
			if r.PID += pid; i != 2 {
				ringOp(r, 0, coll.AllReduce, 20, 1<<20, false)
			}
			r.Created = r.Created.Add(later)
			for k := range r.Ops {
				r.Ops[k].Launched = r.Ops[k].Launched.Add(later)
			}
			c.AddRing(fmt.Sprintf("%s/%d.ring", folder, i), r)
		}
	}
	for name, x := range map[string]struct {
		add         func(c *Case, together bool)
		mixed, left string
	}{
		"dumps": {func(c *Case, together bool) {
			addDumps(t, c, "a", late, 0)
			if !together {
				addDumps(t, c, "b", late, 1000)
				return
			}
			addDumps(t, c, "b", late, 0)
			for _, d := range c.rec.Dumps[4:] {
				for i := range d.Entries {
					d.Entries[i].Created += 1234 // ns
				}
			}
		}, "b/nccl_trace_rank_3 is of another than a/nccl_trace_rank_3.", "a/nccl_trace_rank_0, a/nccl_trace_rank_1, "},
		"RAS answers": {func(c *Case, together bool) {
			answer(c, "a.json", "2026-11-16 02:00:05", false)
			answer(c, "b.json", "2026-11-16 02:00:09", true)
			if together { // asked in turn
				answer(c, "a2.json", "2026-11-16 02:00:07", false)
				answer(c, "a3.json", "2026-11-16 02:00:09", false)
			}
		}, "b.json is of another than a3.json.", "a.json."},
		"rings": {func(c *Case, together bool) {
			rings(c, "a", 0, 0)
			if together {
				rings(c, "b", 1000, 10*time.Millisecond)
			} else {
				rings(c, "b", 1000, time.Minute)
			}
		}, "b/3.ring is of another than a/3.ring.", "a/0.ring, a/1.ring, a/2.ring, a/3.ring."},
	} {
		c := NewCase()
		x.add(c, true)
		if v := c.Judge(); v.State != Unknown || len(v.Ranks)+len(v.Notes) > 0 ||
			!strings.HasPrefix(v.Text, "The "+name+" are of several jobs of the same time: ") ||
			!strings.Contains(v.Text, x.mixed) {
			t.Errorf("%s together: %s %s %q", name, v.State, v.Text, v.Notes)
		}
		c = NewCase()
		x.add(c, false)
		if v := c.Judge(); v.State != Stalled || v.Kind != Late || !slices.Equal(ranksOf(v), []int{2}) ||
			len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "The "+name+" are of several runs.") ||
			!strings.Contains(v.Notes[0], "Left out: "+x.left) {
			t.Errorf("%s apart: %s %s %v %s %q", name, v.State, v.Kind, ranksOf(v), v.Text, v.Notes)
		}
	}
}

// TestStaleDump has a dump of yesterday's run of the rank that left none today.
func TestStaleDump(t *testing.T) {
	hung := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Killed, Culprit: 2}
	well := &livejob.Job{Ranks: 4, TP: 2, Steps: 9}
	c := NewCase()
	for r := range 4 {
		j, seconds := hung, 86400
		if r == 2 {
			j, seconds = well, 0
		}
		if _, err := c.Add(fmt.Sprintf("nccl_trace_rank_%d", r), later(t, j, r, seconds)); err != nil {
			t.Fatal(err)
		}
	}
	v := c.Judge()
	if v.State != Stalled || v.Kind != NoReport || len(v.Ranks) != 1 || v.Ranks[0].Rank != 2 ||
		!strings.Contains(strings.Join(v.Notes, ""), "Left out: nccl_trace_rank_2.") {
		t.Errorf("%s %v: %s %q", v.State, v.Ranks, v.Text, v.Notes)
	}
}

// TestTornDump cuts a dump off: its rank is one of which nothing is known, and a note says why.
func TestTornDump(t *testing.T) {
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	for _, size := range []int{0, 200, 2000} {
		c := NewCase()
		for r := range j.Ranks {
			data := j.Dump(r)
			if r == 2 {
				data = data[:size]
			}
			if _, err := c.Add(fmt.Sprintf("nccl_trace_rank_%d", r), data); err != nil {
				t.Fatal(err)
			}
		}
		v := c.Judge()
		if v.State != Stalled || v.Kind != NoReport || fmt.Sprint(ranksOf(v)) != "[2]" || v.Confidence > 0.5 ||
			len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "nccl_trace_rank_2: this recorder dump is") {
			t.Errorf("%d bytes: %s %v: %s %q", size, v.State, v.Ranks, v.Text, v.Notes)
		}
	}
}

// TestOneDump gives the dump of one rank alone: the others were not given, which says nothing about them.
func TestOneDump(t *testing.T) {
	c := NewCase()
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	if _, err := c.Add("nccl_trace_rank_0", j.Dump(0)); err != nil {
		t.Fatal(err)
	}
	if v := c.Judge(); v.State != Unknown || len(v.Ranks) > 0 || !strings.Contains(v.Text, "no dump of rank 2") {
		t.Errorf("%s %v: %s", v.State, v.Ranks, v.Text)
	}
}

// Of a log to which several jobs wrote one after another, the last is judged; nodes of one job are one run.
func TestSeveralRuns(t *testing.T) {
	failed := func(rank, pid int, why string) string {
		return fmt.Sprintf("[rank%d]: Traceback (most recent call last):\n[rank%[1]d]:   File \"/w/t.py\", line 4, in "+
			"<module>\n"+
			"[rank%[1]d]: %s\n", rank, why) + "Root Cause (first observed failure):\n[0]:\n" +
			fmt.Sprintf("  rank      : %d (local_rank: 0)\n  exitcode  : 1 (pid: %d)\n%s", rank, pid, strings.Repeat("=\n", 50))
	}
	first, second := failed(0, 100, "ValueError: one"), failed(0, 200, "KeyError: two")
	cancelled := "slurmstepd: error: *** JOB %d ON n1 CANCELLED AT 2025-03-01T10:00:00 ***\n"
	for text, want := range map[string]int{
		first: 0, first + failed(8, 300, "ValueError: one"): 0, first + second: 2,
		fmt.Sprintf(cancelled+cancelled, 7, 7): 0, fmt.Sprintf(cancelled+first+cancelled, 7, 8): 2,
	} {
		c := NewCase()
		if _, err := c.Add("slurm.out", []byte(text)); err != nil || len(c.Runs) != want {
			t.Errorf("%d runs (%v), want %d:\n%s", len(c.Runs), err, want, text)
		}
		if v := c.Judge(); strings.Contains(text, "two") &&
			(!strings.Contains(v.Text, "two") || c.Runs[1].Text != "ValueError: one") {
			t.Errorf("%s %v", v.Text, c.Runs)
		}
	}
}

// The number in the name of a log that stands alone is no rank.
func TestLoneLog(t *testing.T) {
	c := NewCase()
	_, err := c.Add("train1.log", []byte("Traceback (most recent call last):\n  File \"/w/t.py\", line 4, in <module>\n"+
		"KeyError: 'a'\n"))
	if v := c.Judge(); err != nil || v.Kind != Exited || len(v.Ranks) > 0 {
		t.Errorf("%v: %+v", err, v)
	}
}
