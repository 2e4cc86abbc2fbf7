package synth

import (
	"fmt"
	"strings"
)

// What PyTorch, its launcher and the kernel print about a job, in their forms.

// Steps are a rank's lines about its training steps, each so many seconds long but for some thousandths.
func (j *Job) Steps(rank, n int, seconds float64) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[rank%d]: rank %d step %d/%d loss %.3f step time %.3f s\n", rank, rank, i+1, n, 9.5/float64(i+2),
			seconds*(1+0.004*float64((i+rank)%3)))
	}
	return b.String()
}

// Watchdog is what PyTorch prints when a rank waited for too long in a collective.
func (j *Job) Watchdog(rank, seq int, op string) string {
	return fmt.Sprintf("[rank%d]:[E203 04:15:%02d.123456789 ProcessGroupNCCL.cpp:685] [Rank %d] Watchdog caught "+
		"collective operation timeout: WorkNCCL(SeqNum=%d, OpType=%s, NumelIn=1048576, NumelOut=1048576, "+
		"Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n",
		rank, rank%60, rank, seq, op)
}

// Queued is how many collectives a rank has waiting.
func (j *Job) Queued(rank, n int) string {
	return fmt.Sprintf("[rank%d]:[E203 04:15:%02d.223456789 ProcessGroupNCCL.cpp:1740] [PG ID 0 PG GUID 0 Rank %d] "+
		"workMetaList_.size() = %d\n", rank, rank%60, rank, n)
}

// Summary is torchrun's about the rank that failed first.
func (j *Job) Summary(rank, code int) string {
	return fmt.Sprintf("Root Cause (first observed failure):\n[0]:\n  time      : 2031-02-03_04:15:00\n  host      : "+
		"%s\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n  error_file: <N/A>\n",
		j.HostOf(rank), rank, rank%j.PerNode, code, pid(rank))
}

// Environment are settings as env prints them.
func (j *Job) Environment() string {
	return fmt.Sprintf("MASTER_ADDR=%s\nMASTER_PORT=29500\nWORLD_SIZE=%d\n", j.Host(0), j.Ranks())
}

// Kernel is the kernel's log of a host that starts and loads its drivers.
func (j *Job) Kernel(node int) string {
	return fmt.Sprintf("%[1]s kernel: [    0.000000] %[2]s\n%[1]s kernel: [   12.310000] nvidia: module license "+
		"'NVIDIA' taints kernel.\n%[1]s kernel: [   14.020000] mlx5_core 0000:07:00.0: Port module event: module 0, Cable "+
		"plugged\n", j.Host(node), Source)
}

// KernelXid is the driver's report of a fault of a GPU.
func (j *Job) KernelXid(rank, xid int, text string) string {
	return fmt.Sprintf("%s kernel: [ 9123.400000] NVRM: Xid (PCI:0000:%02x:00): %d, pid=%d, name=python, %s\n",
		j.HostOf(rank), Bus(rank%j.PerNode), xid, pid(rank), text)
}
