package evidence

import (
	"strings"

	"busbar.dev/internal/lazyre"
)

// seenProgram is what frameworks, launchers and the programs themselves print.
func seenProgram() []seen {
	return []seen{
		{
			kind: Watchdog, words: "collective operation timeout",
			pattern: `(?i)(?:\[Rank (?P<rank>\d+)\])?.{0,80}?collective operation timeout: WorkNCCL\(SeqNum=(\d+), OpType=(\w+)`,
		},
		{
			kind: Watchdog, words: "watchdog caught|nccl watchdog|watchdog thread",
			pattern: `(?i)(watchdog (?:caught|thread).{0,60}(?:timeout|terminated))`, take: none,
		},
		{kind: Watchdog, words: "nccl operations have failed or timed out", take: none},
		{
			kind: Watchdog, words: "watchdog got stuck|heartbeat monitor timed out",
			pattern: `(?:Rank (?P<rank>\d+)\] )?(?:ProcessGroupNCCL's watchdog got stuck for \d+|Heartbeat monitor timed out)`,
			take:    none,
		},
		{
			kind: Queued, words: "workmetalist_.size",
			pattern: `(?:Rank (?P<rank>\d+)\].{0,400}?)?workMetaList_\.size\(\) ?= ?(\d+)`,
		},
		{
			kind: Killed, words: "exitcode|signal 9|code 137",
			pattern: `(?i)exitcode\s*: -9\b|\bsignal 9 \(SIGKILL\)|\bexit(?:ed with)?(?: exit)? code 137\b|killed by signal 9`,
			take:    none,
		},
		{
			kind: KernelAssert, words: "device-side assert|assertion `",
			pattern: `(?i)device-side assert triggered|\.cuh?:\d+: .{0,200}assertion .{0,200}failed`, take: none,
		},
		{kind: TorchError, words: "ncclsystemerror|ncclunhandledcudaerror|ncclinternalerror|ncclremoteerror|ncclinvalidusage|ncclinvalidargument|distbackenderror|distnetworkerror|diststoreerror", pattern: `\b(ncclSystemError|ncclUnhandledCudaError|ncclInternalError|ncclRemoteError|ncclInvalidUsage|ncclInvalidArgument|DistBackendError|DistNetworkError|DistStoreError)\b`},
		{
			kind: TorchError, words: "unhandled system error|unhandled cuda error|unhandled nccl error",
			pattern: `(?i)unhandled (system|cuda|nccl) error`, take: unhandled,
		},
		{
			kind: Rendezvous, words: "server socket on|client socket has timed out|client socket has " +
				"failed|tcpstore|rendezvoustimeouterror|rendezvousconnectionerror|wait timeout after|socket timeout|waiting for " +
				"clients|clients joined|retrieving nccluniqueid|connect() timed out",
			pattern: `(?i)(waiting for clients|connect\(\) timed out|clients joined|retrieving ncclUniqueId.{0,120}got error|client socket has (?:timed out|failed(?:.{0,160}?refused)?)|server socket on .{0,60}timed out|Rendezvous(?:Timeout|Connection)Error|wait timeout after|TCPStore.{0,60}?(?:timed? ?out|fail)|Socket Timeout)`, take: unmet,
		},
		{kind: AddressInUse, words: "address already in use|eaddrinuse", take: none},
		{
			kind: Missing, words: "failed to pass|failed to reach|did not join|monitoredbarrier|missing ranks",
			pattern: `(?i)(?:ranks? ([\d, -]+) failed to (?:pass|reach)|missing ranks?:? ([\d, ]+)|ranks? ([\d, -]+) did not join)`, take: anyGroup,
		},
		{
			kind: Missing, words: "rank ",
			pattern: `(?i)\brank (\d+) (?:prints nothing|is missing|never (?:joins?|enters?|came|comes)|did not (?:join|come|enter|report)|does not respond)`, told: true,
		},
		{kind: Disagree, words: "mismatch between collectives", take: none},
		{
			kind: OutOfMemory, words: "out of memory|outofmemoryerror|cudaerrormemoryallocation|cuda_error_out_of_memory",
			pattern: `(?i)(CUDA out of memory|CUDA error: out of memory|OutOfMemoryError|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|Cuda failure (?:\d+ )?'out of memory')(.{0,800})`, take: outOfMemory,
		},
		{kind: BusError, words: "bus error|sigbus|exitcode: -7|exitcode : -7|signal 7", take: none},
		{kind: Crash, words: "segmentation fault|sigsegv|sigabrt|exitcode: -11|exitcode  : -11|core dumped", take: crash},
		{kind: Gloo, words: "connectfullmesh|gloo connect", take: none},
	}
}

func unhandled(g []string) ([]string, bool) {
	switch g[0] {
	case "system", "System":
		return []string{"ncclSystemError"}, true
	case "cuda", "CUDA", "Cuda":
		return []string{"ncclUnhandledCudaError"}, true
	}
	return []string{"unhandled"}, true
}

// outOfMemory leaves out a size that no tensor has: it was read from a message that
// came out of order.
func outOfMemory(g []string) ([]string, bool) {
	rest := g[len(g)-1]
	gpu, unused, hint := "", "", ""
	if m := oomGPU.FindStringSubmatch(rest); m != nil {
		gpu = m[1]
	}
	if m := oomUnused.FindStringSubmatch(rest); m != nil {
		unused = m[1]
	}
	if m := oomHint.FindStringSubmatch(rest); m != nil {
		hint = m[1]
	}
	return []string{gpu, unused, hint}, !strings.Contains(rest[:min(len(rest), 80)], "more than 1EB")
}

// What PyTorch says after it: on which GPU, how much of its memory lies idle, and the setting that it advises.
var (
	oomGPU    = lazyre.New(`\bGPU (\d{1,3})[ ;]`)
	oomUnused = lazyre.New(`\b([\d.]{1,8} [KMG]iB) is reserved by PyTorch but unallocated`)
	oomHint   = lazyre.New(`\b(PYTORCH(?:_CUDA)?_ALLOC_CONF=[\w:,.]{1,60}\w)`)
)

// unmet is what ended a rendezvous. A refused connection is tried again: ranks that
// start before the first one print it in every healthy job.
func unmet(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	// A store that ends with its host is a consequence of what ended the host.
	return nil, !strings.HasSuffix(low, "refused") && !strings.Contains(low, "recvvalue") &&
		!strings.Contains(low, "sendbytes")
}

// crash tells a process that broke from one that ended itself: PyTorch's watchdog
// aborts what it waits for.
func crash(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	if strings.Contains(low, "segmentation") || strings.Contains(low, "sigsegv") || strings.Contains(low, ": -11") {
		return []string{"segv"}, true
	}
	return []string{"abort"}, true
}
