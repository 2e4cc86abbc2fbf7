package evidence

import (
	"strings"

	"busbar.dev/internal/lazyre"
)

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
