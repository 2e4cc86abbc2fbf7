package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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

// lastingGrace is what a server has to finish what it began, and a search to say what it has found. A second signal
// does not wait for it.
const lastingGrace = 10 * time.Second

// untilDone runs a command until it ends or the context does. What a command
// computes or waits for then is left where it is, for the program ends.
func (e *env) untilDone(command func() error) error {
	done := make(chan error, 1)
	go func() { done <- command() }()
	select {
	case err := <-done:
		if e.ctx.Err() == nil || e.lasting.Load() {
			return err
		}
	case <-e.ctx.Done():
		wait := grace
		if e.lasting.Load() || e.answers.Load() {
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
	e.files.Abandon()
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
