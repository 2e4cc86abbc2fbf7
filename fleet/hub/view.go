package hub

import (
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
)

// Bounds of what a view keeps. A fleet within fleet.MaxNodes never meets most of them; a
// node in the wrong hands does.
const (
	maxMap      = 512 << 10 // of one node's map
	maxMaps     = 512 << 20 // of all maps together
	maxPorts    = 256       // of one node
	maxCounters = 256       // of one port
	maxText     = 256       // of a name or a state
	maxCells    = 2_000_000 // directions of pairs
	maxFinal    = 1000      // orders that are over
	maxOrders   = 1000      // orders that are not
	maxKept     = 200       // collectives
	maxRecords  = 64        // of one collective
	maxFindings = 10_000
	maxPast     = 500 // findings that are over
)

// View is what follows from the stream up to an entry, and nothing else: equal streams give
// equal views, in whatever pieces they come, and what comes twice changes nothing.
type View struct {
	mu sync.RWMutex // guards following

	seq        uint64
	publishers map[fleet.Name]*received
	early      early             // outcomes of orders that the store lost
	said       map[string]uint64 // the server's number that last changed an order or a finding
	nodes      map[fleet.Name]*node
	maps       int // bytes of all maps
	orders     map[string]*order
	given      []string // ids of orders, the earliest first
	numbers    map[fleet.Name]uint32
	cells      map[fleet.Transport]map[uint64]cell
	checks     map[fleet.Transport]map[uint64]cell // the same of checks before jobs: brief, with other messages, and no part of what the page shows
	kept       []fleet.Collective
	findings   map[string]*finding.Finding
	past       []finding.Finding // that are over
	ignored    map[string]int    // by reason
	aside      map[fleet.Name]aside
	changes    uint64 // of maps, so that the joined cluster is made again

	network *cluster.Cluster // given from outside; nil where nothing is known
	leaves  map[string]string

	// The statistics have locks of their own, taken after mu, for asking them takes long.
	histMu sync.Mutex
	hist   *health.History
	fedMu  sync.Mutex
	fed    []func(*health.History) // that hist has not taken yet
}

// cell is the last figures of one direction of a pair, small for there are many.
type cell struct {
	rate, both, latency float32 // B/s, B/s, s
	by                  uint32  // the number of the node that said so
	at                  int64   // Unix seconds
	order               uint32  // its place in given, from 1 on
	sweep               int32
}

// cellMaps are empty ones for every transport.
func cellMaps() map[fleet.Transport]map[uint64]cell {
	m := map[fleet.Transport]map[uint64]cell{}
	for _, by := range fleet.Transports() {
		m[by] = map[uint64]cell{}
	}
	return m
}

// newView makes one that knows a network; silence is after how long without a beat a node counts as unreachable,
// 0 for what health takes.
func newView(network *cluster.Cluster, unreachable time.Duration) *View {
	return &View{
		network: network, leaves: leavesOf(network),
		publishers: map[fleet.Name]*received{}, said: map[string]uint64{}, nodes: map[fleet.Name]*node{}, orders: map[string]*order{},
		numbers: map[fleet.Name]uint32{}, cells: cellMaps(), checks: cellMaps(), findings: map[string]*finding.Finding{},
		ignored: map[string]int{}, aside: map[fleet.Name]aside{}, hist: health.New(health.Options{Unreachable: unreachable}),
	}
}

