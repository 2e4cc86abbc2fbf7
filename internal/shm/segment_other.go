//go:build !linux

package shm

import (
	"fmt"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("shared memory is not supported on %s", runtime.GOOS)
}

// Create is not supported here.
func Create(int64) (*Segment, error) { return nil, unsupported() }

// Open is not supported here.
func Open(Handle, int64) (*Segment, error) { return nil, unsupported() }

// Settle is not supported here.
func (s *Segment) Settle() error { return unsupported() }

// Release is not supported here.
func (s *Segment) Release() error { return unsupported() }

// Reserve is not supported here.
func (s *Segment) Reserve() error { return unsupported() }

// Close is not supported here.
func (s *Segment) Close() error { return unsupported() }
