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

func waits(proc fs.FS, dir string, state byte) Wait {
	data, _ := fs.ReadFile(proc, path.Join(dir, "syscall"))
	fields := strings.Fields(string(data))
	switch {
	case len(fields) == 1 && fields[0] == "running" && state == 'R':
		return WaitNone
	case len(fields) < 2:
		return WaitUnknown
	}
	n, err := strconv.Atoi(fields[0])
	switch c, ok := readCalls[runtime.GOARCH]; {
	case err != nil || n < 0:
		return WaitUnknown
	case slices.Contains(socketCalls[runtime.GOARCH], n):
		return WaitSocket
	case ok && c == n:
		fd, _ := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 31)
		name, _ := fs.ReadLink(proc, path.Join(dir, "fd", strconv.FormatUint(fd, 10)))
		if strings.HasPrefix(name, "socket:") {
			return WaitSocket
		}
	}
	return WaitElse
}
