package osdep

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// Flags of os.OpenFile that Windows does not have.
const (
	NoFollow  = 0
	Directory = 0
)

// Lock locks a file for this process alone until it is closed. Without wait it fails at once where another has it.
func Lock(f *os.File, wait bool) error {
	how := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
}

// Locked reports that an error of Lock means that another process has the file.
func Locked(err error) bool { return errors.Is(err, windows.ERROR_LOCK_VIOLATION) }

// Owner is not known: files have no numbers of users.
func Owner(fs.FileInfo) (uid int, ok bool) { return 0, false }

// Others are not known: a file's mode does not say who else may use it, its access control list does, and files of a
// user's profile are his alone unless he changes that.
func Others(fs.FileInfo) fs.FileMode { return 0 }

// Writable tells whether what exists under the name is not read-only.
func Writable(name string) error {
	info, err := os.Stat(name)
	if err == nil && info.Mode().Perm()&0o200 == 0 {
		err = fs.ErrPermission
	}
	return err
}

// Gone reports that no process has the number.
func Gone(pid int) bool {
	p, err := os.FindProcess(pid) // which opens it, on Windows
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	_ = p.Release()
	return false
}

// SignalGroup ends the process itself: there are neither groups nor signals.
func SignalGroup(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return errors.Join(p.Kill(), p.Release())
}

// IsPipe is false: a process gets no further files of its parent.
func IsPipe(int) bool { return false }

// AddressLimit is not a limit that Windows has.
func AddressLimit() (int64, bool) { return 0, false }
