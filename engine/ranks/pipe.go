package ranks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
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
	last *lastWords
}

// Pipe starts a program with an environment. It ends with this process, with its standard input, or by End.
func Pipe(args, environment []string) (*Piped, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.SysProcAttr = environment, childAttr()
	p := &Piped{done: make(chan struct{}), last: &lastWords{}}
	cmd.Stderr = p.last
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
	line := p.last.line()
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

// lastWords keeps the end of what a program writes.
type lastWords struct {
	mu  sync.Mutex
	buf []byte
}

func (l *lastWords) Write(p []byte) (int, error) {
	const most = 16 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if len(l.buf) > most {
		l.buf = append([]byte{}, l.buf[len(l.buf)-most:]...)
	}
	return len(p), nil
}

func (l *lastWords) line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := ""
	for text := range strings.Lines(strings.TrimSpace(string(l.buf))) {
		if line = strings.TrimSpace(text); crashed.MatchString(line) {
			return crashCause(line)
		}
	}
	return line
}
