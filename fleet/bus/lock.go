package bus

import (
	"fmt"
	"os"

	"busbar.dev/internal/osdep"
)

// lock takes a file for this process until the returned function is called, or the process
// ends. Without patience it is an error when another process has it.
func lock(path string, patient bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = osdep.Lock(f, patient)
	switch {
	case err == nil:
		return func() { f.Close() }, nil
	case osdep.Locked(err):
		err = fmt.Errorf("%w; end it, or name another folder", ErrInUse)
	}
	f.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}
