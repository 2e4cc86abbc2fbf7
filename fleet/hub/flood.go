package hub

import (
	"fmt"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/health"
)

// Flooding is a finding about a node that sends far more than a node has to say.
const Flooding finding.Kind = "flooding"

// flood is what a node sent too much of, and how much of it was refused.
type flood struct {
	what    string
	refused int64
}

// Flood takes note of a node that sends more than a node has to say. Only its own credentials can: the bus takes
// messages under a node's name from nobody else.
func (h *Hub) Flood(f bus.Flood) {
	if h.floods.notice(f.Node, time.Now(), func(old flood) flood { return flood{f.What, old.refused + f.Refused} }) {
		h.lookNow()
	}
}

// floodWords tell of it.
func floodWords(n fleet.Name, f flood) (text, fact, fix string) {
	return fmt.Sprintf("%s floods the server: it sends far more events than a node produces.", n),
		fmt.Sprintf("%s: %d messages were refused", f.what, f.refused),
		fmt.Sprintf("Check what runs on %s with its credentials. If they were stolen: busbar serve token node %s --revoke.",
			n, n)
}

// messagesLost takes note that messages in passing were lost until now: nobody is unreachable for want of those.
func (h *Hub) messagesLost() {
	now := h.now()
	h.live.deaf(now)
	h.view.history(func(s *health.History) { s.MessagesLost(now) })
	h.counts.deaf.Add(1)
}
