package hub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/unit"
)

// Bounds of what a view keeps. A fleet within fleet.MaxNodes never meets most of them; a
// node in the wrong hands does.
const (
	maxMap      = 512 << 10 // of one node's map
	maxMaps     = 512 << 20 // of all maps together
	maxPorts    = 256       // of one node
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

	stream     received
	publishers map[fleet.Name]*received
	nodes      map[fleet.Name]*node
	maps       int // bytes of all maps
	orders     map[string]*order
	given      []string // ids of orders, the earliest first
	numbered   uint32   // orders so far
	numbers    map[fleet.Name]uint32
	cells      map[table]map[uint64]cell
	kept       []fleet.Collective
	findings   map[string]finding.Finding
	past       []finding.Finding // that are over
	ignored    map[string]int    // by reason
	notices    notices           // of what passes by, and of messages that were set aside
	changes    uint64            // of maps, so that the joined cluster is made again

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
	order               uint32  // its number
	sweep               int32
}

// table is what figures are kept together: by transport, and those of checks before jobs by themselves, which are
// brief, with other messages, and no part of what the page shows.
type table struct {
	over  fleet.Transport
	check bool
}

// newView makes one that knows a network; silence is after how long without a beat a node counts as unreachable,
// 0 for what health takes.
func newView(network *cluster.Cluster, unreachable time.Duration) *View {
	return &View{
		network: network, leaves: leavesOf(network),
		publishers: map[fleet.Name]*received{}, nodes: map[fleet.Name]*node{}, orders: map[string]*order{},
		numbers: map[fleet.Name]uint32{}, cells: map[table]map[uint64]cell{}, findings: map[string]finding.Finding{},
		ignored: map[string]int{}, notices: notices{of: map[string]map[string]*notice{}},
		hist: health.New(unreachable),
	}
}

// Apply folds one entry into the view. It is false for one that was known, or that says
// what its publisher cannot say.
func (v *View) Apply(e Entry) (taken bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Seq <= v.stream.seq {
		return false
	}
	v.stream.follows(e.Seq, e.Stored)
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
	if known && n.Seq <= last.seq && !at.After(last.at) {
		return v.ignore("said before")
	}
	last.follows(n.Seq, at)
	if n.Node == "" {
		return v.server(n, at)
	}
	return v.node(n, at)
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
		return v.order(n.Order, at)
	case fleet.KindFinding:
		return v.finding(n.Finding)
	case fleet.KindTokens:
		return v.forget(n.Tokens)
	}
	return v.ignore("kind")
}

// finding keeps what is wrong, and what no longer is among what was.
func (v *View) finding(f *finding.Finding) bool {
	_, holds := v.findings[f.ID]
	switch {
	case f.ID == "" || len(f.ID) > 4*maxText || len(f.Text) > 16<<10:
		return v.ignore("malformed")
	case !holds && len(v.findings) >= maxFindings:
		return v.ignore("too many findings")
	}
	if f.Cleared.IsZero() {
		v.findings[f.ID] = *f
		return true
	}
	if holds {
		v.past = append(v.past, *f)
		v.past = slices.Delete(v.past, 0, max(0, len(v.past)-maxPast))
	}
	delete(v.findings, f.ID)
	return true
}

// readTo tells that there is nothing more up to a number.
func (v *View) readTo(seq uint64, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seq > v.stream.seq { // what the store counts and does not show is missing
		v.stream.follows(seq+1, now)
		v.stream.seq = seq
	}
}

// Seq is the number of the last entry that is in the view.
func (v *View) Seq() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.stream.seq
}

// lastOf is the last number of a publisher.
func (v *View) lastOf(n fleet.Name) uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if r := v.publishers[n]; r != nil {
		return r.seq
	}
	return 0
}

// Ignored counts entries that were not taken, by reason.
func (v *View) Ignored() map[string]int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return maps.Clone(v.ignored)
}

// Collectives are the last that were measured, the newest last.
func (v *View) Collectives() []fleet.Collective {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return append([]fleet.Collective{}, v.kept...)
}

