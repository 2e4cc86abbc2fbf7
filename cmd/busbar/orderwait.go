package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
)

// watcher shows an order until it, or its sweep, has ended.
type watcher struct {
	e   *env
	o   common
	cl  *client
	got fleet.OrderReply // as it was last heard of

	clear func()    // takes the line of progress away
	said  time.Time // when the last line that stays was written
	state string    // and what it was about: the state and the sweep
	ended int       // and how many parts were over
	until time.Time // a server that does not answer is waited for; zero where it does
}

// Pauses of a watcher.
const (
	watchTurn = 300 * time.Millisecond
	watchLine = 30 * time.Second // without a terminal there is a line at least so often
)

// watch shows an order until it, or its sweep, has ended, and prints what came out. first is what is known of it.
func watch(e *env, o common, cl *client, first *fleet.OrderReply) error {
	// Whoever interrupts it is told what becomes of the order.
	e.lasting.Store(true)
	w := &watcher{e: e, o: o, cl: cl, got: *first, clear: func() {}}
	err := w.wait()
	w.clear()
	if err != nil {
		if e.ctx.Err() != nil || errors.As(err, new(goneError)) {
			w.line(fmt.Sprintf("it goes on; busbar order watch %s shows it, busbar order cancel %[1]s ends it", w.got.ID))
		}
		return err
	}
	e.lasting.Store(false)
	return outcome(e, o, cl, &w.got)
}

// wait comes back when the order or its sweep is over.
func (w *watcher) wait() error {
	began := w.got.Sweep
	if w.got.State == fleet.Running {
		began--
	}
	for !w.got.Final() && (w.got.Sweep <= began || w.got.State != fleet.Waiting) {
		w.show()
		select {
		case <-w.e.ctx.Done():
			return context.Cause(w.e.ctx)
		case <-time.After(watchTurn):
		}
		if err := w.ask(); err != nil {
			return err
		}
	}
	return nil
}

// ask asks how the order is. A server that does not answer is waited for as long as the order may take:
// the order stands in what the server has stored, and goes on when it is back.
func (w *watcher) ask() error {
	var now fleet.OrderReply
	err := w.cl.call(w.e.ctx, "GET", "/api/fleet/orders/"+url.PathEscape(w.got.ID), nil, &now)
	switch {
	case err == nil:
		if !w.until.IsZero() {
			w.line("the server answers again")
		}
		w.got, w.until = now, time.Time{}
		return nil
	case w.e.ctx.Err() != nil:
		return context.Cause(w.e.ctx)
	case !errors.As(err, new(goneError)) && !errors.As(err, new(readingError)):
		return err
	case w.until.IsZero():
		w.until = time.Now().Add(mostTime(&w.got.OrderState, time.Now()))
		w.line(fmt.Sprintf("no answer: %v; asked again until %s", err, clockText(w.until)))
	case time.Now().After(w.until):
		return err
	}
	return nil
}

// show says how far the order is: on a terminal in a line that changes, else in lines that stay, one a round.
func (w *watcher) show() {
	text := howFar(&w.got.OrderState, time.Now())
	state, ended := fmt.Sprint(w.got.State, w.got.Sweep), w.got.Good+w.got.Bad
	terminal := isTerminal(w.e.stderr)
	if first := w.said.IsZero(); first || !terminal && (state != w.state || ended-w.ended >= perRound(&w.got.OrderState) || time.Since(w.said) > watchLine) {
		w.line(text)
		w.state, w.ended = state, ended
	}
	if terminal {
		w.clear()
		w.clear = w.e.progress(w.o, text)
	}
}

// line writes a line that stays.
func (w *watcher) line(text string) {
	w.clear()
	w.clear = func() {}
	w.said = time.Now()
	if !w.o.Quiet {
		fmt.Fprintf(w.e.stderr, "%s: %s\n", w.got.ID, texttab.Clean(text))
	}
}

// howFar is the state of an order in words.
func howFar(o *fleet.OrderState, now time.Time) string {
	switch {
	case o.State == fleet.Waiting && o.Next.Sub(now) > time.Second:
		return fmt.Sprintf("waits; sweep %d begins at %s", o.Sweep+1, clockText(o.Next))
	case o.State == fleet.Waiting:
		return "waits for its turn"
	}
	return fmt.Sprintf("%s, sweep %d: %d of %d parts measured, %d failed", o.State, o.Sweep, o.Good, o.Parts, o.Bad)
}

// clockText is a time by the clock of who reads it, with its zone.
func clockText(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// perRound is how many parts a round of a sweep has: half as many as there are nodes.
func perRound(o *fleet.OrderState) int {
	if r := o.Rounds; r > 0 && o.Parts%r == 0 && r < 2*(o.Parts/r)+1 {
		return max(o.Parts/r, 1)
	}
	nodes := (1 + math.Sqrt(1+8*float64(o.Parts))) / 2 // of all pairs
	return max(int(nodes)/2, 1)
}

// mostTime bounds how long an order may still take: all its rounds with all the time that they have, and a minute at least.
func mostTime(o *fleet.OrderState, now time.Time) time.Duration {
	r := perRound(o)
	turns := (o.Parts + r - 1) / r
	if o.AtOnce > 0 && o.AtOnce < r {
		turns *= (r + o.AtOnce - 1) / o.AtOnce
	}
	d := time.Duration(turns) * o.Caps.Bound()
	if o.State == fleet.Waiting && o.Next.After(now) {
		d += o.Next.Sub(now)
	}
	return max(d, time.Minute)
}
