package procs

import (
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Wait is what a process's first thread is in.
type Wait byte

// What a thread can be in. The kernel tells it to the process's user and to root, unless it was told not to.
const (
	WaitUnknown Wait = iota
	WaitSocket       // it waits for another process's answer
	WaitElse         // it sleeps, or waits for something else
	WaitNone         // it computes
)

// socketCalls are the numbers of system calls that wait for a socket; those of the second map take any descriptor as
// their first argument.
var (
	// poll, select, recvfrom, recvmsg, epoll_wait, pselect6, ppoll, epoll_pwait
	socketCalls = map[string][]int{"amd64": {7, 23, 45, 47, 232, 270, 271, 281}, "arm64": {22, 72, 73, 207, 212}}
	readCalls   = map[string]int{"amd64": 0, "arm64": 63}
)

// socketSymbols are where the kernel waits for a socket, where only that is told.
var socketSymbols = []string{
	"poll_schedule_timeout", "do_poll", "do_sys_poll", "do_select", "ep_poll", "wait_woken", "sk_wait_data",
	"__skb_wait_for_more_packets",
}

func waits(proc fs.FS, dir string, state byte) Wait {
	data, err := fs.ReadFile(proc, path.Join(dir, "syscall"))
	fields := strings.Fields(string(data))
	switch {
	case err != nil || len(fields) == 0:
	case len(fields) > 1:
		n, err := strconv.Atoi(fields[0])
		if err != nil || n < 0 {
			break
		}
		if slices.Contains(socketCalls[runtime.GOARCH], n) {
			return WaitSocket
		}
		if c, ok := readCalls[runtime.GOARCH]; ok && c == n {
			if fd, err := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 31); err == nil {
				if name, err := fs.ReadLink(proc, path.Join(dir, "fd", strconv.FormatUint(fd, 10))); err == nil &&
					strings.HasPrefix(name, "socket:") {
					return WaitSocket
				}
			}
		}
		return WaitElse
	}
	// Some kernels and sandboxes say running, or nothing, of any thread; the place where it waits tells more.
	data, err = fs.ReadFile(proc, path.Join(dir, "wchan"))
	at := strings.TrimSpace(string(data))
	if slices.Contains(socketSymbols, at) {
		return WaitSocket
	}
	switch {
	case err == nil && at != "" && at != "0":
		return WaitElse
	case len(fields) == 1 && fields[0] == "running" && state == 'R':
		return WaitNone
	}
	return WaitUnknown
}
