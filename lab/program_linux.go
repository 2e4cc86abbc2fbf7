package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// program is one that runs in a node.
type program struct {
	end chan int // its exit code, as shells count
}

// reap takes the ends of all programs, also of those whose parents are gone.
func (h *holder) reap() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGCHLD)
	go func() {
		for range ch {
			h.mu.Lock()
			for {
				var status syscall.WaitStatus
				pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
				if errors.Is(err, syscall.EINTR) {
					continue
				}
				if pid <= 0 {
					break
				}
				if p := h.programs[pid]; p != nil {
					delete(h.programs, pid)
					code := status.ExitStatus()
					if status.Signaled() {
						code = 128 + int(status.Signal())
					}
					p.end <- code
				}
			}
			h.mu.Unlock()
		}
	}()
}

// start runs a program in a node, in a session of its own.
func (h *holder) start(r *request, files []*os.File) (pid int, p *program, err error) {
	n := h.plan.NodeByName(r.Node)
	if n < 0 {
		return 0, nil, fmt.Errorf("no node %q; the lab has %s", r.Node, h.plan.names())
	}
	if len(files) != 3 || r.Path == "" {
		return 0, nil, errors.New("a program needs its path and three files")
	}
	attr := &syscall.ProcAttr{Dir: r.Dir, Env: r.Env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: r.Terminal}}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	p = &program{end: make(chan int, 1)}
	err = onThread(func() error {
		if err := h.nodes[n].enter(); err != nil {
			return fmt.Errorf("entering %s: %w", r.Node, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		var err error
		if pid, err = syscall.ForkExec(r.Path, r.Args, attr); err == nil {
			h.programs[pid] = p
		}
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("%s on %s: %w", r.Path, r.Node, err)
	}
	return pid, p, nil
}

// run serves an exec request until its program ends. When the client goes away the
// program and what it started in its session's group are ended.
func (h *holder) run(c *net.UnixConn, r *request, files []*os.File, more *json.Decoder) {
	pid, p, err := h.start(r, files)
	closeAll(files)
	if err != nil {
		send(c, answer{Error: err.Error()})
		return
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			var next request
			if more.Decode(&next) != nil {
				return
			}
			if next.Do == "end" {
				syscall.Kill(-pid, syscall.SIGTERM)
			}
		}
	}()
	select {
	case code := <-p.end:
		send(c, answer{Code: code})
	case <-gone:
		syscall.Kill(-pid, syscall.SIGKILL)
		<-p.end
	}
}

// inside lists the processes in a node.
func (h *holder) inside(n int) ([]int, error) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, x := range list {
		pid, err := strconv.Atoi(x.Name())
		if err != nil || pid == 1 {
			continue
		}
		if id, err := os.Readlink("/proc/" + x.Name() + "/ns/net"); err == nil && id == h.nodes[n].id {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// signalNode sends a signal to everything in a node, until nothing new shows up.
func (h *holder) signalNode(n int, s syscall.Signal) error {
	seen := map[int]bool{}
	for range 10 {
		pids, err := h.inside(n)
		if err != nil {
			return err
		}
		fresh := false
		for _, pid := range pids {
			if !seen[pid] {
				seen[pid], fresh = true, true
				if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("process %d: %w", pid, err)
				}
			}
		}
		if !fresh {
			break
		}
	}
	return nil
}

// hasProc reports whether /proc shows the lab's own processes.
func hasProc() bool {
	s, err := os.Readlink("/proc/self")
	return err == nil && strings.TrimSpace(s) == strconv.Itoa(os.Getpid())
}
