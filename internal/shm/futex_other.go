//go:build !linux

package shm

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Without a futex, waiting naps: there are no segments here, but flags in plain
// memory still work.

func sleepOn(*atomic.Uint32, uint32, time.Duration) { time.Sleep(50 * time.Microsecond) }

func wake(*atomic.Uint32) {}

func yield() { runtime.Gosched() }
