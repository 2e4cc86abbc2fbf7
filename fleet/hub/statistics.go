package hub

import (
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
)

// mostFed is how much may wait for the statistics. A fleet has far less to say while they are asked;
// nodes that say more are made to wait.
const mostFed = 200_000

// history feeds the statistics, in the order of the calls. It does not wait for somebody who asks
// them: that may take a while, and the view must not stand still.
func (v *View) history(feed func(*health.History)) {
	v.fedMu.Lock()
	v.fed = append(v.fed, feed)
	full := len(v.fed) >= mostFed
	v.fedMu.Unlock()
	if full {
		v.histMu.Lock()
	} else if !v.histMu.TryLock() {
		return
	}
	defer v.histMu.Unlock() // also where a feed panics, which survive outlives
	v.drain()
}

// ask asks the statistics about all that was fed.
func (v *View) ask(question func(*health.History)) {
	v.histMu.Lock()
	defer v.histMu.Unlock()
	v.drain()
	question(v.hist)
}

// drain feeds what waits. The caller holds histMu.
func (v *View) drain() {
	v.fedMu.Lock()
	list := v.fed
	v.fed = nil
	v.fedMu.Unlock()
	for _, feed := range list {
		feed(v.hist)
	}
}

func addBeat(n fleet.Name, at time.Time) func(*health.History) {
	return func(h *health.History) { h.Beat(string(n), at) }
}
