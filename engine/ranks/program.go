package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"busbar.dev/internal/osdep"
)

// StartError is a program that could not be started.
type StartError struct {
	Program string
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("%s: %v", e.Program, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// Printed keeps the beginning of what a program prints: so many bytes, and nothing of what follows.
type Printed struct {
	bytes.Buffer
	Most int
}

func (p *Printed) Write(b []byte) (int, error) {
	p.Buffer.Write(b[:min(len(b), max(0, p.Most-p.Len()))])
	return len(b), nil
}

// killDelay is what a program has to end when it is asked to, before it is killed.
const killDelay = 125 * time.Millisecond

// Program runs a launcher of ranks, or any other program, and waits for its end; w gets what it
// and its ranks print. After limit, or when the context ends, it is ended with all that it started.
func Program(ctx context.Context, limit time.Duration, args []string, w io.Writer) error {
	// The program dies with the thread that started it, so it must be this one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = w, w, childAttr()
	// Launchers end their ranks when they are asked to, and leave them when they are killed.
	cmd.Cancel = func() error { return osdep.SignalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return &StartError{args[0], err}
	}
	group := cmd.Process.Pid
	stop := context.AfterFunc(ctx, func() {
		time.Sleep(killDelay)
		_ = osdep.SignalGroup(group, syscall.SIGKILL)
	})
	defer stop()
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		_ = osdep.SignalGroup(group, syscall.SIGKILL) // what the launcher has left
		return fmt.Errorf("no end after %v (--timeout)", limit)
	}
	return err
}

// FindProgram is the path of a program in a folder, or in PATH where the folder is empty.
func FindProgram(folder, name string) (string, error) {
	if folder == "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	path := filepath.Join(folder, name)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%s is no program", path)
	}
	return filepath.Abs(path)
}