// maxSamples bounds the samples of one part: a pair has two for each of its rails.
const maxSamples = 64

// stopped is what an agent says of a part that it was told to stop.
const stopped = "stopped"

// measured folds the outcome of a part. A node speaks of pairs that it is in, of orders that
// there are, and of sweeps that have begun.
func (v *View) measured(name fleet.Name, s *node, m *fleet.Measured, at time.Time) bool {
	o := v.orders[m.Order]
	if o == nil {
		return v.ignore("unknown order")
	}
	sweep := o.sweeps[m.Sweep]
	switch {
	case sweep == nil:
		return v.ignore("unknown sweep")
	case m.Round < 0 || m.Took < 0 || len(m.Part) > 2*maxText || len(m.Pairs) > maxSamples:
		return v.ignore("absurd values")
	case o.nodes != nil && !o.nodes[name]:
		return v.ignore("no part of the order")
	}
	switch {
	case m.Failed == stopped && m.Peer == "":
		return true // as it was told to
	case m.Failed != "":
		s.state.Failed, s.state.FailedAt = cut(m.Failed), at
		return v.failed(name, o, m, sweep)
	case len(m.Results) == 0:
		return v.pairs(name, o, m, sweep, at)
	case o.What.Measure != fleet.MeasureCollective:
		return v.ignore("absurd values")
	case sweep.lead != "" && sweep.lead != name:
		return v.ignore("not rank 0")
	}
	if !v.collective(name, m, at) {
		return false
	}
	if m.Sweep == o.Sweep { // it has one part, whoever speaks of it
		o.good, o.bad = 1, 0
	}
	return true
}

// peer tells whether a node is one that another may have been measured with.
func (v *View) peer(o *order, name, peer fleet.Name) bool {
	return peer != name && v.nodes[peer] != nil && (o.nodes == nil || o.nodes[peer])
}

// pairs folds both directions of a pair, over one rail or several.
func (v *View) pairs(name fleet.Name, o *order, m *fleet.Measured, sweep *begun, at time.Time) bool {
	for _, p := range m.Pairs {
		peer := p.To
		if p.To == name {
			peer = p.From
		}
		switch {
		case p.From != name && p.To != name || peer != m.Pairs[0].To && peer != m.Pairs[0].From:
			return v.ignore("another's pair")
		case !v.peer(o, name, peer):
			return v.ignore("unknown peer")
		case !saneRate(p.Rate) || !saneRate(p.Both) || !saneTime(p.Latency) || len(p.Rail) > maxText ||
			p.Rate == 0 && p.Latency == 0 && p.Failed == "":
			return v.ignore("absurd values")
		case !sweep.partner(o.Rounds, v.number(name), v.number(peer)):
			return v.ignore("more partners than rounds")
		}
	}
	cells := v.cells[o.table(sweep.over)]
	if cells == nil {
		cells = map[uint64]cell{}
		v.cells[o.table(sweep.over)] = cells
	}
	for _, p := range worstRails(m.Pairs) {
		from, to := v.number(p.From), v.number(p.To)
		if m.Sweep == o.Sweep {
			o.mark(from, to, true)
		}
		key := uint64(from)<<32 | uint64(to)
		old, known := cells[key]
		// A clock that was ahead for a while must not keep the figures of that time for ever.
		newer := at.Unix() >= old.at || old.order == o.number && int32(m.Sweep) > old.sweep
		if known && newer || !known && len(cells) < maxCells {
			cells[key] = cell{
				float32(p.Rate), float32(p.Both), float32(p.Latency.Seconds()), v.number(name), at.Unix(), o.number,
				int32(m.Sweep),
			}
		}
	}
	v.sample(o, sweep, m, func(h *health.History, s health.Sample) {
		for _, p := range m.Pairs {
			s.From, s.To, s.Rail, s.Rate, s.Latency = string(p.From), string(p.To), p.Rail, p.Rate, p.Latency
			s.Error = cut(says(name, p.Failed))
			h.Add(s)
		}
	})
	return true
}

