package hub

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/health"
)

// Flooding is a finding about a node that sends far more than a node has to say.
const Flooding finding.Kind = "flooding"

// floodLasts is for how long a finding tells of a flood that has ended.
const floodLasts = 10 * time.Minute

// floods are the nodes that flooded of late. Times are by the process's own clock.
type floods struct {
	mu   sync.Mutex // guards following
	each map[fleet.Name]*flood
}

// flood is one node's.
type flood struct {
	first, last time.Time
	what        string
	refused     int64
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
	e := l.each[f.Node]
	if fresh := e == nil || now.Sub(e.last) > floodLasts; fresh {
		if l.each == nil || len(l.each) >= fleet.MaxNodes {
			l.each = map[fleet.Name]*flood{}
		}
		l.each[f.Node] = &flood{now, now, f.What, f.Refused}
		return true
	}
	e.last, e.what = now, f.What
	e.refused += f.Refused
	return false
}

func (l *floods) findings(now time.Time) (list []finding.Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.each, func(_ fleet.Name, e *flood) bool { return now.Sub(e.last) > floodLasts })
	for _, n := range slices.Sorted(maps.Keys(l.each)) {
		e := l.each[n]
		list = append(list, finding.Finding{
			ID: fmt.Sprintf("%s:%s", Flooding, n), Kind: Flooding, Severity: finding.Error, Nodes: []string{string(n)}, Since: e.first.UTC().Truncate(time.Second), Confidence: 1,
			Text:     fmt.Sprintf("%s floods the server: it sends far more than a node has to say.", n),
			Evidence: finding.Facts(fmt.Sprintf("%s: %d messages were refused", e.what, e.refused)),
			Fix:      fmt.Sprintf("See what runs on %s with its credentials. Where somebody took them: busbar serve token node %s --revoke.", n, n),
		})
	}
	return list
}

// deaf takes note that messages in passing were lost until now: nobody is unreachable for want of those.
func (h *Hub) deaf() {
	now := h.now()
	h.live.deaf(now)
	h.view.history(func(s *health.History) { s.Deaf(now) })
	h.counts.deaf.Add(1)
}
