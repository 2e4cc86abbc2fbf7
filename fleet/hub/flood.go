package hub

import (
	"fmt"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/health"
)

// Flooding is a finding about a node that sends far more than a node has to say.
const Flooding finding.Kind = "flooding"

// floods are the nodes that flooded of late.
type floods struct {
	mu   sync.Mutex // guards following
	each recent[flood]
}

// flood is what a node sent too much of, and how much of it was refused.
type flood struct {
	what    string
	refused int64
}

// Flood takes note of a node that sends more than a node has to say. Only its own credentials can: the bus takes
// messages under a node's name from nobody else.
func (h *Hub) Flood(f bus.Flood) {
	if h.floods.add(f, time.Now()) {
		h.lookNow()
	}
}

// add is true for one that is new.
func (l *floods) add(f bus.Flood, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, fresh := l.each.notice(f.Node, now)
	e.last, e.what = now, flood{f.What, e.what.refused + f.Refused}
	return fresh
}

func (l *floods) findings(now time.Time) []finding.Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.each.findings(Flooding, finding.Error, now, func(n fleet.Name, f flood) (text, fact, fix string) {
		return fmt.Sprintf("%s floods the server: it sends far more events than a node produces.", n),
			fmt.Sprintf("%s: %d messages were refused", f.what, f.refused),
			fmt.Sprintf("Check what runs on %s with its credentials. If they were stolen: busbar serve token node %s --revoke.",
				n, n)
	})
}

// messagesLost takes note that messages in passing were lost until now: nobody is unreachable for want of those.
func (h *Hub) messagesLost() {
	now := h.now()
	h.live.deaf(now)
	h.view.history(func(s *health.History) { s.MessagesLost(now) })
	h.counts.deaf.Add(1)
}
