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
	// A node may store what a full spool holds at once, and this much a second ever after. A node in the wrong hands
	// would take a day and more to drive out what others sent.
	keepBurst = 64 << 20
	keepRate  = 64 << 10
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
	passing supply // messages in passing
	stored  supply // bytes to keep
	open    int    // things on their way to the store
	refused int64
	what    string
}

// supply is what may be sent yet: so much at once, and so much a second ever after.
type supply struct {
	left float64
	at   time.Time
}

// take takes from it, where enough is left.
func (b *supply) take(n, burst, rate float64, now time.Time) bool {
	b.left = min(burst, b.left+now.Sub(b.at).Seconds()*rate)
	if b.at.IsZero() {
		b.left = burst
	}
	if b.at = now; b.left < n {
		return false
	}
	b.left -= n
	return true
}

func (m *meter) of(node fleet.Name) *metered {
	e := m.each[node]
	if e == nil {
		if m.each == nil || len(m.each) > 2*fleet.MaxNodes { // an issuer gone mad
			m.each = map[fleet.Name]*metered{}
		}
		e = &metered{}
		m.each[node] = e
	}
	return e
}

// pass tells whether a message in passing is taken.
func (m *meter) pass(node fleet.Name, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.of(node)
	return e.passing.take(1, meterBurst, meterRate, now) || e.refuse("heartbeats and progress")
}

// keep tells whether a message is taken that is to be stored, by what it weighs with its headers.
func (m *meter) keep(node fleet.Name, size int, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.of(node)
	const least = 256 // what the store keeps beside a message
	return e.stored.take(float64(size+least), keepBurst, keepRate, now) || e.refuse("more bytes than a node may store")
}

// refuse counts a message that is not taken, and is false.
func (e *metered) refuse(what string) bool {
	e.refused++
	e.what = what
	return false
}

// refuse counts a message that is not taken for what it says.
func (m *meter) refuse(node fleet.Name, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(node).refuse(what)
}

// enter tells whether something may go on its way to the store; leave follows it.
func (m *meter) enter(node fleet.Name) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.of(node)
	if e.open >= relayEach {
		return e.refuse("events to keep")
	}
	e.open++
	return true
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
