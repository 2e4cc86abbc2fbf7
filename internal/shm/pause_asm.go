//go:build amd64 || arm64

package shm

// pause tells the processor n times (at least once) that this is a spinning wait.
func pause(n uint32)
