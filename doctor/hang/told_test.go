package hang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestToldOps reads what people quote: the watchdogs of a job gave up at the same number, one rank in another
// collective than the rest. Numbers of different groups say nothing of each other.
func TestToldOps(t *testing.T) {
	const caught = "[rank%d]:[E1116 10:00:0%d.1 ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective " +
		"operation timeout: WorkNCCL(SeqNum=41, OpType=%s, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for " +
		"600012 milliseconds before timing out.\n"
	const at = "[rank%d]:[E1116 10:00:0%d.2 ProcessGroupNCCL.cpp:1785] [PG ID %d PG GUID %d(%s) Rank %d]  failure " +
		"detected " +
		"by watchdog at work sequence id: 41 PG status: last enqueued work: 41, last completed work: 40\n"
	for name, x := range map[string]struct {
		groups []int // of each rank; nil: the lines do not say
		ops    []string
		want   []int
	}{
		"one rank": {nil, []string{"ALLREDUCE", "ALLREDUCE", "BROADCAST", "ALLREDUCE"}, []int{2}},
		"in one group": {
			[]int{0, 0, 0, 0}, []string{"ALLREDUCE", "_ALLGATHER_BASE", "ALLREDUCE", "ALLREDUCE"}, []int{1},
		},
		"two groups": {[]int{3, 3, 5, 5}, []string{"ALLREDUCE", "ALLREDUCE", "BROADCAST", "BROADCAST"}, nil},
		"all alike":  {nil, []string{"ALLREDUCE", "ALLREDUCE", "ALLREDUCE", "ALLREDUCE"}, nil},
	} {
		text := ""
		for r, op := range x.ops {
			text += fmt.Sprintf(caught, r, r, r, op)
			if x.groups != nil {
				text += fmt.Sprintf(at, r, r, x.groups[r], x.groups[r], "group", r)
			}
		}
		c := NewCase()
		if _, err := c.Add("job.log", []byte(text)); err != nil {
			t.Fatal(err)
		}
		v := c.Judge()
		if !c.Waits() || (v.Kind == OpMismatch) != (x.want != nil) || x.want != nil &&
			(v.State != Hung || !slices.Equal(ranksOf(v), x.want)) {
			t.Errorf("%s: %s %s %v: %s", name, v.State, v.Kind, ranksOf(v), v.Text)
		}
	}
}

// TestSizeToldBySides reads two ranks of a group that is not all: its size is that of the sides of a gather, and no
// rank is named. Where nothing tells how many ranks there are, they are those that were seen, at least.
func TestSizeToldBySides(t *testing.T) {
	judge := func(text string) *Verdict {
		c := NewCase()
		if _, err := c.Add("job.log", []byte(text)); err != nil {
			t.Fatal(err)
		}
		return c.Judge()
	}
	text := ""
	for _, r := range []int{2, 5} {
		text += fmt.Sprintf("[rank%d]:[E1116 10:00:01.1 ProcessGroupNCCL.cpp:607] [Rank %d] Watchdog caught collective "+
			"operation timeout: WorkNCCL(SeqNum=12, OpType=_ALLGATHER_BASE, NumelIn=10, NumelOut=80, Timeout(ms)=600000) "+
			"ran for 600012 milliseconds before timing out.\n", r, r)
	}
	v := judge(text + "[rank5]:[E1116 10:00:01.2 ProcessGroupNCCL.cpp:1709] [PG 4 Rank 5] Timeout at NCCL work: 12, " +
		"last " +
		"enqueued NCCL work: 12, last completed NCCL work: 11.\n")
	if v.Kind != UnknownKind || len(v.Ranks) > 0 || v.World != 8 || !slices.Equal(v.Waiting, []int{2, 5}) ||
		!strings.Contains(v.Text, "all_gather #12, of 8 ranks") {
		t.Errorf("%s %v of %d: %s", v.Kind, v.Ranks, v.World, v.Text)
	}
	if v := judge(watchdogs(2)); v.Communicator == nil || !v.Communicator.Least ||
		!strings.Contains(v.Text, "(at least ranks 0-3)") {
		t.Errorf("%+v: %s", v.Communicator, v.Text)
	}
}

// TestFailedLaunch: of tasks that all failed before anything ran, none is the one at fault, whatever they raised; one
// that ended alone is.
func TestFailedLaunch(t *testing.T) {
	const traced = "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29401 (errno: 98 - Address " +
		"already in use).\nTraceback (most recent call last):\n  File \"/opt/bin/torchrun\", line 33, in <module>\n" +
		"RuntimeError: The server socket has failed to listen on any local network address.\n"
	const one, other = "srun: error: n2: task 5: Exited with exit code 1\n",
		"srun: error: n1: task 0: Exited with exit code 1\n"
	for text, want := range map[string][]int{
		traced + traced + one + other: nil, one: {5},
		"n2:41:41 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.2<0>\n" + one + other: {5},
	} {
		c := NewCase()
		if _, err := c.Add("slurm.out", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if v := c.Judge(); !slices.Equal(ranksOf(v), want) || v.State == Unknown && want != nil {
			t.Errorf("%q: %s %v: %s", text, v.State, ranksOf(v), v.Text)
		}
	}
}

// TestRootCause: of torchrun's tables the earliest root cause counts, and not the table that comes first, of which the
// time may be cut off.
func TestRootCause(t *testing.T) {
	table := func(rank int, at string) string {
		return fmt.Sprintf("  time      : 2026-01-02_%s\n  host      : n1\n  rank      : %d (local_rank: 0)\n"+
			"  exitcode  : 1 (pid: %d)\n", at, rank, 100+rank)
	}
	const root = "----\nRoot Cause (first observed failure):\n[0]:\n"
	first := table(3, "10:00:51") + root + table(0, "10:00:51")
	for text, want := range map[string]int{
		first:                                  0,
		first[strings.Index(first, "  host"):]: 0,
		first + "====\nFailures:\n  <NO_OTHER_FAILURES>\n" + root + table(4, "10:00:01"): 4,
	} {
		c := NewCase()
		if _, err := c.Add("job.log", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if v := c.Judge(); !slices.Equal(ranksOf(v), []int{want}) {
			t.Errorf("%s: %v, want %d", text, ranksOf(v), want)
		}
	}
}
