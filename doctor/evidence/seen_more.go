package evidence

import (
	"strings"
	"unicode/utf8"

	"busbar.dev/internal/lazyre"
)

// What is seen less often, or only tells something beside another line.
const (
	GIDInUse    Kind = "gid-in-use"
	TestRank    Kind = "test-rank"
	TestHeader  Kind = "test-header"
	Launched    Kind = "launched"
	BadOrdinal  Kind = "bad-ordinal"
	TooNew      Kind = "too-new"
	NoFamily    Kind = "no-family"
	IPCFailure  Kind = "ipc-failure"
	BARFull     Kind = "bar-full"
	Throttled   Kind = "throttled"
	ArpFull     Kind = "arp-full"
	NoPorts     Kind = "no-ports"
	NoThreads   Kind = "no-threads"
	DriverMix   Kind = "driver-mix"
	NoLinkSpeed Kind = "no-link-speed"
	CUMemFailed Kind = "cumem-failed"
)

// launchers start processes; processes is how they are told how many.
var (
	launchers = lazyre.New(`(?:mpirun|mpiexec|srun)\b`)
	processes = lazyre.New(`\s-(?:np|n|-ntasks)[ =](\d+)\b`)
)

// launched reads "mpirun -np 16 …": the number stands among a launcher's first
// arguments. One pattern for both would take a millisecond for a long command.
func launched(g []string) ([]string, bool) {
	for _, at := range launchers.FindAllStringIndex(g[0], -1) {
		rest := g[0][at[1]:]
		if m := processes.FindStringSubmatchIndex(rest); m != nil && utf8.RuneCountInString(rest[:m[0]]) <= 200 {
			return []string{rest[m[2]:m[3]]}, true
		}
	}
	return nil, false
}

// objects names the call behind an object that could not be made.
func objects(g []string) ([]string, bool) {
	call := map[string]string{
		"completion queue": "ibv_create_cq", "queue pair": "ibv_create_qp", "protection domain": "ibv_alloc_pd",
		"memory region": "ibv_reg_mr",
	}[strings.ToLower(g[0])]
	return []string{call, ""}, call != ""
}

// gidClass tells addresses of RoCE apart: link-local ones are not routed.
func gidClass(g []string) ([]string, bool) {
	switch low := strings.ToLower(g[0]); {
	case strings.HasPrefix(low, "fe80:"):
		return []string{"link-local"}, true
	case strings.HasPrefix(low, "::ffff:"):
		return []string{"ipv4"}, true
	}
	return []string{"global"}, true
}
