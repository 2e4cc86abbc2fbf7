package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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

	stream     received
	publishers map[fleet.Name]*received
	nodes      map[fleet.Name]*node
	maps       int // bytes of all maps
	orders     map[string]*order
	given      []string // ids of orders, the earliest first
	numbers    map[fleet.Name]uint32
	cells      map[fleet.Transport]map[uint64]cell
	// the same of checks before jobs: brief, with other messages, and no part of what the page shows
	checks   map[fleet.Transport]map[uint64]cell
	kept     []fleet.Collective
	findings map[string]*finding.Finding
	past     []finding.Finding // that are over
	ignored  map[string]int    // by reason
	aside    map[fleet.Name]aside
	changes  uint64 // of maps, so that the joined cluster is made again

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
		publishers: map[fleet.Name]*received{}, nodes: map[fleet.Name]*node{}, orders: map[string]*order{},
		numbers: map[fleet.Name]uint32{}, cells: cellMaps(), checks: cellMaps(), findings: map[string]*finding.Finding{},
		ignored: map[string]int{}, aside: map[fleet.Name]aside{}, hist: health.New(health.Options{Unreachable: unreachable}),
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

// maxSamples bounds the samples of one part: a pair has two for each of its rails.
const maxSamples = 64

// stopped is what an agent says of a part that it was told to stop.
const stopped = "stopped"

// measured folds the outcome of a part. A node speaks of pairs that it is in, of orders that
// there are, and of sweeps that have begun.
func (v *View) measured(name fleet.Name, s *node, m *fleet.Measured, at time.Time) bool {
	o := v.orders[m.Order]
	var sweep begun
	began := false
	if o != nil {
		sweep, began = o.sweeps[m.Sweep]
	}
	switch {
	case o == nil:
		return v.ignore("unknown order")
	case m.Sweep < 1 || m.Sweep > o.Order.Sweep || m.Round < 0 || m.Took < 0 || len(m.Part) > 2*maxText ||
		len(m.Pairs) > maxSamples:
		return v.ignore("absurd values")
	case o.nodes != nil && !o.nodes[name]:
		return v.ignore("no part of the order")
	case !began:
		return v.ignore("earlier sweep")
	}
	v.own(o, name, m, sweep.at)
	if m.Failed == stopped && m.Peer == "" {
		return true // as it was told to
	}
	if m.Failed != "" {
		if m.Peer != "" && !v.partner(o, &sweep, name, m.Peer) {
			return v.ignore("more partners than rounds")
		}
		s.lastFailed, s.lastFailedAt = cut(m.Failed), at
		v.failed(name, o, m, &sweep)
		return true
	}
	if len(m.Results) > 0 {
		switch {
		case o.Order.What.Measure != fleet.MeasureCollective:
			return v.ignore("absurd values")
		case sweep.lead != "" && sweep.lead != name:
			return v.ignore("not rank 0")
		}
		if !v.collective(name, m, at) {
			return false
		}
		if m.Sweep == o.Order.Sweep { // it has one part, whoever speaks of it
			o.good, o.bad = 1, 0
		}
		return true
	}
	for _, p := range m.Pairs {
		peer := p.To
		if p.To == name {
			peer = p.From
		}
		switch {
		case p.From == p.To || p.From != name && p.To != name || peer != m.Pairs[0].To && peer != m.Pairs[0].From:
			return v.ignore("another's pair")
		case v.nodes[peer] == nil || o.nodes != nil && !o.nodes[peer]:
			return v.ignore("unknown peer")
		case !saneRate(p.Rate) || !saneRate(p.Both) || !saneTime(p.Latency) || len(p.Rail) > maxText ||
			p.Rate == 0 && p.Latency == 0 && p.Failed == "":
			return v.ignore("absurd values")
		case !v.partner(o, &sweep, name, peer):
			return v.ignore("more partners than rounds")
		}
	}
	for _, p := range worstRails(m.Pairs) {
		v.pair(o, name, m, sweep.over, p, at)
	}
	if o.Job == "" { // else a brief look at a few nodes: neither a fault nor its end is shown by one
		list, id, setup := m.Pairs, sweepName(m.Order, m.Sweep), o.setup
		v.history(func(h *health.History) {
			for _, p := range list {
				h.Add(health.Sample{
					By: string(sweep.over), Rail: p.Rail, Sweep: id, Time: sweep.at, From: string(p.From), To: string(p.To),
					Rate: p.Rate, Latency: p.Latency, Error: cut(says(name, p.Failed)), Setup: setup,
				})
			}
		})
	}
	return true
}

// partner tells whether a node may speak of a pair with another.
func (v *View) partner(o *order, b *begun, node, other fleet.Name) bool {
	return v.nodes[other] == nil || b.partner(o.Order.Rounds, v.number(node), v.number(other))
}

// sweepName is a sweep in the statistics.
func sweepName(order string, sweep int) string { return order + "/" + strconv.Itoa(sweep) }

