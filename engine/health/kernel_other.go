//go:build !linux

package health

import (
	"context"
	"errors"
	"time"
)

// KernelLog reads the messages that the kernel keeps, on Linux.
func KernelLog(context.Context) ([]byte, time.Duration, error) {
	return nil, 0, errors.New("the kernel's log is read on Linux only")
}
