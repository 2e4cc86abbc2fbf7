package shm

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2), without FUTEX_PRIVATE_FLAG: the memory is shared.
const (
	futexWait = 0
	futexWake = 1
)

// sleepOn sleeps until the word is no longer old, someone wakes it, or the time is
// over. The caller looks which. The call goes through the scheduler's gates, so
// that other goroutines run meanwhile.
func sleepOn(word *atomic.Uint32, old uint32, limit time.Duration) {
	ts := unix.NsecToTimespec(int64(limit))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(old), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// wake wakes all that sleep on the word.
func wake(word *atomic.Uint32) {
	const all = 1<<31 - 1
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, all, 0, 0, 0)
}

// yield lets another process have the processor.
func yield() {
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
