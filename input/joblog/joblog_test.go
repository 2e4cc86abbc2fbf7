package joblog

import (
	"strings"
	"testing"
)

const sample = `[W1116 02:34:46.301695375 WorkerServer.cpp:150] [c10d] Server listening to UNIX /x
[rank0]:[E1116 02:35:23.156796868 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=65536, NumelOut=65536, Timeout(ms)=25000) ran for 25008 milliseconds before timing out.
[rank0]:[E1116 02:35:23.158018340 ProcessGroupNCCL.cpp:2303] [PG ID 2 PG GUID 3(dp) Rank 0]  failure detected by watchdog at work sequence id: 17 PG status: last enqueued work: 18, last completed work: 16
[rank2]:[E1116 02:35:30.455910440 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 8, last completed NCCL work: 8.This
[rank1]: Traceback (most recent call last):
[rank1]:   File "/data/train.py", line 139, in train_step
[rank1]:     raise ValueError(f"loss is NaN at step {step}")
[rank1]: ValueError: loss is NaN at step 8
node2:465:465 [0] NCCL INFO ncclCommInitRankConfig comm 0x42aa10a0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x74eabd16e3308350 - Init START
[2026-11-16 02:36:09] node0:1291:1611 [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote peer node3<48036>
[   93.591797] NVRM: Xid (PCI:0000:00:06): 43, pid=1296, name=python3, channel 0x00000127
Nov 16 02:35:41 node1 kernel: Out of memory: Killed process 1297 (python3) total-vm:1kB
torch.distributed.DistStoreError: Timed out after 21 seconds waiting for clients. 3/4 clients joined.
	 - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
	     [5, 6] finished collective #8, but didn't join collective #9 (count from 1)
  rank      : 3 (local_rank: 1)
  exitcode  : -9 (pid: 466)
srun: error: node7: tasks 3,5-6: Killed
[rank2]: RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=ALLREDUCE, TensorShape=[65536], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda)), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=_ALLGATHER_BASE, TensorShape=[65536], TensorDtypes=Float).
`

func TestEvents(t *testing.T) {
	if !Match([]byte(sample)) {
		t.Error("not recognised")
	}
	l := Read("x", []byte(sample))
	by := map[Kind][]Event{}
	for _, e := range l.Events {
		by[e.Kind] = append(by[e.Kind], e)
	}
	check := func(ok bool, what string, k Kind) {
		t.Helper()
		if !ok {
			t.Errorf("%s: %+v", what, by[k])
		}
	}
	one := func(k Kind) Event {
		if len(by[k]) == 0 {
			return Event{}
		}
		return by[k][0]
	}
	e := one(Timeout)
	check(e.Rank == 0 && e.Seq == 9 && e.Op == "ALLREDUCE" && e.Line == 2, "timeout", Timeout)
	e = one(Status)
	check(e.Group == "3" && e.Desc == "dp" && e.Enqueued == 18 && e.Done == 16, "status", Status)
	e = one(DumpSignal)
	check(e.Rank == 2 && e.Enqueued == 8 && e.Done == 8, "dump signal", DumpSignal)
	e = one(Exception)
	check(e.Rank == 1 && e.Text == "ValueError: loss is NaN at step 8" && strings.Contains(e.Desc, "train_step"),
		"exception", Exception)
	e = one(InitStart)
	check(e.Comm == 0x74eabd16e3308350 && e.NRanks == 2 && e.PID == 465 && e.Host == "node2", "init", InitStart)
	e = one(PeerClosed)
	check(e.Peer == "node3" && e.PID == 1291 && e.Time > one(Timeout).Time, "closed", PeerClosed)
	e = one(Xid)
	check(e.Code == 43 && e.PID == 1296 && e.Bus == "0000:00:06", "xid", Xid)
	e = one(OOMKill)
	check(e.PID == 1297 && e.Host == "node1", "killed for memory", OOMKill)
	e = one(Joined)
	check(e.Enqueued == 3 && e.NRanks == 4, "joined", Joined)
	e = one(Desync)
	check(len(e.Ranks) == 2 && e.Ranks[0] == 5 && e.Seq == 9, "desync", Desync)
	check(len(by[Exit]) == 2 && by[Exit][0].Rank == 3 && by[Exit][0].Code == -9 && len(by[Exit][1].Ranks) == 3, "exit",
		Exit)
	check(len(by[Mismatch]) == 2 && by[Mismatch][1].Rank == 1 && by[Mismatch][1].Op == "_ALLGATHER_BASE" &&
		by[Mismatch][0].Op == "ALLREDUCE", "mismatch", Mismatch)
	if l.First == 0 || l.Last <= l.First {
		t.Errorf("times %d to %d", l.First, l.Last)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("[1,3]<stderr>:[rank3]: Traceback (most recent call last):\n3: [rank"))
	f.Fuzz(func(_ *testing.T, data []byte) { Read("fuzz", data) })
}

// TestShortLists: lines that name very many ranks each are kept, and their lists only as long as they are few.
func TestShortLists(t *testing.T) {
	l := Read("x", []byte(strings.Repeat("srun: error: h: tasks 0-65000: Killed\n", 300)))
	ranks := 0
	for _, e := range l.Events {
		ranks += cap(e.Ranks)
	}
	if len(l.Events) != 300 || ranks < 65000 || ranks > 2*maxListed {
		t.Errorf("%d lines keep %d ranks", len(l.Events), ranks)
	}
}

// TestWrapped: what tells of a rank is found behind whatever a runtime, a launcher or a collector put before the line.
func TestWrapped(t *testing.T) {
	const text = "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/w/train.py\", line 10, in <module>\n" +
		"[rank2]: ValueError: shapes do not match\n"
	for _, before := range []string{
		"", "2026-11-16T02:35:23.156796868Z ", "2026-11-16T02:35:23.156+01:00 stderr F ", "[pod/train-0/main] ",
		"[pod/train-0/main] 2026-11-16T02:35:23.1Z ", "trainer-0  | ", "0|bash run-5  | (Worker pid=6) ",
		"(Worker pid=12, ip=10.0.0.1) ",
		"Nov 16 02:35:23 n1 train[991]: ", "2026-11-16T02:35:23.156796+00:00 n1 train[991]: ",
		"\x1b[36m(Worker pid=3)\x1b[0m ",
	} {
		l := Read("job.log", []byte(before+strings.Join(strings.SplitAfter(text, "\n")[:3], before)))
		if len(l.Events) != 1 || l.Events[0].Kind != Exception || l.Events[0].Rank != 2 ||
			l.Events[0].Text != "ValueError: shapes do not match" {
			t.Errorf("%q: %+v", before, l.Events)
		}
	}
	for _, line := range []string{"epoch | loss", "rank 3 | 7", "[podium] x", "2026-11-16T02:35:23 plain line of text"} {
		if f := new(Former).New(line); f.from != 0 {
			t.Errorf("%q became %q", line, line[f.from:])
		}
	}
}
