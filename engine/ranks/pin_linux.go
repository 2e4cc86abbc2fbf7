package ranks

import (
	"math/bits"
	"syscall"
	"unsafe"
)

// cores is a set of processors.
type cores [16]uint64

func threadCores() (c cores) {
	syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
	return c
}

func (c cores) use() {
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
}

// pinThread keeps the calling thread, which the goroutine should be locked to, and what it
// starts on the k-th of the processors that it may use; the function it returns undoes that.
// Two ranks that exchange messages otherwise end up on one processor.
func pinThread(k int) (undo func()) {
	all := threadCores()
	for w, x := range all {
		if n := bits.OnesCount64(x); k >= n {
			k -= n
			continue
		}
		for ; k > 0; k-- {
			x &= x - 1
		}
		var one cores
		one[w] = x & -x
		one.use()
		break
	}
	return all.use
}
