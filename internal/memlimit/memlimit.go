// Package memlimit finds out how much memory a process may use before the kernel ends it.
package memlimit

import (
	"io/fs"
	"math"
	"os"
	"path"
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
	root := os.DirFS("/")
	if kib, ok := field(root, "proc/meminfo", "MemTotal:"); ok {
		least(kib<<10, 9)
	}
	least(group(root), 9)
	if n, ok := osdep.AddressLimit(); ok {
		least(max(n-addresses(), 1<<20), 4)
	}
	if limit == math.MaxInt64 {
		return 0
	}
	debug.SetMemoryLimit(limit)
	return limit
}

// Free is what the machine can give to new programs: its free memory, or what the bounds of the control groups of this
// process leave of it. Of says who sets that bound; "" where nobody says.
func Free(root fs.FS) (free int64, of string) {
	if kib, found := field(root, "proc/meminfo", "MemAvailable:"); found {
		free, of = kib<<10, "this host"
	}
	eachGroup(root, func(dir string, f groupFiles, limit int64) {
		used, ok := number(root, path.Join(dir, f.used))
		if !ok {
			return
		}
		// Files that were only read do not count, for they give way.
		cache, _ := field(root, path.Join(dir, "memory.stat"), f.cache)
		if left := max(0, limit-used+cache); of == "" || left < free {
			free, of = left, "the control group of this process"
		}
	})
	return free, of
}

// group is the bound of the control groups that the process is in, 0 for none.
func group(root fs.FS) (least int64) {
	eachGroup(root, func(_ string, _ groupFiles, limit int64) {
		if least == 0 || limit < least {
			least = limit
		}
	})
	return least
}

// groupFiles are where a version of control groups keeps its figures.
type groupFiles struct{ top, limit, used, cache string }

// eachGroup is told the folder and the bound of every control group that bounds this process. A bound holds for all
// below it. Within a container the path may be that of the host outside, of which only the top is seen.
func eachGroup(root fs.FS, tell func(dir string, f groupFiles, limit int64)) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup") // where there is none nothing is bound
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		f := groupFiles{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
		switch {
		case strings.Contains(part[1], "memory"):
			f = groupFiles{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
		case part[1] != "":
			continue
		}
		for at := path.Clean("/" + part[2]); ; at = path.Dir(at) {
			dir := path.Join(f.top, at)
			if limit, ok := number(root, path.Join(dir, f.limit)); ok && limit > 0 && limit < 1<<60 { // a great number is none
				tell(dir, f, limit)
			}
			if at == "/" {
				break
			}
		}
	}
}

// number is a file that holds one.
func number(root fs.FS, name string) (int64, bool) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64) // "max" is none
	return n, err == nil
}

// field is the number after a name, in a file of one name a line.
func field(root fs.FS, file, name string) (int64, bool) {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
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
