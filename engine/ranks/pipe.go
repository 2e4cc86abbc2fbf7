package ranks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"busbar.dev/internal/osdep"
)

// Piped is a program that answers on its standard output what its standard input asks.
type Piped struct {
	io.Reader
	io.WriteCloser
	PID  int
	done chan struct{}
	err  error
	last transcript
}

// Pipe starts a program with an environment. It ends with this process, with its standard input, or by End.
func Pipe(args, environment []string) (*Piped, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.SysProcAttr = environment, childAttr()
	p := &Piped{done: make(chan struct{}), last: transcript{end: true}}
	cmd.Stderr = &p.last
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not cmd.StdoutPipe, which Wait closes before everything is read.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.WaitDelay = w, time.Second
	p.Reader, p.WriteCloser = out, in
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the program dies with the thread that started it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		w.Close()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		out.Close()
		return nil, &StartError{args[0], err}
	}
	p.PID = cmd.Process.Pid
	return p, nil
}

// End closes what the program reads, gives it a moment, and kills it with all that it started.
func (p *Piped) End(patience time.Duration) {
	p.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = osdep.SignalGroup(p.PID, syscall.SIGKILL)
		<-p.done
	}
	if c, ok := p.Reader.(io.Closer); ok {
		c.Close()
	}
}

// Why says how the program ended, with what it wrote to its standard error about a crash, or wrote
// last; nil while it runs.
func (p *Piped) Why() error {
	select {
	case <-p.done:
	case <-time.After(time.Second):
		return nil
	}
	line := p.last.last()
	if crash := p.last.crash(); crash != nil {
		line = crashCause(crash[0])
	}
	switch {
	case p.err == nil && line == "":
		return errors.New("it ended")
	case p.err == nil:
		return errors.New(line)
	case line == "":
		return p.err
	}
	return fmt.Errorf("%w: %s", p.err, line)
}
