package evidence

import (
	"strconv"
	"strings"
)

// acs lists the bits that a bridge has set. Those that redirect send traffic
// between two devices below a switch up to the root complex.
func acs(g []string) ([]string, bool) {
	_, rest, _ := strings.Cut(g[0], "ACSCtl")
	var set []string
	for _, f := range strings.Fields(rest) {
		if bit, ok := strings.CutSuffix(f, "+"); ok && len(bit) < 20 {
			set = append(set, bit)
		}
	}
	return []string{strings.Join(set, " ")}, len(set) > 0
}

func degraded(g []string) ([]string, bool) {
	return []string{g[0], g[2]}, g[1] != "" || g[3] != ""
}

func iommuMode(g []string) ([]string, bool) {
	if strings.EqualFold(g[0], "passthrough") {
		return []string{"passthrough"}, true
	}
	return []string{"translated"}, true
}

// memlock gives the limit in KiB.
func memlock(g []string) ([]string, bool) { return []string{strings.ToLower(g[0])}, true }

// shmSize gives a size in MiB.
func shmSize(g []string) ([]string, bool) {
	s := strings.ToUpper(g[0])
	scale := 1.0 / (1 << 20)
	switch s[len(s)-1] {
	case 'K':
		scale, s = 1.0/1024, s[:len(s)-1]
	case 'M':
		scale, s = 1, s[:len(s)-1]
	case 'G':
		scale, s = 1024, s[:len(s)-1]
	case 'T':
		scale, s = 1<<20, s[:len(s)-1]
	default:
		if len(s) <= 7 { // df without -h counts blocks of 1 KiB
			scale = 1.0 / 1024
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, false
	}
	return []string{strconv.Itoa(int(v * scale))}, true
}

// shmFailure reports lines in which shared memory could not be had.
func shmFailure(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	if strings.Contains(low, "no such file") || strings.Contains(low, "(size 0)") {
		return nil, false // it is not there for this process; see ShmAbsent
	}
	for _, w := range []string{
		"fail", "error", "no space left", "could not", "cannot", "insufficient", "too small", "out of shared",
	} {
		if strings.Contains(low, w) {
			if strings.Contains(low, "unlink") {
				return nil, false // clearing up after another failure
			}
			return nil, true
		}
	}
	// A segment's name with its size is printed only when it could not be made.
	return nil, strings.Contains(low, "nccl-shm-") && strings.Contains(low, "(size ")
}

// nvls reports failures of multicast over NVLink switches.
func nvls(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	if !strings.Contains(low, "nvls") && !strings.Contains(low, "nvlink sharp") {
		return nil, false
	}
	for _, w := range []string{"fail", "warn", "error", "invalid"} {
		if strings.Contains(low, w) {
			_, text, _ := strings.Cut(low, "'")
			text, _, _ = strings.Cut(text, "'")
			return []string{text}, true
		}
	}
	return nil, false
}

// connectReasons are why a connection was not made.
var connectReasons = []struct{ words, name string }{
	{"connection refused", "refused"},
	{"no route to host", "unreachable"},
	{"network is unreachable", "unreachable"},
	{"host is unreachable", "unreachable"},
	{"connection timed out", "timeout"},
	{"connect timed out", "timeout"},
	{"software caused connection abort", "abort"},
	{"connection abort", "abort"},
	{"exceeded retries", "retries"},
	{"exceeded error retry", "retries"},
	{"failed to connect", "failed"},
	{"connect aborted", "abort"},
}

// connectError names why a connection was not made; one that is tried again is
// not an error yet.
func connectError(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	if strings.Contains(low, "client socket has failed") && strings.Contains(low, "refused") {
		return nil, false // tried again: the other side has not started yet
	}
	if strings.Contains(low, "retrying") && !strings.Contains(low, "exceeded") || strings.Contains(low, "ibv_") {
		return nil, false
	}
	if !strings.Contains(low, "connect") && !strings.Contains(low, "socket") {
		return nil, false
	}
	for _, r := range connectReasons {
		if strings.Contains(low, r.words) {
			return []string{r.name}, true
		}
	}
	return nil, false
}
