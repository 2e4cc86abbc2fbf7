package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// waiter is a command that runs beside the test.
type waiter struct {
	f         *servedFleet
	out, errs written
	stop      context.CancelCauseFunc
	code      chan int
}

// waitFor starts a command without waiting for it.
func (f *servedFleet) waitFor(args ...string) *waiter {
	ctx, stop := context.WithCancelCause(f.t.Context())
	w := &waiter{f: f, stop: stop, code: make(chan int, 1)}
	go func() {
		w.code <- run(ctx, strings.NewReader(""), &w.out, &w.errs, append(args, "--data", f.data))
	}()
	return w
}

// order is the order that it says first.
func (w *waiter) order() (id string) {
	w.f.t.Helper()
	eventually.Holds(w.f.t, "the order is said",
		func() (ok bool) { id, _, ok = strings.Cut(w.errs.String(), ": "); return ok })
	return id
}

// end waits for the exit code.
func (w *waiter) end() int {
	w.f.t.Helper()
	select {
	case code := <-w.code:
		return code
	case <-time.After(eventually.Limit):
		w.f.t.Fatalf("it does not end\n%s", w.errs.String())
		return 0
	}
}

// says tells that all of it was said on standard error.
func (w *waiter) says(texts ...string) bool {
	for _, s := range texts {
		if !strings.Contains(w.errs.String(), s) {
			return false
		}
	}
	return true
}

// TestWaitSaysARound has lines without a terminal: the order first, then one for each round.
func TestWaitSaysARound(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	f.join("n1", "n2", "n3", "n4")
	for _, n := range f.nodes {
		n.took.Store(int64(time.Second)) // longer than a watcher's turn
	}
	w := f.waitFor("fleet", "order", "pairs", "--busy", "any", "--wait")
	id := w.order()
	if code := w.end(); code != exitDone {
		t.Errorf("exit %d, %s", code, w.errs.String())
	}
	lines := strings.Split(strings.TrimSpace(w.errs.String()), "\n")
	for _, l := range lines {
		if !strings.HasPrefix(l, id+": ") {
			t.Errorf("%q does not name the order", l)
		}
	}
	// A slow machine may be seen in the middle of a round.
	if n := strings.Count(w.errs.String(), " of 6 parts"); len(lines) < 3 || len(lines) > 8 || n < 2 {
		t.Errorf("expected the start, the sweep and its rounds:\n%s", w.errs.String())
	}
	if code, _, errs := f.busbar("fleet", "order", "pairs", "--busy", "any", "--wait", "-q"); code != exitDone ||
		errs != "" {
		t.Errorf("quietly: exit %d, %q", code, errs)
	}
}
