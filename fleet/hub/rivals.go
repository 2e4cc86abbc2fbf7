package hub

import (
	"fmt"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// TwoAgents is a finding about a name that two agents connect under.
const TwoAgents finding.Kind = "two-agents"

// rivals are the names of which a second agent was refused of late, and where the first one is.
type rivals struct {
	mu   sync.Mutex // guards following
	each recent[string]
}

// second takes note of a second agent that the bus refused.
func (h *Hub) second(node fleet.Name, other string) {
	h.rivals.mu.Lock()
	defer h.rivals.mu.Unlock()
	now := time.Now()
	e, fresh := h.rivals.each.notice(node, now)
	e.last, e.what = now, cut(other)
	if fresh {
		h.lookNow()
	}
}

func (r *rivals) findings(now time.Time) []finding.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.each.findings(TwoAgents, finding.Warn, now, func(n fleet.Name, other string) (text, fact, fix string) {
		return fmt.Sprintf("two agents use the name %s", n),
			fmt.Sprintf("an agent was refused because another one answers: %s", other),
			fmt.Sprintf("find the second agent that runs with the credentials of %s, and give it its own (busbar serve token "+
				"node NAME); if they were stolen: busbar serve token node %s --revoke", n, n)
	})
}