// Apply folds one entry into the view. It is false for one that was known, or that says
// what its publisher cannot say.
func (v *View) Apply(e Entry) (taken bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Seq <= v.seq {
		return false
	}
	v.seq = e.Seq
	defer v.survive(e, &taken)
	n := e.Event
	switch {
	case n == nil || n.Check() != nil:
		return v.ignore("malformed")
	case n.Node != e.Publisher:
		return v.ignore("another's name")
	}
	at := bounded(n.At, e.Stored)
	// What is said again has its old number and its old time. A publisher that lost its memory
	// counts anew, but its clock goes on.
	last, known := v.publishers[n.Node]
	switch {
	case !known && n.Node != "" && len(v.publishers) > fleet.MaxNodes:
		return v.ignore("too many nodes")
	case !known:
		last = &received{}
		v.publishers[n.Node] = last
	}
	again := last.follows(n.Seq, at, !known)
	if known && !again && n.Seq <= last.seq && !at.After(last.at) {
		return v.ignore("said before")
	}
	if !again {
		last.seq, last.at = n.Seq, at
	}
	if n.Node == "" {
		return v.server(n, at)
	}
	return v.node(n, at, again)
}

// overtaken tells whether something newer was said about an order or a finding, and takes note of this. Only what is
// sent again, after the store lost it, comes late.
func (v *View) overtaken(what string, seq uint64) bool {
	if seq < v.said[what] {
		return true
	}
	if len(v.said) > 4*(maxFindings+maxOrders) {
		clear(v.said)
	}
	v.said[what] = seq
	return false
}

// bounded is a time that a publisher gives, within what the store's clock allows.
func bounded(at, stored time.Time) time.Time {
	if stored.IsZero() {
		return at
	}
	const ahead, behind = 2 * time.Minute, 30 * 24 * time.Hour
	switch d := at.Sub(stored); {
	case d > ahead:
		return stored
	case d < -behind:
		return stored.Add(-behind)
	}
	return at
}

// ignore counts what was not taken, and is false.
func (v *View) ignore(why string) bool {
	v.ignored[why]++
	return false
}

// server folds what a server sent.
func (v *View) server(n *fleet.Event, at time.Time) bool {
	switch n.Kind {
	case fleet.KindOrder:
		if v.overtaken("order "+n.Order.ID, n.Seq) {
			if o := v.orders[n.Order.ID]; o != nil && n.Order.Check() == nil { // that the sweep began is news all the same
				o.begins(n.Order, at)
				v.catchUp("order " + n.Order.ID)
			}
			return false
		}
		return v.order(n.Order, at)
	case fleet.KindFinding:
		if v.overtaken("finding "+n.Finding.ID, n.Seq) {
			return false
		}
		return v.finding(n.Finding)
	case fleet.KindMeasured:
		return v.collective("", n.Measured, at)
	case fleet.KindTokens:
		return v.forget(n.Tokens)
	}
	return true
}

// finding keeps what is wrong, and forgets what no longer is once that was told.
func (v *View) finding(f *finding.Finding) bool {
	old := v.findings[f.ID]
	switch {
	case f.ID == "" || len(f.ID) > 4*maxText || len(f.Text) > 16<<10:
		return v.ignore("malformed")
	case old == nil && len(v.findings) >= maxFindings:
		return v.ignore("too many findings")
	}
	over := !f.Cleared.IsZero()
	if over && old != nil && old.Cleared.IsZero() {
		if len(v.past) >= maxPast {
			v.past = append([]finding.Finding(nil), v.past[1:]...)
		}
		v.past = append(v.past, *f)
	}
	// That something is over needs to be told where it was told that it is.
	unheard := old == nil || old.Cleared.IsZero() && !old.Alerted && len(old.AlertedTo) == 0
	if over && (f.Alerted || unheard) {
		delete(v.findings, f.ID)
		return true
	}
	v.findings[f.ID] = f
	return true
}

// readTo tells that there is nothing more up to a number.
func (v *View) readTo(seq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seq = max(v.seq, seq)
}

// Seq is the number of the last entry that is in the view.
func (v *View) Seq() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.seq
}

// Ignored counts entries that were not taken, by reason.
func (v *View) Ignored() map[string]int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make(map[string]int, len(v.ignored))
	for k, n := range v.ignored {
		out[k] = n
	}
	return out
}

// Collectives are the last that were measured, the newest last.
func (v *View) Collectives() []fleet.Collective {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return append([]fleet.Collective{}, v.kept...)
}
