package agent

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/fleet"
)

// RivalError tells that another agent connected under this name first, so that this one gave up.
type RivalError struct {
	Name fleet.Name
	Up   time.Duration // of the other
	Meet string        // where it is found, empty where that is not known
}

func (e *RivalError) Error() string {
	where := ""
	if e.Meet != "" {
		where = ", found at " + e.Meet
	}
	return fmt.Sprintf("another agent uses the name %s (running for %v%s), so this one stops; give each node its own "+
		"credentials (busbar serve token node NAME), or stop the other agent first", e.Name, e.Up.Round(time.Second), where)
}

// rollTime is how long an agent that has just connected waits before it says anything, a second if beats are as usual:
// a server that hears its first beat and knows another agent of this name calls the roll, and settles it within
// milliseconds.
func (a *agent) rollTime() time.Duration { return a.Beat / 10 }

// afterRival is when the agent that goes on tells anew what it has, in case the other said something else.
const afterRival = 2 * time.Second

// settled follows the server's word about agents of this name.
func (a *agent) settled(s *fleet.Settled, stop context.CancelCauseFunc) {
	a.judged.Store(true)
	switch a.id {
	case s.GivesUp:
		stop(&RivalError{a.Name, time.Duration(min(max(s.Up, 0), 1e9) * float64(time.Second)), s.Meet})
	case s.GoesOn:
		a.mu.Lock()
		again := a.rival == s.GivesUp
		a.rival = s.GivesUp
		a.mu.Unlock()
		if again {
			return
		}
		a.event("conflict", true, "another agent uses the name %s too; this one was first and continues, the other is told "+
			"to stop", a.Name)
		if s.Later > a.rollTime().Seconds() { // it has had time to speak
			time.AfterFunc(afterRival, a.introduce)
		}
	default:
		a.heartbeatNow()
	}
}

// heartbeatNow asks for a beat out of turn.
func (a *agent) heartbeatNow() {
	select {
	case a.roll <- struct{}{}:
	default:
	}
}

// beats says again and again that the node lives, not in step with other nodes.
func (a *agent) beats(ctx context.Context) {
	for {
		a.heartbeat()
		select {
		case <-ctx.Done():
			return
		case <-a.roll:
		case <-time.After(varied(a.Beat)):
		}
	}
}

// show beats as soon as there is a connection, and waits for the roll to be called.
func (a *agent) show(ctx context.Context) {
	for !a.bus.Connected() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	a.heartbeatNow()
	select {
	case <-ctx.Done():
	case <-time.After(a.rollTime()):
	}
}
