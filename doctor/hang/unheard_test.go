package hang

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/internal/test/synth/livejob"
)

// TestMissingDump leaves the dump of one rank out: that is no evidence of how its process is.
func TestMissingDump(t *testing.T) {
	for _, fault := range []livejob.Fault{livejob.Late, livejob.Killed, livejob.Stopped} {
		j := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: fault, Culprit: 2}
		c := NewCase()
		for _, r := range []int{0, 1, 3} {
			if _, err := c.Add(fmt.Sprintf("nccl_trace_rank_%d", r), j.Dump(r)); err != nil {
				t.Fatal(err)
			}
		}
		v := c.Judge()
		if v.State != Stalled || v.Kind != NoReport || !slices.Equal(ranksOf(v), []int{2}) || v.Confidence > 0.5 ||
			v.Severity() != finding.Warn {
			t.Errorf("%s: %s %s %v %.2f %s", fault, v.State, v.Kind, ranksOf(v), v.Confidence, v.Severity())
		}
		if next := strings.Join(v.Next, "\n"); !strings.Contains(next, "/tmp/nccl_trace_rank_2") ||
			!strings.Contains(next, "busbar hang --pid") || strings.Contains(next, "kill -CONT") {
			t.Errorf("%s: %s", fault, next)
		}
	}
}

// watchdogs is the log of a job of four ranks whose watchdogs gave up, but for some.
func watchdogs(but ...int) string {
	var b strings.Builder
	for r := range 4 {
		if !slices.Contains(but, r) {
			fmt.Fprintf(&b, "[rank%d]:[E1112 10:11:44.51%d202 ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective "+
				"operation timeout: WorkNCCL(SeqNum=46, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for "+
				"600044 milliseconds before timing out.\n", r, r, r)
		}
	}
	return b.String()
}

// TestNoLogOfARank reads the output of three ranks of four, in a file whose name has a number.
func TestNoLogOfARank(t *testing.T) {
	c := NewCase()
	if _, err := c.Add("job-no2.log", []byte(watchdogs(2))); err != nil {
		t.Fatal(err)
	}
	v := c.Judge()
	if v.Kind != NoReport || !slices.Equal(ranksOf(v), []int{2}) || v.Confidence > 0.5 ||
		!strings.Contains(v.Text, "there is no line of rank 2") {
		t.Errorf("%s %v %.2f: %s", v.Kind, ranksOf(v), v.Confidence, v.Text)
	}
}

// TestLastLine quotes what the program wrote on the rank that is late, before the others gave up.
func TestLastLine(t *testing.T) {
	const cause = "step 1: loss is nan, batch skipped"
	text := "step 0 done\n[rank2]: " + cause + "\n" + watchdogs(2) +
		"[rank2]:[E1112 10:11:45.012101 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump " +
		"signal due to a collective timeout from rank 0 and we will try our best to dump the debug info. Last enqueued " +
		"NCCL work: 45, last completed NCCL work: 45.\n" +
		"[rank2]: terminating\nW1112 10:11:47.714000 30050 torch/distributed/elastic/multiprocessing/api.py:900] Sending " +
		"process 30112 closing signal SIGTERM\n"
	c := NewCase()
	if _, err := c.Add("job.log", []byte(text)); err != nil {
		t.Fatal(err)
	}
	v := c.Judge()
	if v.Kind != Late || len(v.Evidence) == 0 || v.Evidence[0].Line != 2 || !strings.HasSuffix(v.Evidence[0].Text, cause) {
		t.Errorf("%s: %+v", v.Kind, v.Evidence)
	}
}

// TestAddresses names the host of an address that NCCL's lines give, unless several hosts say that they use it.
func TestAddresses(t *testing.T) {
	line := func(rank int, said string) string {
		return fmt.Sprintf("gpu%02d:%d:%d [0] NCCL %s\n", rank, 900+rank, 900+rank, said)
	}
	text := ""
	for r := range 3 {
		text += line(r, fmt.Sprintf("INFO Bootstrap : Using eth0:10.1.0.%d<0>", 10+r)) +
			line(r, "INFO NET/Socket : Using [0]docker0:172.17.0.1<0>") +
			line(r, fmt.Sprintf("INFO ncclCommInitRank comm 0x1 rank %d nranks 3 cudaDev 0 nvmlDev 0 busId 60 commId 0x77 - "+
				"Init COMPLETE", r))
	}
	for _, r := range []int{0, 2} {
		text += line(r, "WARN NET/IB : Got completion from peer 10.1.0.11<4791> with status=12 opcode=0 len=0 vendor err "+
			"129 (Send)")
	}
	c := NewCase()
	if _, err := c.Add("job.log", []byte(text)); err != nil {
		t.Fatal(err)
	}
	v := c.Judge()
	if v.Kind != Network || !slices.Equal(ranksOf(v), []int{1}) || v.Ranks[0].Host != "gpu01" {
		t.Errorf("%s %+v: %s", v.Kind, v.Ranks, v.Text)
	}
	if j := newJob(c); j.named("172.17.0.1") != "172.17.0.1" {
		t.Errorf("172.17.0.1 is %s", j.named("172.17.0.1"))
	}
}

// TestXidOfAHost names the host of an Xid whose rank nobody knows: by the name of the kernel's log.
func TestXidOfAHost(t *testing.T) {
	c := NewCase()
	for name, text := range map[string]string{
		"job.log":      watchdogs(),
		"dmesg.gpu017": "[ 9123.51] NVRM: Xid (PCI:0000:3b:00): 79, pid=30112, GPU has fallen off the bus.\n",
	} {
		if _, err := c.Add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	v := c.Judge()
	if v.Kind != GPUFault || !slices.Equal(v.Nodes, []string{"gpu017"}) || !strings.Contains(v.Title(), "gpu017") ||
		!strings.Contains(strings.Join(v.Next, "\n"), "nodename=gpu017") {
		t.Errorf("%s %v: %s %q", v.Kind, v.Nodes, v.Title(), v.Next)
	}
	if f := v.Findings(); len(f) != 1 || !slices.Equal(f[0].Nodes, v.Nodes) {
		t.Errorf("%+v", f)
	}
}

// TestOneAnswer: one answer of RAS alone may be a passing moment, in one form or in two.
func TestOneAnswer(t *testing.T) {
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	c := NewCase()
	for name, text := range map[string]string{"ras.json": j.RAS("2026-11-16 02:00:05", true), "ras.txt": j.RASText()} {
		if _, err := c.Add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if name == "ras.txt" && len(c.ras) == 1 {
			continue // when a text was written nobody knows
		}
		if v := c.Judge(); v.State != Stalled || !v.MayPass || v.Severity() != finding.Note {
			t.Errorf("%d answers: %s %v %s: %s", len(c.ras), v.State, v.MayPass, v.Severity(), v.Text)
		}
	}
}
