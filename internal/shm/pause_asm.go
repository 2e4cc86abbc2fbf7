//go:build amd64 || arm64

package shm

// Pause tells the processor n times (at least once) that this is a spinning wait.
func Pause(n uint32)
