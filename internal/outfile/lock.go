package outfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
)

// Lock holds a file for a process that reads it, changes it and writes it again, until unlock: others that lock it
// wait, and are told so by waits; not for ever, for who has it may be stopped. The lock is a file beside it, for a
// written file is another one; a killed process holds none.
func Lock(ctx context.Context, name string, waits func()) (unlock func(), err error) {
	target, _, through, err := destination(name)
	if err != nil || through {
		return func() {}, err
	}
	const longest = time.Minute
	end := time.Now().Add(longest)
	lock := filepath.Join(filepath.Dir(target), ".busbar-lock-"+filepath.Base(target))
	for told := false; ; {
		f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|osdep.NoFollow, 0o666)
		if err != nil {
			return nil, CannotWrite(name, err)
		}
		_ = f.Chmod(0o666) // of another user too, after this one's was killed
		busy := osdep.Locked(osdep.Lock(f, false))
		if !busy && isStill(f, lock) {
			return func() { os.Remove(lock); f.Close() }, nil
		}
		f.Close()
		if busy && !told {
			waits()
			told = true
		}
		if time.Now().After(end) {
			return nil, failure.Cannot(fmt.Errorf("%s: another busbar has held %s for %v; let it end, or end it", name, lock,
				longest))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// isStill reports that an open file has its name, which one that was locked before may have removed.
func isStill(f *os.File, name string) bool {
	a, err := f.Stat()
	b, err1 := os.Stat(name)
	return errors.Join(err, err1) == nil && os.SameFile(a, b)
}
