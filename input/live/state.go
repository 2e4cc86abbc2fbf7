package live

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// stateFiles are what the kernel says about a machine that matters to jobs.
var stateFiles = []string{"/proc/cmdline", "/proc/modules", "/proc/self/limits", "/proc/self/status"}

// State is what the kernel and the environment say about this machine, by where it comes from, in the words of the
// tools that print it. It only reads.
func State() (names, texts []string) {
	for _, name := range stateFiles {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // another system, or not for us to see
		}
		names, texts = append(names, name), append(texts, liveText(name, string(data)))
	}
	var list []string
	for _, kv := range os.Environ() {
		if slices.ContainsFunc(settings, func(p string) bool { return strings.HasPrefix(kv, p) }) {
			list = append(list, kv)
		}
	}
	return append(names, "environment"), append(texts, strings.Join(list, "\n")+"\n"+shmOf("/dev/shm"))
}

// settings begin the names of variables that matter to collectives; the others of an environment are nobody's business.
var settings = strings.Fields("NCCL_ RCCL_ UCX_ GLOO_ FI_ OFI_NCCL_ MASTER_ TORCH_NCCL_ CUDA_ HSA_ WORLD_SIZE")

var (
	lockedMemory = lazyre.New(`(?m)^Max locked memory\s+(\d+)`)
	cpusAllowed  = lazyre.New(`(?m)^Cpus_allowed_list.*$`)
)

// liveText writes what the kernel prints in the form that tools print.
func liveText(name, text string) string {
	switch name {
	case "/proc/self/limits":
		m := lockedMemory.FindStringSubmatch(text)
		if m == nil {
			return ""
		}
		n, _ := strconv.ParseUint(m[1], 10, 64)
		return fmt.Sprintf("max locked memory (kbytes, -l) %d\n", n/1024)
	case "/proc/self/status":
		return cpusAllowed.FindString(text) + "\n"
	}
	return text
}
