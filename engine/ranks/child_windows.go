package ranks

import "syscall"

// childAttr is nothing special: Windows passes no signals of a terminal on.
func childAttr() *syscall.SysProcAttr { return nil }
