package bus

import (
	"errors"
	"fmt"
	"os"

	"busbar.dev/internal/osdep"
)

// ErrInUse tells that another process has a folder that only one may have.
var ErrInUse = errors.New("another process uses this folder")

// Lock takes a file for this process until the returned function is called, or the process ends. Where another process
// has it, it waits or is an error.
func Lock(path string, wait bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = osdep.Lock(f, wait); err == nil {
		return func() { f.Close() }, nil
	}
	f.Close()
	if osdep.Locked(err) {
		err = fmt.Errorf("%w; end it, or name another folder with --data", ErrInUse)
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}
