package hub

import (
	"time"

	"busbar/fleet"
	"busbar/health"
)

// history feeds the statistics, in the order of the calls. It does not wait for somebody who asks
// them: that may take a while, and the view must not stand still.
func (v *View) history(feed func(*health.History)) {
	v.fedMu.Lock()
	v.fed = append(v.fed, feed)
	v.fedMu.Unlock()
	if v.histMu.TryLock() {
		v.drain()
		v.histMu.Unlock()
	}
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

func addLink(n fleet.Name, l *fleet.Link, at time.Time) func(*health.History) {
	return func(h *health.History) {
		h.Link(health.LinkState{Node: string(n), Port: l.Port, Up: l.Up, Time: at})
	}
}

func addCounter(n fleet.Name, port, counter string, value uint64, at time.Time) func(*health.History) {
	return func(h *health.History) {
		h.Count(health.Count{Node: string(n), Port: port, Name: counter, Value: value, Time: at})
	}
}