// sample feeds the statistics with pairs of a sweep. A check before a job is a brief look at a few nodes: neither a
// fault nor its end is shown by one.
func (v *View) sample(o *order, b *begun, m *fleet.Measured, feed func(*health.History, health.Sample)) {
	s := health.Sample{
		By: string(b.over), Sweep: m.Order + "/" + strconv.Itoa(m.Sweep), Time: b.at, Setup: setupOf(&o.Order),
	}
	if o.Job == "" {
		v.history(func(h *health.History) { feed(h, s) })
	}
}

// worstRails are the directions of a pair, each with the worst figures of its rails: one that is slow holds up a job
// that uses all.
func worstRails(list []fleet.PairSample) (worst []fleet.PairSample) {
	for _, p := range list {
		if p.Failed != "" {
			p.Rate, p.Both, p.Latency = 1, 0, 0 // a byte a second: nothing gets through
		}
		i := slices.IndexFunc(worst, func(w fleet.PairSample) bool { return w.From == p.From && w.To == p.To })
		if i < 0 {
			worst = append(worst, p)
			continue
		}
		w := &worst[i]
		w.Rate, w.Both, w.Latency = min(w.Rate, p.Rate), min(w.Both, p.Both), max(w.Latency, p.Latency)
	}
	return worst
}

// failed keeps that a part could not be measured: a pair, over no rail that it was measured over before.
func (v *View) failed(name fleet.Name, o *order, m *fleet.Measured, sweep *begun) bool {
	current := m.Sweep == o.Sweep
	switch {
	case o.What.Measure != fleet.MeasurePairs:
		if current && o.good == 0 {
			o.bad = 1
		}
		return true
	case !v.peer(o, name, m.Peer) || o.State == fleet.Cancelled: // who was stopped first is nobody's fault
		return true
	case !sweep.partner(o.Rounds, v.number(name), v.number(m.Peer)):
		return v.ignore("more partners than rounds")
	case current:
		o.mark(v.number(name), v.number(m.Peer), false)
	}
	v.sample(o, sweep, m, func(h *health.History, s health.Sample) {
		s.Error = cut(says(name, m.Failed))
		for _, d := range [][2]fleet.Name{{name, m.Peer}, {m.Peer, name}} {
			s.From, s.To = string(d[0]), string(d[1])
			ways := slices.DeleteFunc(h.Ways(s.From, s.To), func(w health.Way) bool { return w.By != s.By })
			if len(ways) == 0 {
				ways = []health.Way{{By: s.By}}
			}
			for _, w := range ways {
				s.Rail = w.Rail
				h.Add(s)
			}
		}
	})
	return true
}

// key is that of a direction; false where one of both was never measured, or they are one. The caller holds mu.
func (v *View) key(a, b fleet.Name) (key uint64, ok bool) {
	x, ok1 := v.numbers[a]
	y, ok2 := v.numbers[b]
	return uint64(x)<<32 | uint64(y), ok1 && ok2 && a != b
}

// names are those of nodes by their numbers. The caller holds mu.
func (v *View) names() []fleet.Name {
	list := make([]fleet.Name, len(v.numbers))
	for n, i := range v.numbers {
		list[i] = n
	}
	return list
}

// number is a node's, small for the keys of cells.
func (v *View) number(n fleet.Name) uint32 {
	i, ok := v.numbers[n]
	if !ok {
		i = uint32(len(v.numbers))
		v.numbers[n] = i
	}
	return i
}

// collective keeps rows that stand by themselves. What a node says again takes the place of what it
// said, so that none drives out what others measured.
func (v *View) collective(name fleet.Name, m *fleet.Measured, at time.Time) bool {
	if n := len(m.Results.Rows()); n == 0 || n > maxRecords {
		return v.ignore("absurd values")
	}
	for _, s := range m.Results {
		if s.Check() != nil {
			return v.ignore("absurd values")
		}
	}
	v.kept = append(slices.DeleteFunc(v.kept, func(k fleet.Collective) bool {
		return k.Node == name && k.Order == m.Order && k.Sweep == m.Sweep
	}), fleet.Collective{At: at, Node: name, Order: m.Order, Sweep: m.Sweep, Results: m.Results})
	v.kept = slices.Delete(v.kept, 0, max(0, len(v.kept)-maxKept))
	return true
}

