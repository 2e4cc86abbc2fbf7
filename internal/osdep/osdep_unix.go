//go:build unix

package osdep

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"syscall"
)

// Flags of os.OpenFile that Windows does not have.
const (
	NoFollow  = syscall.O_NOFOLLOW
	Directory = syscall.O_DIRECTORY
)

// Lock locks a file for this process alone until it is closed. Without wait it fails at once where another has it.
func Lock(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// Locked reports that an error of Lock means that another process has the file.
func Locked(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

// Owner is the user a file belongs to.
func Owner(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// Others are the permissions of a file that are not its owner's.
func Others(info fs.FileInfo) fs.FileMode { return info.Mode().Perm() & 0o077 }

// Writable tells whether this process may write to what exists under the name, without opening it.
func Writable(name string) error { return syscall.Access(name, 2) }

// Gone reports that no process has the number.
func Gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// SignalGroup sends a signal to the group that a process leads.
func SignalGroup(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }

// IsPipe reports that a file descriptor is open and a pipe.
func IsPipe(fd int) bool {
	var st syscall.Stat_t
	return syscall.Fstat(fd, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFIFO
}

// AddressLimit is how many bytes of addresses this process may have (ulimit -v).
func AddressLimit() (int64, bool) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &r) != nil || r.Cur >= math.MaxInt64 {
		return 0, false
	}
	return int64(r.Cur), true
}
