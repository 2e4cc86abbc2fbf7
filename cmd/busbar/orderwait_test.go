package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
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
	w.f.wait("the order is said", func() (ok bool) { id, _, ok = strings.Cut(w.errs.String(), ": "); return ok })
	return id
}

// end waits for the exit code.
func (w *waiter) end() int {
	w.f.t.Helper()
	select {
	case code := <-w.code:
		return code
	case <-time.After(time.Minute):
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

func TestHowFar(t *testing.T) {
	now := time.Now()
	state := func(change func(*fleet.OrderState)) *fleet.OrderState {
		o := &fleet.OrderState{}
		o.ID, o.State, o.Parts = "x", fleet.Running, 28
		if change != nil {
			change(o)
		}
		return o
	}
	for _, c := range []struct {
		name  string
		o     *fleet.OrderState
		round int
		most  time.Duration
		text  string
	}{
		{"all pairs of 8", state(nil), 4, 7 * 20 * time.Second, "running, sweep 0: 0 of 28 parts"},
		{"all pairs of 5", state(func(o *fleet.OrderState) { o.Parts = 10 }), 2, 5 * 20 * time.Second, ""},
		{"two rounds of 8", state(func(o *fleet.OrderState) { o.Parts, o.Rounds = 8, 2 }), 4, time.Minute, ""},
		{"more rounds than there are", state(func(o *fleet.OrderState) { o.Rounds = 28 }), 4, 7 * 20 * time.Second, ""},
		{"two at once", state(func(o *fleet.OrderState) { o.AtOnce = 2 }), 4, 14 * 20 * time.Second, ""},
		{"a collective", state(func(o *fleet.OrderState) { o.Parts, o.Caps.Time = 1, 5*time.Minute }), 1, 5 * time.Minute, ""},
		{"not begun", state(func(o *fleet.OrderState) { o.Parts, o.State = 0, fleet.Waiting }), 1, time.Minute, "waits for its turn"},
		{"later", state(func(o *fleet.OrderState) { o.Parts, o.State, o.Next = 0, fleet.Waiting, now.Add(time.Hour) }), 1, time.Hour, "sweep 1 begins at " + clockText(now.Add(time.Hour))},
	} {
		if r, m, s := perRound(c.o), mostTime(c.o, now), howFar(c.o, now); r != c.round || m != c.most || !strings.Contains(s, c.text) {
			t.Errorf("%s: %d a round, %v at most, %q", c.name, r, m, s)
		}
	}
}

// TestWaitSaysARound has lines without a terminal: the order first, then one for each round.
func TestWaitSaysARound(t *testing.T) {
	f := newServedFleet(t)
	f.join("n1", "n2", "n3", "n4")
	for _, n := range f.nodes {
		n.took.Store(int64(time.Second)) // longer than a watcher's turn
	}
	w := f.waitFor("order", "pairs", "--busy", "any", "--wait")
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
	if len(lines) < 3 || len(lines) > 6 || !w.says("sweep 1: 2 of 6 parts", "sweep 1: 4 of 6 parts") {
		t.Errorf("expected the start, the sweep and its rounds:\n%s", w.errs.String())
	}
	if code, _, errs := f.busbar("order", "pairs", "--busy", "any", "--wait", "-q"); code != exitDone || errs != "" {
		t.Errorf("quietly: exit %d, %q", code, errs)
	}
}
