//go:build !cgo || !linux

package memlimit

// OneArena does nothing where C's library is not linked.
func OneArena() {}
