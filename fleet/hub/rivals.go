package hub

import (
	"fmt"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// TwoAgents is a finding about a name that two agents connect under.
const TwoAgents finding.Kind = "two-agents"

// second takes note of a second agent that the bus refused, and of where the first one is.
func (h *Hub) second(node fleet.Name, other string) {
	if h.rivals.notice(node, time.Now(), func(string) string { return cut(other) }) {
		h.lookNow()
	}
}

// rivalWords tell of it.
func rivalWords(n fleet.Name, other string) (text, fact, fix string) {
	return fmt.Sprintf("two agents use the name %s", n),
		fmt.Sprintf("an agent was refused because another one answers: %s", other),
		fmt.Sprintf("find the second agent that runs with the credentials of %s, and give it its own (busbar serve token "+
			"node NAME); if they were stolen: busbar serve token node %s --revoke", n, n)
}
