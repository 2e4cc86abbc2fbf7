package hang

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/internal/test/synth/livejob"
)

// TestTwoRunsOfLogs has the logs of two runs: in the first rank 1 raised an error, in the second rank 2 is late.
func TestTwoRunsOfLogs(t *testing.T) {
	hung := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
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
		"other processes": {
			func(r int) string { return init(1000, r) + raised(r) }, func(r int) string { return init(2000, r) + hung.Log(r) },
			Late, true,
		},
		"the same processes": {
			func(r int) string { return init(1000, r) + raised(r) }, func(r int) string { return init(1000, r) + hung.Log(r) },
			Exited, false,
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
