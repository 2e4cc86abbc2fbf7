//go:build unix

package bus

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a file for this process until the returned function is called, or the process
// ends. Without patience it is an error when another process has it.
func lock(path string, patient bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !patient {
		how |= unix.LOCK_NB
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		if err == unix.EWOULDBLOCK {
			return nil, fmt.Errorf("%s: %w; end it, or name another folder", path, ErrInUse)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
