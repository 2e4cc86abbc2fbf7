package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// interrupted is why a run ended early: the signal that ended it.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string {
	if i.signal == syscall.SIGINT {
		return "interrupted"
	}
	return "ended: " + i.signal.String()
}

// untilSignal is a context that a signal to stop cancels. A second signal ends
// the program as if it were not caught. Signals that the caller ignores, as
// shells do for jobs in the background, stay ignored.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	var wanted []os.Signal
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			wanted = append(wanted, s)
		}
	}
	ch := make(chan os.Signal, 1)
	if len(wanted) > 0 {
		signal.Notify(ch, wanted...)
	}
	go func() {
		select {
		case s := <-ch:
			signal.Reset(wanted...)
			if s, ok := s.(syscall.Signal); ok {
				cancel(interrupted{s})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}

// grace is what a command has to end the programs it started.
const grace = 250 * time.Millisecond

// lastingGrace is what a server has to finish what it began.
const lastingGrace = 10 * time.Second

// untilDone runs a command until it ends or the context does. What a command
// computes or waits for then is left where it is, for the program ends.
func (e *env) untilDone(command func() error) error {
	if e.fence != nil {
		return e.wholly(command)
	}
	done := make(chan error, 1)
	go func() { done <- command() }()
	select {
	case err := <-done:
		if e.ctx.Err() == nil || e.lasting.Load() {
			return err
		}
	case <-e.ctx.Done():
		wait := grace
		if e.lasting.Load() {
			wait = lastingGrace
		}
		select {
		case err := <-done:
			if e.lasting.Load() {
				return err
			}
		case <-time.After(wait):
		}
	}
	e.unfinished.abandon()
	return context.Cause(e.ctx)
}

// interruptedCode is the exit code of a run that a signal ended, as shells have it.
func interruptedCode(stderr io.Writer, err error) (code int, ok bool) {
	var by interrupted
	if !errors.As(err, &by) {
		return 0, false
	}
	fmt.Fprintln(stderr, "busbar:", by)
	return 128 + int(by.signal), true
}

// unfinished is the file that is being written, under the name it has until it is
// whole.
type unfinished struct {
	mu        sync.Mutex
	name      string
	abandoned bool
}

// begin makes a file in the target's folder with the mode that the umask gives
// to new files; os.CreateTemp makes private ones.
func (u *unfinished) begin(target string) (*os.File, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.abandoned {
		return nil, context.Canceled
	}
	removeStale(filepath.Dir(target))
	for try := 0; ; try++ {
		name := filepath.Join(filepath.Dir(target), fmt.Sprintf(".busbar-%d-%d", os.Getpid(), try))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			u.name = name
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // for removeStale of others
		}
		if err == nil || !errors.Is(err, fs.ErrExist) || try == 100 {
			return f, err
		}
	}
}

// finish gives the file its own name.
func (u *unfinished) finish(target string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.abandoned {
		return context.Canceled
	}
	if err := os.Rename(u.name, target); err != nil {
		return err
	}
	u.name = ""
	return nil
}

// drop removes the file when it was not finished.
func (u *unfinished) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.name != "" {
		os.Remove(u.name)
		u.name = ""
	}
}

// abandon removes the file and lets no other begin.
func (u *unfinished) abandon() {
	u.mu.Lock()
	u.abandoned = true
	u.mu.Unlock()
	u.drop()
}
