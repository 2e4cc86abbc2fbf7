// Package memlimit finds out how much memory a process may use before the kernel ends it.
package memlimit

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"busbar.dev/internal/osdep"
)

// Set has the collector keep within what the process may use, and returns that in bytes: GOMEMLIMIT where it is set,
// else nine tenths of the least of the control group's bound and the machine's memory, and two fifths of what a bound
// on addresses (ulimit -v) leaves: Go reserves more than a gigabyte of those at its start, takes them in pieces of 64
// MiB, threads take some each, and none are given back. 0 is no bound that is known.
func Set() int64 {
	if given := debug.SetMemoryLimit(-1); given != math.MaxInt64 {
		return given
	}
	limit := int64(math.MaxInt64)
	least := func(n int64, tenths int64) {
		if n > 0 && n < math.MaxInt64/10 {
			limit = min(limit, n/10*tenths)
		}
	}
	least(machine(), 9)
	least(group("/sys/fs/cgroup", "/proc/self/cgroup"), 9)
	if n, ok := osdep.AddressLimit(); ok {
		least(max(n-addresses(), 1<<20), 4)
	}
	if limit == math.MaxInt64 {
		return 0
	}
	debug.SetMemoryLimit(limit)
	return limit
}

// group is the bound of the control groups that the process is in, 0 for none.
func group(root, self string) int64 {
	least := int64(0)
	look := func(file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			return
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is none
		if err == nil && n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[0] == "0": // version 2: each group above bounds it too
			for dir := path.Clean("/" + part[2]); ; dir = path.Dir(dir) { // of Linux, also where other separators are usual
				look(filepath.Join(root, dir, "memory.max"))
				if dir == "/" {
					break
				}
			}
		case strings.Contains(part[1], "memory"):
			look(filepath.Join(root, "memory", part[2], "memory.limit_in_bytes"))
			look(filepath.Join(root, "memory", "memory.limit_in_bytes")) // as a container sees its own
		}
	}
	return least
}

// addresses is how many bytes of addresses the process has, 0 where the kernel does not say.
func addresses() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseInt(pages, 10, 64)
	return n * int64(os.Getpagesize())
}

// machine is the machine's memory, 0 where the kernel does not say.
func machine() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}
