package bus

import (
	"sync"
	"time"

	"busbar.dev/fleet"

	"golang.org/x/time/rate"
)

// What one node may send. The figures are far above what an agent sends that empties a full spool.
const (
	// passRate is how many messages in passing a node may send in a second, and passBurst how many at once. An agent
	// beats every ten seconds, and tells a few times in a second how far a measurement is.
	passRate  = 200
	passBurst = 400
	// relayEach is how many things a node may have brought to the store at a time. An agent has one.
	relayEach = 4
	// A node may store what a full spool holds at once, and this much a second ever after. A node in the wrong hands
	// would take a day and more to drive out what others sent.
	keepBurst = 64 << 20
	keepRate  = 64 << 10
	// floodFrom is how many messages of a node must have been refused within a second to be a flood.
	floodFrom = 50
	// connsEach is how many connections of a node are taken by a server of our own: an agent has one. Over all of them,
	// also of what it may not publish, edgeRate messages or 512 bytes are taken in a second, and edgeBurst at once.
	connsEach = 16
	edgeRate  = 5000
	edgeBurst = 400_000
	shutFor   = time.Minute
)

// Flood is a node whose credentials sent more than a node has to say.
type Flood struct {
	Node fleet.Name
	// What was too much, and how much of it was not taken.
	What    string
	Refused int64
}

// nodes are those that send. What each sends is counted before anything of it is queued or decoded, so that a node can
// only crowd out itself.
type nodes struct {
	mu   sync.Mutex // guards following
	each map[fleet.Name]*sender
}

// sender is one node.
type sender struct {
	passing *rate.Limiter // messages in passing
	stored  *rate.Limiter // bytes to keep
	edge    *rate.Limiter // all that comes to a server of our own
	open    int           // things on their way to the store
	refused int64
	what    string
	agent   string // the process that sends under the name, empty where that is not known
	before  string // the one that it replaced, which did not answer
}

// take tells whether something of a node is taken. What is not counts as refused, where it is said what it is.
func (n *nodes) take(node fleet.Name, what string, may func(*sender) bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.each[node]
	if s == nil {
		if n.each == nil || len(n.each) > 2*fleet.MaxNodes { // an issuer gone mad
			n.each = map[fleet.Name]*sender{}
		}
		s = &sender{
			passing: rate.NewLimiter(passRate, passBurst), stored: rate.NewLimiter(keepRate, keepBurst),
			edge: rate.NewLimiter(edgeRate, edgeBurst),
		}
		n.each[node] = s
	}
	ok := may(s)
	if !ok && what != "" {
		s.refused++
		s.what = what
	}
	return ok
}

// keeps tells whether a message is taken that is to be stored, by what it weighs with its headers.
func (n *nodes) keeps(node fleet.Name, size int, now time.Time) bool {
	const least = 256 // what the store keeps beside a message
	return n.take(node, "more bytes than a node may store",
		func(s *sender) bool { return s.stored.AllowN(now, size+least) })
}

// refuse counts a message that is not taken for what it says.
func (n *nodes) refuse(node fleet.Name, what string) {
	n.take(node, what, func(*sender) bool { return false })
}

// later does something that asks the store, few times at once for a node: one that asks more waits for no turn, it is
// not heard. So this never waits, and what others send is not held up.
func (n *nodes) later(node fleet.Name, do func()) {
	if !n.take(node, "events to keep", func(s *sender) bool {
		if s.open == relayEach {
			return false
		}
		s.open++
		return true
	}) {
		return
	}
	go func() {
		do()
		n.take(node, "", func(s *sender) bool { s.open = max(0, s.open-1); return true })
	}()
}

// floods are the nodes of which too much was refused since the last call.
func (n *nodes) floods() (list []Flood) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for node, s := range n.each {
		if s.refused >= floodFrom {
			list = append(list, Flood{node, s.what, s.refused})
		}
		s.refused = 0
	}
	return list
}