// pair keeps one direction, as a node says it is.
func (v *View) pair(o *order, by fleet.Name, m *fleet.Measured, over fleet.Transport, p fleet.PairSample,
	at time.Time,
) {
	from, to := v.number(p.From), v.number(p.To)
	if m.Sweep == o.Order.Sweep {
		o.mark(from, to, true)
	}
	key := uint64(from)<<32 | uint64(to)
	cells := v.last(o, over)
	if old, known := cells[key]; known || len(cells) < maxCells {
		// A clock that was ahead for a while must not keep the figures of that time for ever.
		if at.Unix() >= old.at || old.order == o.number && int32(m.Sweep) > old.sweep {
			cells[key] = cell{
				float32(p.Rate), float32(p.Both), float32(p.Latency.Seconds()), v.number(by),
				at.Unix(), o.number, int32(m.Sweep),
			}
		}
	} else {
		v.ignored["too many pairs"]++
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

// failed keeps that a pair could not be measured, over no rail that it was measured over before.
func (v *View) failed(name fleet.Name, o *order, m *fleet.Measured, sweep *begun) {
	known := m.Peer != "" && m.Peer != name && v.nodes[m.Peer] != nil && (o.nodes == nil || o.nodes[m.Peer])
	if o.Order.What.Measure != fleet.MeasurePairs {
		if m.Sweep == o.Order.Sweep && o.good == 0 {
			o.bad = 1
		}
		return
	}
	if !known || o.State == fleet.Cancelled { // who was stopped first is nobody's fault
		return
	}
	if m.Sweep == o.Order.Sweep {
		o.mark(v.number(name), v.number(m.Peer), false)
	}
	if o.Job != "" {
		return
	}
	for _, d := range [][2]fleet.Name{{name, m.Peer}, {m.Peer, name}} {
		s := health.Sample{
			By: string(sweep.over), Sweep: sweepName(m.Order, m.Sweep), Time: sweep.at, From: string(d[0]), To: string(d[1]),
			Error: cut(says(name, m.Failed)), Setup: o.setup,
		}
		v.history(func(h *health.History) {
			ways := slices.DeleteFunc(h.Ways(s.From, s.To), func(w health.Way) bool { return w.By != s.By })
			if len(ways) == 0 {
				ways = []health.Way{{By: s.By}}
			}
			for _, w := range ways {
				s.Rail = w.Rail
				h.Add(s)
			}
		})
	}
}

// own keeps how long a node took for its own work before a collective, for the statistics of who is late again and
// again. Only its own word counts: whoever speaks for others could have any of them drained.
func (v *View) own(o *order, name fleet.Name, m *fleet.Measured, at time.Time) {
	if o.Job != "" || o.Order.What.Measure != fleet.MeasureCollective || len(m.Own) > fleet.MaxNodes {
		return
	}
	for _, w := range m.Own {
		switch {
		case w.Node != name:
			v.ignored["another's time"]++
		case w.Spent <= 0 || !saneTime(w.Spent):
			v.ignored["absurd values"]++
		default:
			v.history(func(h *health.History) {
				h.Work(health.Work{Op: sweepName(m.Order, m.Sweep), Node: string(name), Time: at, Spent: w.Spent})
			})
		}
	}
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
	c := fleet.Collective{At: at, Node: name, Order: m.Order, Sweep: m.Sweep, Results: m.Results}
	kept := make([]fleet.Collective, 0, len(v.kept)+1)
	for _, k := range v.kept { // made anew: others may be reading the old one
		if k.Node != name || k.Order != m.Order || k.Sweep != m.Sweep {
			kept = append(kept, k)
		}
	}
	kept = append(kept, c)
	v.kept = kept[max(0, len(kept)-maxKept):]
	return true
}

// node is what is known of a node from what it sent.
type node struct {
	joined     *fleet.Joined // without its map; nil where it only ever said other things
	joinedAt   time.Time
	receivedAt time.Time
	left       bool
	// forgotten is one that was taken out, and is not shown.
	forgotten bool
	mapped    json.RawMessage
	links     map[string]fleet.PortState
	errors    map[string]map[string]uint64
	boot      string
	// lastFailed is the last thing that this node could not measure.
	lastFailed   string
	lastFailedAt time.Time
}

// node folds what a node said about itself.
func (v *View) node(n *fleet.Event, at time.Time) bool {
	s := v.nodes[n.Node]
	if s == nil {
		s = &node{links: map[string]fleet.PortState{}, errors: map[string]map[string]uint64{}}
		v.nodes[n.Node] = s
	}
	if at.After(s.receivedAt) {
		s.receivedAt = at
	}
	switch n.Kind {
	case fleet.KindJoined:
		v.join(n.Node, s, n.Joined, at)
	case fleet.KindLeft:
		s.left = true
		v.changes++
		v.history(addForget(n.Node))
	case fleet.KindLink:
		return v.link(n.Node, s, n.Link, at)
	case fleet.KindCounters:
		return v.counters(n.Node, s, n.Counters, at)
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
	if o := s.joined; o != nil && !s.left && o.Version == kept.Version && o.Boot == kept.Boot && o.Meet == kept.Meet &&
		o.Bind == kept.Bind &&
		o.CPUs == kept.CPUs && slices.Equal(o.Means, kept.Means) && bytes.Equal(s.mapped, j.Map) {
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
	s.joined, s.joinedAt, s.left, s.forgotten, s.boot = &kept, at, false, false, kept.Boot
	p, err := place(nodeMap{name, s.mapped}, v.leaves[string(name)])
	if err != nil && why == "" {
		why = "its map cannot be read: " + err.Error()
	}
	if delete(v.aside, name); why != "" {
		v.setAside(name, at, why)
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
	v.history(addLink(name, l, at))
	return true
}

func (v *View) counters(name fleet.Name, s *node, c *fleet.Counters, at time.Time) bool {
	if c.Boot != s.boot { // they begin anew
		s.boot = cut(c.Boot)
		clear(s.errors)
	}
	taken := 0
	for _, port := range slices.Sorted(maps.Keys(c.Values)) {
		values := c.Values[port]
		if s.errors[port] == nil {
			if len(s.errors) >= maxPorts || !plain(port) {
				continue
			}
			s.errors[port] = map[string]uint64{}
		}
		for _, counter := range slices.Sorted(maps.Keys(values)) {
			_, known := s.errors[port][counter]
			if !known && (len(s.errors[port]) >= maxCounters || !plain(counter)) {
				continue
			}
			s.errors[port][counter] = values[counter]
			taken++
			v.history(addCounter(name, port, counter, values[counter], at))
		}
	}
	if taken == 0 && len(c.Values) > 0 {
		return v.ignore("too many counters")
	}
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
	setup     string // see setupOf
	sweeps    map[int]begun
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
	if next.Sweep < 1 || next.Sweep <= o.Sweep-mostBegun {
		return
	}
	b, known := o.sweeps[next.Sweep]
	switch {
	case known:
	case next.Ran.IsZero():
		b.at = at
	default:
		b.at = next.Ran
	}
	if next.Lead != "" {
		b.lead = next.Lead
	}
	if next.Over != fleet.TCP {
		b.over = next.Over
	}
	if b.told == nil && next.Rounds > 0 {
		b.told = map[uint32][]uint32{}
	}
	if o.sweeps == nil {
		o.sweeps = map[int]begun{}
	}
	o.sweeps[next.Sweep] = b
	maps.DeleteFunc(o.sweeps, func(n int, _ begun) bool { return n <= next.Sweep-mostBegun })
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

// mark notes that a pair of the running sweep ended. A figure counts more than a failure.
func (o *order) mark(a, b uint32, good bool) {
	key := uint64(min(a, b))<<32 | uint64(max(a, b))
	was, known := o.done[key]
	switch {
	case known && (was || !good):
		return
	case known:
		o.bad--
	}
	if o.done == nil {
		o.done = map[uint64]bool{}
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
	if o != nil {
		o.begins(next, at)
	}
	switch {
	case o == nil:
		if len(v.orders) >= maxOrders+maxFinal {
			return v.ignore("too many orders")
		}
		o = &order{number: uint32(len(v.orders)) + 1, given: at}
		if len(v.given) > 0 {
			o.number = v.orders[v.given[len(v.given)-1]].number + 1
		}
		for _, n := range next.Nodes {
			if o.nodes == nil {
				o.nodes = map[fleet.Name]bool{}
			}
			o.nodes[n] = true
		}
		o.begins(next, at)
		v.orders[next.ID] = o
		v.given = append(v.given, next.ID)
	case o.Final():
		return v.ignore("order is over")
	case next.Sweep < o.Sweep && !next.Final():
		return v.ignore("earlier sweep")
	case next.Sweep > o.Sweep:
		o.done, o.good, o.bad = nil, 0, 0
	}
	sweep := max(o.Sweep, next.Sweep)
	o.Order, o.received, o.setup = *next, at, setupOf(next)
	o.Sweep = sweep
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
		failed := 0
		for _, r := range o.Reasons {
			if !r.LeftOut {
				failed += r.Parts
			}
		}
		// Nodes may have spoken after the sweep had ended.
		s.Failed = max(0, min(max(o.bad, failed), o.Parts-o.good))
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

// failures counts, for each node, with how many others of a sort its pairs of the running sweep failed.
func (v *View) failures(id string, sweep int, is func(fleet.Name) bool) map[fleet.Name]int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	count := map[fleet.Name]int{}
	o := v.orders[id]
	if o == nil || o.Sweep != sweep {
		return count
	}
	names := make([]fleet.Name, len(v.numbers))
	for n, i := range v.numbers {
		names[i] = n
	}
	for pair, good := range o.done {
		if good {
			continue
		}
		x, y := names[pair>>32], names[uint32(pair)]
		if is(y) {
			count[x]++
		}
		if is(x) {
			count[y]++
		}
	}
	return count
}
