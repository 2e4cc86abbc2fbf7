//go:build cgo && linux

package memlimit

import (
	"math"
	"os"
	"syscall"
)

// OneArena starts the program anew with MALLOC_ARENA_MAX=1 and small stacks where addresses are bounded (ulimit -v) and
// C's library is linked: it would take 64 MiB of addresses for each thread and 8 MiB for its stack, and they would be
// gone before anybody can count them. Where that cannot be done the program goes on.
func OneArena() {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &r) != nil || r.Cur >= math.MaxInt64 || os.Getenv("MALLOC_ARENA_MAX") != "" {
		return
	}
	if self, err := os.Executable(); err == nil {
		var stack syscall.Rlimit
		if syscall.Getrlimit(syscall.RLIMIT_STACK, &stack) == nil {
			stack.Cur = min(stack.Cur, 1<<20)
			_ = syscall.Setrlimit(syscall.RLIMIT_STACK, &stack)
		}
		_ = syscall.Exec(self, os.Args, append(os.Environ(), "MALLOC_ARENA_MAX=1"))
	}
}
