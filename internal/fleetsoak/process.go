package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is something that is killed and started again.
type process struct {
	part  part
	ready bool // it says when it is

	mu  sync.Mutex
	cmd *exec.Cmd
	cpu float64 // of those that were killed
	rss int64   // the most that was seen
}

func (p *process) start() error {
	text, err := json.Marshal(p.part)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.cmd = cmd
	p.mu.Unlock()
	if p.ready {
		s := bufio.NewScanner(out)
		if !s.Scan() || s.Text() != "ready" {
			return errors.New("a server did not start: " + s.Text())
		}
	}
	return nil
}

// end kills, or asks to end, and waits.
func (p *process) end(sig syscall.Signal) {
	p.look()
	p.mu.Lock()
	cmd := p.cmd
	p.cmd = nil
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig)
	if sig != syscall.SIGKILL {
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
	}
	_ = cmd.Wait()
	p.mu.Lock()
	p.cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	p.mu.Unlock()
}

// look takes note of the memory that the process takes.
func (p *process) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return
	}
	if f := strings.Fields(string(data)); len(f) > 1 {
		pages, _ := strconv.ParseInt(f[1], 10, 64)
		p.rss = max(p.rss, pages*int64(os.Getpagesize()))
	}
}

func (p *process) used() (cpu float64, rss int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cpu, p.rss
}
