package bus

import (
	"sync"
	"time"

	"busbar.dev/fleet"
)

const (
	// meterRate is how many messages in passing a node may send in a second, and meterBurst how many at once. An agent
	// beats every ten seconds, and tells a few times in a second how far a measurement is.
	meterRate  = 200
	meterBurst = 400
	// relayEach is how many things a node may have brought to the store at a time. An agent has one.
	relayEach = 4
	// floodFrom is how many messages of a node must have been refused within a second to be a flood.
	floodFrom = 50
)

// meter counts what each node sends before anything of it is queued or decoded, so that a node can only crowd out
// itself.
type meter struct {
	mu   sync.Mutex // guards following
	each map[fleet.Name]*metered
}

// metered is one node.
type metered struct {
	left    float64 // messages in passing
	at      time.Time
	open    int // things on their way to the store
	refused int64
	what    string
}

func (m *meter) of(node fleet.Name, now time.Time) *metered {
	e := m.each[node]
	if e == nil {
		if m.each == nil || len(m.each) > 2*fleet.MaxNodes { // an issuer gone mad
			m.each = map[fleet.Name]*metered{}
		}
		e = &metered{left: meterBurst, at: now}
		m.each[node] = e
	}
	return e
}

// pass tells whether a message in passing is taken.
func (m *meter) pass(node fleet.Name, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.of(node, now)
	e.left = min(meterBurst, e.left+now.Sub(e.at).Seconds()*meterRate)
	e.at = now
	if e.left < 1 {
		e.refused++
		e.what = "heartbeats and progress"
		return false
	}
	e.left--
	return true
}

// enter tells whether something may go on its way to the store; leave follows it.
func (m *meter) enter(node fleet.Name) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.of(node, time.Now())
	if e.open >= relayEach {
		e.refused++
		e.what = "events to keep"
		return false
	}
	e.open++
	return true
}

// refuse counts a message that is not taken for what it says.
func (m *meter) refuse(node fleet.Name, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.of(node, time.Now())
	e.refused++
	e.what = what
}

func (m *meter) leave(node fleet.Name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.each[node]; e != nil && e.open > 0 {
		e.open--
	}
}

// floods are the nodes of which too much was refused since the last call.
func (m *meter) floods() (list []Flood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, e := range m.each {
		if e.refused >= floodFrom {
			list = append(list, Flood{n, e.what, e.refused})
		}
		e.refused = 0
	}
	return list
}
