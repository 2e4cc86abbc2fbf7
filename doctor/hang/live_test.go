package hang

import (
	"fmt"
	"slices"
	"testing"

	"busbar.dev/input/procs"
	"busbar.dev/internal/test/synth/livejob"
)

// TestProcesses tells stopped, killed and ended processes of this machine apart, with what the rest of the job says.
func TestProcesses(t *testing.T) {
	for _, x := range []struct {
		state byte
		code  int
		fault livejob.Fault
		want  Kind
	}{
		{'T', 0, livejob.Stopped, Stopped},
		{0, 0, livejob.Killed, Killed},
		{'Z', -9, livejob.Killed, Killed},
		{'Z', 1, livejob.Killed, Exited},
		{'S', 0, livejob.Late, Late},
	} {
		j := &livejob.Job{Ranks: 8, TP: 2, Steps: 9, Fault: x.fault, Culprit: 5}
		c := NewCase()
		for k := range 2 {
			if _, err := c.Add(fmt.Sprintf("ras.%d.json", k),
				[]byte(j.RAS(fmt.Sprintf("2026-11-16 02:00:%02d", 5+k), true))); err != nil {
				t.Fatal(err)
			}
		}
		var list []procs.Process
		for r := range j.Ranks {
			p := procs.Process{PID: newJob(c).procs[r].pid, Rank: r, World: j.Ranks, State: 'S'}
			if r == j.Culprit {
				if p.State, p.Code = x.state, x.code; x.state == 0 {
					continue
				}
			}
			list = append(list, p)
		}
		c.AddProcesses(list)
		if v := c.Judge(); v.Kind != x.want || len(v.Ranks) != 1 || v.Ranks[0].Rank != j.Culprit {
			t.Errorf("state %q, code %d: %s %v (%s), expected %s of rank %d", x.state, x.code, v.Kind, v.Ranks, v.Text, x.want,
				j.Culprit)
		}
	}
}

// TestNotCome names the rank that is elsewhere while the others wait for the first communicator, and nobody where that
// cannot be told.
func TestNotCome(t *testing.T) {
	for _, x := range []struct {
		waits []procs.Wait
		want  Kind
	}{
		{[]procs.Wait{procs.WaitElse, procs.WaitSocket, procs.WaitSocket, procs.WaitSocket}, NeverJoined},
		{[]procs.Wait{procs.WaitElse, procs.WaitUnknown, procs.WaitSocket, procs.WaitSocket}, UnknownKind},
		{[]procs.Wait{procs.WaitElse, procs.WaitElse, procs.WaitSocket, procs.WaitSocket}, UnknownKind},
		{[]procs.Wait{procs.WaitNone, procs.WaitNone, procs.WaitNone, procs.WaitNone}, UnknownKind},
	} {
		c := NewCase()
		var list []procs.Process
		for r, w := range x.waits {
			list = append(list, procs.Process{PID: 10 + r, Rank: r, World: len(x.waits), State: 'S', Waits: w})
		}
		c.AddProcesses(list)
		v := c.Judge()
		if v.Kind != x.want || x.want == NeverJoined && (v.State != Stalled || len(v.Ranks) != 1 || v.Ranks[0].Rank != 0) {
			t.Errorf("%v: %s %s %v %s", x.waits, v.State, v.Kind, v.Ranks, v.Text)
		}
	}
}

// TestAliveAndSilent reads logs in which two ranks noticed that somebody is gone: of the other two one left its
// program, and one runs and has not noticed anything yet.
func TestAliveAndSilent(t *testing.T) {
	c := NewCase()
	gone := "[rank%d]:[E1116 23:08:10.%d ProcessGroupNCCL.cpp:612] [Rank %[1]d] Collective WorkNCCL(SeqNum=22, " +
		"OpType=ALLREDUCE, NumelIn=131584, NumelOut=131584, Timeout(ms)=120000) raised the following async exception: NCCL " +
		"error: remote process exited or there was a network error, NCCL version 2.28.9\n"
	logs := []string{
		"[rank0]:[W1116 23:08:09.964963827 ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was not " +
			"called before program exit, which can leak resources.\n",
		fmt.Sprintf(gone, 1, 100000001), fmt.Sprintf(gone, 2, 100000002),
		"[rank3]:[I1116 23:08:01.000000001 ProcessGroupNCCL.cpp:980] [PG ID 0 PG GUID 0 Rank 3] ProcessGroupNCCL " +
			"initialized\n",
	}
	for r, text := range logs {
		if _, err := c.Add(fmt.Sprintf("logs/rank_%d.log", r), []byte(text)); err != nil {
			t.Fatal(err)
		}
		c.AddProcesses([]procs.Process{{PID: 487 + r, Rank: r, World: 4, State: 'S'}})
	}
	if v := c.Judge(); v.Kind != Exited || !slices.Equal(ranksOf(v), []int{0}) {
		t.Errorf("%s %s %v: %s", v.State, v.Kind, ranksOf(v), v.Text)
	}
}

// TestNotBegun reads logs of ranks of which one has not called NCCL yet.
func TestNotBegun(t *testing.T) {
	c := NewCase()
	for r := range 4 {
		text := fmt.Sprintf("[rank%d]:[I1117 02:17:01.000000001 ProcessGroupNCCL.cpp:980] [PG ID 0 PG GUID 0 Rank %[1]d] "+
			"ProcessGroupNCCL initialized\n", r)
		if r != 3 {
			text += fmt.Sprintf("vm:%d:%[1]d [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\nvm:%[1]d:%[1]d [0] NCCL INFO "+
				"Comm config Blocking set to 1\n", 1624+r)
		}
		if _, err := c.Add(fmt.Sprintf("logs/rank_%d.log", r), []byte(text)); err != nil {
			t.Fatal(err)
		}
		c.AddProcesses([]procs.Process{{PID: 1624 + r, Rank: r, World: 4, State: 'S'}})
	}
	if v := c.Judge(); v.Kind != NeverJoined || v.State != Stalled || !slices.Equal(ranksOf(v), []int{3}) {
		t.Errorf("%s %s %v: %s", v.State, v.Kind, ranksOf(v), v.Text)
	}
}
