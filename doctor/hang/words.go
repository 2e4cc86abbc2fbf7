package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/input/joblog"
)

// title is the verdict in one line.
func (v *Verdict) title() string {
	var ranks []int
	for _, r := range v.Ranks {
		ranks = append(ranks, r.Rank)
	}
	who := "the job"
	switch {
	case len(ranks) > 0:
		who = rankList(ranks)
	case len(v.Nodes) > 0:
		who = strings.Join(v.Nodes, ", ")
	}
	switch v.Kind {
	case Late:
		if v.State == Slow {
			return who + " slows every step"
		}
		return who + " has not launched the collective that the others wait in"
	case Exited:
		return who + " exited"
	case Killed:
		return who + " was killed"
	case Stopped:
		return who + " is stopped"
	case NoReport:
		return "no report from " + who + ", which the others wait for"
	case OpMismatch:
		return who + " calls a different collective"
	case SizeMismatch:
		return who + " calls a collective with a different size or type"
	case NeverJoined:
		return who + " did not join"
	case Order:
		return who + " launches collectives of two communicators in the opposite order"
	case Kernel:
		return "a GPU kernel does not end on " + who
	case GPUFault:
		return "GPU error on " + who
	case Network:
		return "the network does not carry a collective"
	case Checkpoint:
		return who + " writes a checkpoint; the others wait"
	case DataLoading:
		return who + " waits for its data loader"
	case Compiling:
		return who + " compiles; the others wait"
	case Evaluation:
		return who + " evaluates; the others wait"
	}
	return "the job waits, and nothing says for whom"
}

// Title is the verdict in one line, for people.
func (v *Verdict) Title() string {
	switch v.State {
	case Healthy:
		return "no hang found"
	case Unknown:
		if len(v.Waiting) > 0 {
			return "ranks wait, and for whom is not known"
		}
		return "nothing to judge by"
	}
	return string(v.State) + ": " + v.title()
}

// advise says what to do next, with the commands to do it.
func (x *judge) advise(v *Verdict) {
	v.Text = sentence(v.Text)
	host, pid := "", "PID"
	if len(v.Nodes) > 0 {
		host = v.Nodes[0]
	}
	if len(v.Ranks) > 0 {
		host = v.Ranks[0].Host
		if v.Ranks[0].PID > 0 {
			pid = strconv.Itoa(v.Ranks[0].PID)
		}
	}
	on := func(cmd string) string {
		if host == "" {
			return cmd
		}
		return "ssh " + host + " " + cmd
	}
	look := on("py-spy dump --pid " + pid)
	if host == "" {
		look += " on the rank's node"
	}
	switch v.Kind {
	case Late:
		switch {
		case v.Stack == "" && len(x.log.by[joblog.Down])+len(x.log.by[joblog.Exit]) > 0:
			v.Next = append(v.Next, "The job has ended: read the rank's own output up to the timeout. Next time, while it "+
				"hangs: "+look)
		case v.Stack == "":
			v.Next = append(v.Next, "See what the rank does: "+look)
		default:
			v.Next = append(v.Next,
				"The rank is in "+v.Stack+": fix that, or raise the process group's timeout if it is meant to take long.")
		}
		if v.State == Slow {
			v.Next = append(v.Next, "Compare the rank's clocks, temperature and CPU with its neighbours: "+
				on("nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE"))
		}
	case DataLoading:
		v.Next = append(v.Next, "A worker of the data loader does not return. See the workers: "+
			strings.Replace(look, "py-spy dump", "py-spy dump --subprocesses", 1))
	case Checkpoint, Compiling, Evaluation:
		v.Next = append(v.Next, "Wait: this ends by itself. If it takes longer than the timeout, raise it (timeout= of "+
			"init_process_group) or let all ranks do it at once.")
	case Stopped:
		v.Next = append(v.Next, "Continue the process: "+on("kill -CONT "+pid),
			"If it was frozen by the system (cgroup, debugger, a node that swaps), look there: "+on("dmesg -T | tail"))
	case Killed:
		v.Next = append(v.Next, "Find out who killed it: "+on("dmesg -T | grep -iE 'killed process|oom'"),
			"Restart from the last checkpoint; the other ranks cannot go on.")
	case Exited:
		v.Next = append(v.Next, "Read the rank's own log; the errors of other ranks follow from it.",
			"Restart from the last checkpoint.")
	case NoReport:
		x.adviseNoReport(v, on, pid)
	case OpMismatch, SizeMismatch:
		v.Next = append(v.Next, "Find the branch that this rank alone takes (a condition on its rank, its data or its "+
			"loss). TORCH_DISTRIBUTED_DEBUG=DETAIL stops a run at the first such call.")
	case Order:
		v.Next = append(v.Next, "Launch collectives of different groups in the same order on all ranks.")
	case NeverJoined:
		v.Next = append(v.Next, "See whether the rank runs and what it does: "+look,
			"All members of a group must use it; new_group must be called by all ranks.")
	case Kernel:
		v.Next = append(v.Next, "See the kernel that runs: "+on("cuda-gdb -p "+pid), "Run with TORCH_NCCL_ENABLE_TIMING=1: "+
			"the recorder then tells which rank has not started the collective.")
	case GPUFault:
		v.Next = append(v.Next, x.drain(host, "GPU error"), "Xid 13, 31 and 43 are mostly the program's own error: run it "+
			"with CUDA_LAUNCH_BLOCKING=1; others are the hardware's.")
	case Network:
		v.Next = append(v.Next, "Test the links of the named hosts: busbar bench pairs, ibstat, ethtool -S.",
			x.drain(host, "network"))
	}
	if v.State == Unknown {
		v.Next = append(v.Next, "Ask the job: busbar hang --ras HOST, or read its dumps: busbar hang DIR "+
			"(TORCH_FR_DUMP_TEMP_FILE, default /tmp/nccl_trace_rank_N).",
			"Give the logs of all ranks, not of one: busbar hang LOGS. For what one log says by itself: busbar doctor LOG.")
	}
	if v.State == Hung && slices.Contains([]Kind{Killed, Stopped, GPUFault, Kernel}, v.Kind) && v.Kind != GPUFault {
		v.Next = append(v.Next, x.drain(host, string(v.Kind)))
	}
	if v.Next == nil {
		v.Next = []string{}
	}
}

// drain is the command that keeps jobs off a node.
func (x *judge) drain(host, why string) string {
	host = cmp.Or(host, "NODE")
	return fmt.Sprintf("If the node is to blame, drain it: scontrol update nodename=%s state=drain reason=%q, or "+
		"kubectl cordon %s", host, why, host)
}

// sentence gives a text a capital and a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