// node is what is known of a node from what it sent.
type node struct {
	state  fleet.NodeState
	joined *fleet.Joined // without its map; nil where it only ever said other things
	left   bool
	// forgotten is one that was taken out, and is not shown.
	forgotten bool
	mapped    json.RawMessage
	links     map[string]fleet.PortState
}

// node folds what a node said about itself.
func (v *View) node(n *fleet.Event, at time.Time) bool {
	s := v.nodes[n.Node]
	if s == nil {
		s = &node{
			state: fleet.NodeState{Name: n.Node, State: fleet.NodeUnreachable, Age: -1, AgeS: -1},
			links: map[string]fleet.PortState{},
		}
		v.nodes[n.Node] = s
	}
	if at.After(s.state.Received) {
		s.state.Received = at
	}
	switch n.Kind {
	case fleet.KindJoined:
		v.join(n.Node, s, n.Joined, at)
	case fleet.KindLeft:
		s.left = true
		v.changes++
		v.notices.drop(n.Node)
		v.history(func(h *health.History) { h.Forget(string(n.Node)) })
	case fleet.KindLink:
		return v.link(n.Node, s, n.Link, at)
	case fleet.KindCounters:
		return v.counters(n.Node, n.Counters, at)
	case fleet.KindMeasured:
		return v.measured(n.Node, s, n.Measured, at)
	default: // a server's, or of a newer version
		return v.ignore("kind")
	}
	return true
}

// join takes what a node has. A map that is too long is left out; the node counts all the same.
func (v *View) join(name fleet.Name, s *node, j *fleet.Joined, at time.Time) {
	kept := *j
	kept.Map = nil
	kept.Version, kept.Boot, kept.Meet, kept.Bind = cut(j.Version), cut(j.Boot), cut(j.Meet), cut(j.Bind)
	kept.CPUs = min(max(j.CPUs, 0), 1<<16)
	kept.Means = slices.Clone(j.Means[:min(len(j.Means), len(fleet.Transports()))])
	for i, m := range kept.Means {
		kept.Means[i] = fleet.Means{By: fleet.Transport(cut(string(m.By))), Why: cut(m.Why)}
	}
	if s.joined != nil && !s.left && reflect.DeepEqual(*s.joined, kept) && bytes.Equal(s.mapped, j.Map) {
		return // it says again what it sent, and came when it came
	}
	why := ""
	v.maps -= len(s.mapped)
	s.mapped = nil
	if len(j.Map) > maxMap || v.maps+len(j.Map) > maxMaps {
		v.ignored["map too long"]++
		why = fmt.Sprintf("its map has %d bytes; at most %d are accepted", len(j.Map), maxMap)
	} else {
		s.mapped = j.Map
	}
	v.maps += len(s.mapped)
	v.changes++
	s.joined, s.left, s.forgotten = &kept, false, false
	n := &s.state
	n.Joined, n.Version, n.Meet, n.Bind, n.CPUs = at, kept.Version, kept.Meet, kept.Bind, kept.CPUs
	p, err := place(nodeMap{name, s.mapped}, v.leaves[string(name)])
	if err != nil && why == "" {
		why = "its map cannot be read: " + err.Error()
	}
	if v.notices.drop(name); why != "" {
		v.setAside(name, why)
	}
	v.history(func(h *health.History) { h.SetPlace(string(name), p) })
}

