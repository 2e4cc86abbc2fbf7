package osdep

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Confine bounds this process and what it starts: to so many bytes of data beyond what it has, where that is not 0. It
// leaves no core dump, and when the machine has no memory left the kernel ends it before others.
func Confine(data int64) {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	text, _ := os.ReadFile("/proc/self/statm")
	var r syscall.Rlimit
	f := strings.Fields(string(text))
	if data == 0 || len(f) < 6 || syscall.Getrlimit(syscall.RLIMIT_DATA, &r) != nil {
		return
	}
	pages, _ := strconv.ParseInt(f[5], 10, 64)
	r.Cur = min(r.Max, uint64(pages*int64(os.Getpagesize())+data))
	r.Max = r.Cur
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &r)
}
