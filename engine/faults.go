package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is the error of a group that was closed.
var ErrClosed = errors.New("the group is closed")

// Cause is what happened to a rank.
type Cause string

// Causes.
const (
	Died   Cause = "died"       // its connections closed without a goodbye
	Silent Cause = "silent"     // alive or not, nothing was heard of it: hung or cut off
	CutOff Cause = "is cut off" // a connection to it broke though it lives
	Left   Cause = "left"       // it closed its group while others still needed it
	Failed Cause = "failed"     // it gave up, and said why
	Stuck  Cause = "stuck"      // it lives, but the call makes no progress because of it
)

var causes = []Cause{Died, Silent, CutOff, Left, Failed, Stuck}

// PeerError names the rank because of which a group failed.
type PeerError struct {
	Rank  int
	Host  string
	Pid   int
	Cause Cause
	// Text says more: what the rank said, or how it was noticed.
	Text string
	// Doing is what the rank was doing when it was last heard of, "" when unknown.
	Doing string
	// Here is what the rank that reports the error was doing.
	Here string
	// After is for how long nothing was heard, of a silent rank.
	After time.Duration
}

func (e *PeerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d", e.Rank)
	if e.Host != "" {
		fmt.Fprintf(&b, " (%s, pid %d)", e.Host, e.Pid)
	}
	switch e.Cause {
	case Silent:
		fmt.Fprintf(&b, " has been silent for %.1f s: it hangs or is cut off", e.After.Seconds())
	case Stuck:
		b.WriteString(" lives but makes no progress")
	default:
		fmt.Fprintf(&b, " %s", e.Cause)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ": %s", e.Text)
	}
	if e.Doing != "" {
		fmt.Fprintf(&b, "; it was last seen %s", e.Doing)
	}
	if e.Here != "" {
		fmt.Fprintf(&b, "; %s", e.Here)
	}
	return b.String()
}

// ending is how a group has ended.
type ending struct {
	mu     sync.Mutex
	err    error
	broken atomic.Bool
	doomed chan struct{} // closed when broken
}

// set ends the group; false when it had ended already. The first reason counts.
func (e *ending) set(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	e.err = err
	e.broken.Store(true)
	close(e.doomed)
	return true
}

// failure is why the group refuses calls, nil when it does not.
func (g *Group) failure() error {
	if !g.ending.broken.Load() {
		return nil
	}
	g.ending.mu.Lock()
	defer g.ending.mu.Unlock()
	return g.ending.err
}

// fail ends the group, and tells the others.
func (g *Group) fail(err error) {
	if g.end(err) && g.net != nil {
		g.net.reportFailure(err)
	}
}

// end ends the group for this rank; false when it had ended already.
func (g *Group) end(err error) bool {
	first := g.ending.set(err)
	g.driver.waiter.wake()
	g.driver.wakeBackground()
	return first
}

// blame finds who is behind an error that the driver met, and fails the group.
func (g *Group) blame(err error) {
	var lost *linkError
	var bad *protocolError
	var stall *stallError
	switch {
	case errors.As(err, &bad):
		g.fail(g.peerError(bad.peer, Failed, bad.text))
	case errors.As(err, &lost) && g.net != nil:
		g.net.suspect(lost.l.peer, lost.err)
	case errors.As(err, &lost):
		g.fail(g.peerError(lost.l.peer, Left, ""))
	case errors.As(err, &stall):
		g.fail(g.driver.stallCause(stall))
	default:
		g.fail(err)
	}
}

func (g *Group) peerError(rank int, cause Cause, text string) *PeerError {
	e := &PeerError{Rank: rank, Cause: cause, Text: text}
	if g.net != nil {
		m := g.net.member(rank)
		e.Host, e.Pid = m.Host, m.Pid
	}
	return e
}
