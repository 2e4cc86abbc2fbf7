//go:build unix && !linux

package ranks

import "syscall"

// childAttr keeps a rank out of the terminal's signals, which its parent passes on.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
