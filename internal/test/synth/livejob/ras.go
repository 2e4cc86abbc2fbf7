package livejob

import (
	"fmt"
	"strings"
)

// opIndex is where RAS counts a collective.
var opIndex = map[string]int{"_all_gather_base": 2, "_reduce_scatter_base": 3, "all_reduce": 4}

var opNames = [5]string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// address and pid are a rank's place: eight ranks a node.
func address(rank int) string { return fmt.Sprintf("10.0.%d.%d", rank/8/250, rank/8%250+1) }
func pid(rank int) int        { return 10000 + rank }

// RAS is a RAS answer as JSON. broken leaves out the comma that NCCL up to 2.28.9 forgets.
func (j *Job) RAS(clock string, broken bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 13000,\n  \"cuda_driver_version\": "+
		"13000,\n  \"timestamp\": \"%s\",\n", clock)
	type comm struct {
		id      int
		members []int
	}
	var comms []comm
	seen := map[int]bool{}
	for r := range j.Ranks {
		if r >= j.TP && r%j.TP != 0 {
			continue // its groups were met before
		}
		ids, members := j.Groups(r)
		for i := range ids {
			if !seen[ids[i]] {
				seen[ids[i]] = true
				comms = append(comms, comm{ids[i], members[i]})
			}
		}
	}
	counts := make([]map[int]*[5]int, j.Ranks)
	for r := range j.Ranks {
		counts[r] = map[int]*[5]int{}
		for _, e := range j.Entries(r) {
			c := counts[r][e.Group]
			if c == nil {
				c = new([5]int)
				counts[r][e.Group] = c
			}
			c[opIndex[e.Op]]++
		}
	}
	fmt.Fprintf(&b, "  \"communicators_count\": %d,\n  \"communicators\": [\n", len(comms))
	gone := j.Fault == Killed || j.Fault == Stopped
	for i, c := range comms {
		if i > 0 {
			b.WriteString(",\n")
		}
		var here, missing []string
		for k, r := range c.members {
			place := fmt.Sprintf("        {\n          \"rank\": %d,\n          \"host\": \"%s\",\n          \"pid\": %d,\n   "+
				"       \"cuda_dev\": %d,\n          \"nvml_dev\": %d", k, address(r), pid(r), r%8, r%8)
			if gone && r == j.Culprit {
				comma := ","
				if broken {
					comma = ""
				}
				missing = append(missing, place+comma+"\n          \"status\": {\n            \"unresponsive\": true,\n          "+
					"  \"considered_dead\": false\n          }\n        }")
				continue
			}
			n := counts[r][c.id]
			if n == nil {
				n = new([5]int)
			}
			var ops []string
			for o, name := range opNames {
				ops = append(ops, fmt.Sprintf("            \"%s\": %d", name, n[o]))
			}
			failed := 0
			if j.Fault == Killed {
				failed = 6
			}
			here = append(here, place+fmt.Sprintf(",\n          \"status\": {\n            \"init_state\": 0,\n            "+
				"\"async_error\": %d,\n            \"finalize_called\": false,\n            \"destroy_flag\": false,\n           "+
				" \"abort_flag\": false\n          },\n          \"collective_counts\": {\n", failed)+strings.Join(ops, ",\n")+
				"\n          }\n        }")
		}
		fmt.Fprintf(&b, "    {\n      \"hash\": \"0x%x\",\n      \"secondary_hash\": \"0x1:0x2\",\n      \"size\": %d,\n   "+
			"   \"ranks_count\": %d,\n      \"missing_ranks_count\": %d,\n      \"ranks\": [\n%s\n      ],\n      "+
			"\"missing_ranks\": [\n%s\n      ]\n    }",
			0x1000+c.id, len(c.members), len(here), len(missing), strings.Join(here, ",\n"), strings.Join(missing, ",\n"))
	}
	b.WriteString("\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.001,\n    \"timeouts_count\": 0\n  }\n}\n")
	return b.String()
}

// RASText is the text of VERBOSE STATUS for a rank that is late.
func (j *Job) RASText() string {
	per := (j.Ranks - 1) / max(1, (j.Ranks+7)/8)
	text := fmt.Sprintf("NCCL version 2.27.3 compiled with CUDA 12.8\nCUDA runtime version 12080, driver version 12080\n"+
		"\nJob summary\n===========\n\n"+
		"  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n%7d  "+
		"%9d  %11d  %9d  %7d\n\nCommunicators... (0.00s)\n=============\n\n"+
		"Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n    #  in group  per comm  per node  "+
		"per comm  in group\n    0         1  %8d  %8d  %8d  %8d   RUNNING  MISMATCH\n\nErrors\n======\n\nWarnings\n"+
		"========\n\n",
		(j.Ranks+7)/8, per, 1, j.Ranks, j.Ranks, (j.Ranks+7)/8, per, j.Ranks, j.Ranks)
	r := j.Culprit
	text += fmt.Sprintf("#0-0 (%016x) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  %d "+
		"ranks have launched up to operation %d\n  Rank %d has launched up to operation %d -- GPU %d managed by process %d "+
		"on node %s\n\n",
		0x1000, j.Ranks-1, j.Steps, r, j.Steps-1, r%8, pid(r), address(r))
	return text
}

// Log is what a rank's output has: the watchdog of those that wait.
func (j *Job) Log(rank int) string {
	head := fmt.Sprintf("[W1116 02:00:%02d.000000000 WorkerServer.cpp:150] [c10d] Server listening\nstep 0 loss 1.0\n",
		rank%60)
	tag := fmt.Sprintf("[rank%d]:", rank)
	mine := rank == j.Culprit
	switch {
	case j.Fault == None, j.Fault == Size, mine && (j.Fault == Killed || j.Fault == Stopped):
		return head
	case j.Fault == Killed:
		return head + tag + "[E1116 02:10:00.000000001 ProcessGroupNCCL.cpp:612] [Rank 0] Collective WorkNCCL(SeqNum=9, " +
			"OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) raised the following async exception: NCCL error: " +
			"remote process exited or there was a network error, NCCL version 2.28.9\n" +
			tag + "[E1116 02:10:09.000000001 ProcessGroupNCCL.cpp:764] [Rank 0] To avoid data inconsistency, we are taking " +
			"the entire process down.\n"
	case mine && j.Fault == Late:
		return head + tag + fmt.Sprintf("[E1116 02:10:05.000000001 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID "+
			"0(default_pg) Rank %d] Received a dump signal due to a collective timeout from  rank 0 and we will try our best "+
			"to dump the debug info. Last enqueued NCCL work: %d, last completed NCCL work: %d.\n", rank, j.Steps-1, j.Steps-1)
	}
	return head + tag + fmt.Sprintf("[E1116 02:10:00.000000001 ProcessGroupNCCL.cpp:689] [Rank %d] Watchdog caught "+
		"collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=65536, NumelOut=65536, "+
		"Timeout(ms)=600000) ran for 600008 milliseconds before timing out.\n", rank, j.Steps) +
		tag + fmt.Sprintf("[E1116 02:10:05.000000001 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank %d] "+
		"Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. "+
		"Last enqueued NCCL work: %d, last completed NCCL work: %d.\n", rank, j.Steps, j.Steps-1)
}

// Stack is what faulthandler writes of a rank.
func (j *Job) Stack(rank int, function string) string {
	return fmt.Sprintf("Current thread 0x%016x (most recent call first):\n  File \"/job/train.py\", line 60 in %s\n  "+
		"File \"/job/train.py\", line 190 in main\n  File \"/job/train.py\", line 211 in <module>\n", 0x7f0000000000+rank,
		function)
}
