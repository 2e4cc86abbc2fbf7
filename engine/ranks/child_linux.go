package ranks

import "syscall"

// childAttr keeps a rank out of the terminal's signals, which its parent passes on, and ends
// it with its parent.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
