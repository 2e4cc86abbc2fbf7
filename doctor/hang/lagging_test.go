package hang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The rank that is behind by its own numbers is named, whoever noticed first, and also where all watchdogs timed out.
func TestLagging(t *testing.T) {
	const caught = "[rank%d]:[E1116 10:00:0%d.1 ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective " +
		"operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for " +
		"600012 milliseconds before timing out.\n"
	const at = "[rank%d]:[E1116 10:00:0%d.2 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank %d] " +
		"Exception (either an error or timeout) detected by watchdog at work: %d, last enqueued NCCL work: %d, last " +
		"completed NCCL work: %d.\n"
	for name, c := range map[string]struct {
		started, completed int // of the rank that is behind; the others started 125 and completed 119
		noticed            int // the second at which its watchdog timed out
		want               bool
	}{
		"started less, noticed first": {118, 117, 0, true}, "started less, noticed last": {118, 117, 9, true},
		"completed less": {125, 117, 5, true}, "all alike": {125, 119, 5, false},
	} {
		for culprit := range 4 {
			var b strings.Builder
			for r := range 4 {
				seq, started, completed, second := 120, 125, 119, 1+r
				if r == culprit {
					seq, started, completed, second = c.completed+1, c.started, c.completed, c.noticed
				}
				fmt.Fprintf(&b, caught, r, second, r, seq)
				fmt.Fprintf(&b, at, r, second, r, seq, started, completed)
			}
			job := NewCase()
			if _, err := job.Add("job.log", []byte(b.String())); err != nil {
				t.Fatal(err)
			}
			v := job.Judge()
			var ranks []int
			for _, r := range v.Ranks {
				ranks = append(ranks, r.Rank)
			}
			if c.want != slices.Equal(ranks, []int{culprit}) {
				t.Errorf("%s, rank %d: %s %v (%s)", name, culprit, v.Kind, ranks, v.Text)
			}
		}
	}
}

// Only the rank that is late says its numbers, when the others' watchdogs ask for a dump; lines may lack the launcher's
// mark.
func TestDumpSignalOfOne(t *testing.T) {
	const caught = "[E1117 01:45:13.2 ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective operation timeout: " +
		"WorkNCCL(SeqNum=48, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600011 milliseconds " +
		"before timing out.\n"
	const at = "[E1117 01:45:13.3 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank %d] Exception (either " +
		"an error or timeout) detected by watchdog at work: 48, last enqueued NCCL work: 48, last completed NCCL work: 47.\n"
	for _, numbers := range []bool{true, false} {
		for _, mark := range []string{"%d: [rank%d]:", ""} {
			var b strings.Builder
			said := func(rank int, line string) {
				if mark != "" {
					fmt.Fprintf(&b, mark, rank, rank)
				}
				fmt.Fprintf(&b, line, rank)
			}
			for r := range 8 {
				fmt.Fprintf(&b, "%d: n%d:%d:%d [0] NCCL INFO ncclCommInitRank comm 0x55d0 rank %d nranks 8 cudaDev 0 nvmlDev 0 "+
					"busId c3000 commId 0x7c1d - Init COMPLETE\n", r, r, 900+r, 900+r, r)
				if r == 5 {
					said(r, "[E1117 01:45:14.1 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank %d] Received a dump "+
						"signal due to a collective timeout from rank 2 and we will try our best to dump the debug info. Last enqueued "+
						"NCCL work: 47, last completed NCCL work: 47.\n")
					continue
				}
				said(r, caught)
				if numbers {
					said(r, at)
				}
			}
			b.WriteString("srun: error: n2: task 2: Aborted (core dumped)\n")
			job := NewCase()
			if _, err := job.Add("job.log", []byte(b.String())); err != nil {
				t.Fatal(err)
			}
			v := job.Judge()
			if v.Kind != Late || len(v.Ranks) != 1 || v.Ranks[0].Rank != 5 || v.Ranks[0].Host != "n5" || v.Ranks[0].PID != 905 {
				t.Errorf("numbers %v, mark %q: %s %+v (%s)", numbers, mark, v.Kind, v.Ranks, v.Text)
			}
		}
	}
}