// cut bounds a word, and takes out what would move the cursor of who prints it.
func cut(s string) string {
	s = strings.ToValidUTF8(strings.Clone(s[:min(len(s), maxText)]), "") // a piece would hold the whole
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// plain reports a word that cut leaves as it is.
func plain(s string) bool { return cut(s) == s }

func (v *View) link(name fleet.Name, s *node, l *fleet.Link, at time.Time) bool {
	if l.Port == "" || !plain(l.Port) || !saneRate(l.Rate) {
		return v.ignore("absurd values")
	}
	old, known := s.links[l.Port]
	if !known && len(s.links) >= maxPorts {
		return v.ignore("too many ports")
	}
	p := fleet.PortState{Port: l.Port, Up: l.Up, Rate: l.Rate, State: cut(l.State), Since: at}
	if known && old.Up == p.Up && old.Rate == p.Rate && old.State == p.State {
		p.Since = old.Since
	}
	s.links[l.Port] = p
	v.history(func(h *health.History) {
		h.Link(string(name), l.Port, l.Up, at)
	})
	return true
}

// counters feeds the statistics, which bound what they keep of a node.
func (v *View) counters(name fleet.Name, c *fleet.Counters, at time.Time) bool {
	v.history(func(h *health.History) {
		for _, port := range slices.Sorted(maps.Keys(c.Values)) {
			for _, counter := range slices.Sorted(maps.Keys(c.Values[port])) {
				if plain(port) && plain(counter) {
					h.Count(string(name), port, counter, c.Values[port][counter], at)
				}
			}
		}
	})
	return true
}

// saneRate refuses rates that nothing has.
func saneRate(r unit.Rate) bool { return r >= 0 && r <= 1e13 }

// saneTime refuses latencies that nobody waits for.
func saneTime(t unit.Time) bool { return t >= 0 && t <= 1000*unit.Second }

// order is an order and how far its sweep is.
type order struct {
	fleet.Order
	number   uint32    // its place among all orders, from 1 on
	given    time.Time // when it was first heard of
	received time.Time
	nodes    map[fleet.Name]bool // nil: all
	// done holds the pairs of the running sweep that ended, true where they were measured.
	done      map[uint64]bool
	good, bad int
	sweeps    map[int]*begun
}

// begun is a sweep as the server says that it began. Nodes say what came of it, and in the wrong hands would move it in
// time or speak of sweeps that nobody remembers, until the statistics have forgotten those that were.
type begun struct {
	at   time.Time
	lead fleet.Name // of a collective; empty where the server did not say
	over fleet.Transport
	// told are the partners that nodes spoke of, by their numbers, where an order has few rounds.
	told map[uint32][]uint32
}

// mostBegun is of how many sweeps of an order outcomes are taken: a node may have been cut off for a while.
const mostBegun = 64

// begins notes the sweep that a word about an order is about.
func (o *order) begins(next *fleet.Order, at time.Time) {
	if next.Sweep < 1 {
		return
	}
	b := o.sweeps[next.Sweep]
	if b == nil {
		b = &begun{at: at, told: map[uint32][]uint32{}}
		if !next.Ran.IsZero() {
			b.at = next.Ran
		}
		o.sweeps[next.Sweep] = b
		maps.DeleteFunc(o.sweeps, func(n int, _ *begun) bool { return n <= next.Sweep-mostBegun })
	}
	b.lead, b.over = cmp.Or(next.Lead, b.lead), cmp.Or(next.Over, b.over)
}

// partner tells whether a node may speak of a pair with another: it has one partner in a round, and with few rounds
// few, also where a server died and the next one paired them anew. A node in the wrong hands would claim a pair with
// everybody, and there outnumber what was measured.
func (b *begun) partner(rounds int, node, other uint32) bool {
	if rounds == 0 || slices.Contains(b.told[node], other) {
		return true
	}
	if len(b.told[node]) >= 2*rounds {
		return false
	}
	b.told[node] = append(b.told[node], other)
	return true
}

// setupOf says how an order measures pairs, as far as figures depend on it: sweeps with other
// words are not compared as a whole.
func setupOf(o *fleet.Order) string {
	text := fmt.Sprintf("%v messages, %d times", o.What.Large, o.What.Iters)
	if o.Caps.Rate > 0 {
		text += fmt.Sprintf(", at most %v", o.Caps.Rate)
	}
	if o.AtOnce > 0 {
		text += fmt.Sprintf(", %d concurrent pairs", o.AtOnce)
	}
	switch {
	case o.Caps.Always:
		text += ", beside jobs"
	case o.Caps.Busy > 0 && o.Caps.Busy != fleet.DefaultBusy:
		text += fmt.Sprintf(", with other traffic of up to %v", o.Caps.Busy)
	}
	return text
}

// table is where figures of the order are kept.
func (o *order) table(over fleet.Transport) table { return table{over, o.Job != ""} }

// mark notes that a pair of the running sweep ended. A figure counts more than a failure.
func (o *order) mark(a, b uint32, good bool) {
	key := undirected(uint64(a)<<32 | uint64(b))
	was, known := o.done[key]
	switch {
	case known && (was || !good):
		return
	case known:
		o.bad--
	}
	o.done[key] = good
	if good {
		o.good++
	} else {
		o.bad++
	}
}

// order folds a word about an order. Nothing follows one that is final, and sweeps only go up,
// so that two servers that speak at once do not wake what was cancelled.
func (v *View) order(next *fleet.Order, at time.Time) bool {
	if next.ID == "" || next.Check() != nil {
		return v.ignore("malformed")
	}
	o := v.orders[next.ID]
	switch {
	case o == nil:
		if len(v.orders) >= maxOrders+maxFinal {
			return v.ignore("too many orders")
		}
		v.numbered++
		o = &order{number: v.numbered, given: at, sweeps: map[int]*begun{}, done: map[uint64]bool{}}
		for _, n := range next.Nodes {
			if o.nodes == nil {
				o.nodes = map[fleet.Name]bool{}
			}
			o.nodes[n] = true
		}
		v.orders[next.ID] = o
		v.given = append(v.given, next.ID)
	case o.Final():
		return v.ignore("order is over")
	case next.Sweep < o.Sweep && !next.Final():
		return v.ignore("earlier sweep")
	case next.Sweep > o.Sweep:
		o.done, o.good, o.bad = map[uint64]bool{}, 0, 0
	}
	o.begins(next, at)
	sweep := max(o.Sweep, next.Sweep)
	o.Order, o.received = *next, at
	o.Sweep = sweep
	o.bad = max(o.bad, next.FailedParts) // also in the eyes of the server alone
	v.forgetOrders()
	return true
}

// forgetOrders drops the oldest of those that are over.
func (v *View) forgetOrders() {
	final := 0
	for _, id := range v.given {
		if v.orders[id].Final() {
			final++
		}
	}
	v.given = slices.DeleteFunc(v.given, func(id string) bool {
		if final <= maxFinal || !v.orders[id].Final() {
			return false
		}
		final--
		delete(v.orders, id)
		return true
	})
}

func (o *order) state(now time.Time) fleet.OrderState {
	s := fleet.OrderState{Order: o.Order, Given: o.given, Received: o.received, Measured: o.good, Failed: o.bad}
	if o.State != fleet.Running && o.Parts > 0 {
		s.Failed = max(0, min(o.bad, o.Parts-o.good)) // nodes may have spoken after the sweep had ended
		s.LeftOut = max(0, o.Parts-o.good-s.Failed)
	}
	if o.State == fleet.Waiting {
		s.Next = due(&o.Order, o.given, now)
	}
	return s
}

// Orders lists all orders, the earliest first.
func (v *View) Orders(now time.Time) []fleet.OrderState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]fleet.OrderState, 0, len(v.given))
	for _, id := range v.given {
		out = append(out, v.orders[id].state(now))
	}
	return out
}

// Order is one of them.
func (v *View) Order(id string, now time.Time) (fleet.OrderState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	o := v.orders[id]
	if o == nil {
		return fleet.OrderState{}, false
	}
	return o.state(now), true
}

// isMeasured tells whether a pair of the running sweep was measured.
func (v *View) isMeasured(sweep *fleet.Order, ranks []fleet.Name) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	o := v.orders[sweep.ID]
	if o == nil || o.Sweep != sweep.Sweep || len(ranks) != 2 {
		return false
	}
	k, ok := v.key(ranks[0], ranks[1])
	return ok && o.done[undirected(k)]
}

// undirected is the key of a pair, whichever way.
func undirected(key uint64) uint64 { return max(key, key<<32|key>>32) }
