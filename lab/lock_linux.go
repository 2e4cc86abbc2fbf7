package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"busbar.dev/internal/osdep"
)

// errHeld is the error of a lock that somebody holds.
var errHeld = errors.New("the lab is up")

// own refuses a lab's folder that another user owns, can write to or can replace: who does would answer for the lab's
// holder, and get the environment of programs that are started in it. A folder that is not there is nobody's.
func (f Folder) own(name string) error {
	for _, p := range []string{string(f), f.Path(name)} {
		if err := osdep.PrivatePath(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w (BUSBAR_LAB_DIR)", err)
		}
	}
	return nil
}

// lock takes the lock of a lab and removes what a dead one left.
func (f Folder) lock(name string) (*os.File, error) {
	for end := time.Now().Add(time.Second / 2); ; time.Sleep(time.Millisecond) {
		if err := os.MkdirAll(f.Path(name), 0o700); err != nil {
			return nil, err
		}
		if err := f.own(name); err != nil {
			return nil, err
		}
		// Names does not follow links, so that down would not find a lab behind one.
		if st, err := os.Lstat(f.Path(name)); err == nil && !st.IsDir() {
			return nil, fmt.Errorf("%s is not a folder; remove it, or choose another --name", f.Path(name))
		}
		l, err := f.tryLock(name)
		if errors.Is(err, errHeld) {
			// Somebody who cleans up holds it for a moment only, and there is no state then.
			if _, e := os.Stat(f.Path(name, stateFile)); e != nil && time.Now().Before(end) {
				continue
			}
		}
		if err != nil || l != nil {
			return l, err
		}
	}
}

// tryLock is one attempt; nil without an error when the folder went away meanwhile.
func (f Folder) tryLock(name string) (*os.File, error) {
	path := f.Path(name, lockFile)
	l, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		l.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a, err1 := os.Stat(path)
	b, err2 := l.Stat()
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		l.Close()
		return nil, nil
	}
	for _, file := range []string{stateFile, stateFile + ".new", socketFile, hostsFile, logFile} {
		os.Remove(f.Path(name, file))
	}
	return l, nil
}

// Clean removes what dead labs left and reports their names.
func (f Folder) Clean() ([]string, error) {
	if err := f.own(""); err != nil {
		return nil, err
	}
	names, err := f.Names()
	var dead []string
	for _, name := range names {
		l, e := f.tryLock(name)
		if l == nil {
			if e != nil && !errors.Is(e, errHeld) {
				err = errors.Join(err, e)
			}
			continue
		}
		err = errors.Join(err, os.RemoveAll(f.Path(name)))
		l.Close()
		dead = append(dead, name)
	}
	return dead, err
}

// waitGone waits until a lab's holder has ended, and removes its folder.
func (f Folder) waitGone(name string) (bool, error) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(f.Path(name)); errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		l, err := f.tryLock(name)
		switch {
		case l != nil:
			err := os.RemoveAll(f.Path(name))
			l.Close()
			return true, err
		case err != nil && !errors.Is(err, errHeld):
			return false, err
		case time.Now().After(end):
			return false, nil
		}
	}
}
