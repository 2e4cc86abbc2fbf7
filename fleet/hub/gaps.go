package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"busbar.dev/fleet"
)

const (
	maxJump = 10_000_000 // numbers that a publisher may pass over; more is no loss, but a lie
	maxGaps = 256        // of one publisher
)

// received is what a publisher has said.
type received struct {
	seq  uint64
	at   time.Time
	gaps []gap // the oldest first
}

// gap is numbers of a publisher that the store does not have, and between which times they were given.
type gap struct {
	fleet.Span
	since, until time.Time // since is zero where nothing of the publisher is there from before
}

// follows takes a number. again tells that it closes a gap.
func (r *received) follows(seq uint64, at time.Time, first bool) (again bool) {
	switch {
	case first && seq > 1 && seq <= maxJump:
		r.gaps = append(r.gaps, gap{Span: fleet.Span{From: 1, To: seq - 1}, until: at})
	case !first && seq > r.seq+1 && seq-r.seq <= maxJump:
		r.gaps = append(r.gaps, gap{fleet.Span{From: r.seq + 1, To: seq - 1}, r.at, at})
	case seq <= r.seq:
		return r.fill(seq)
	}
	if len(r.gaps) > maxGaps { // the oldest two become one, and what is between them is asked for in vain
		r.gaps[1].From, r.gaps[1].since = r.gaps[0].From, r.gaps[0].since
		r.gaps = r.gaps[1:]
	}
	return false
}

// fill takes a number out of the gaps.
func (r *received) fill(seq uint64) bool {
	i := slices.IndexFunc(r.gaps, func(g gap) bool { return g.From <= seq && seq <= g.To })
	if i < 0 {
		return false
	}
	g := r.gaps[i]
	var rest []gap
	if g.From < seq {
		rest = append(rest, gap{fleet.Span{From: g.From, To: seq - 1}, g.since, g.until})
	}
	if seq < g.To {
		rest = append(rest, gap{fleet.Span{From: seq + 1, To: g.To}, g.since, g.until})
	}
	r.gaps = slices.Replace(r.gaps, i, i+1, rest...)
	return true
}

// lacks is what the store does not have of one publisher.
type lacks struct {
	node fleet.Name
	gaps []gap
}

func (l lacks) count() (n uint64) {
	for _, g := range l.gaps {
		n += g.Len()
	}
	return n
}

func (l lacks) spans() (list []fleet.Span) {
	for _, g := range l.gaps[:min(len(l.gaps), fleet.MaxSpans)] {
		list = append(list, g.Span)
	}
	return list
}

// missing is what the stream does not have, by publisher. lost is the last number of which a node says that it was
// stored, where it is not there; heads tells whether numbers count that came before the first of a publisher, which a
// store that is full drops as it should.
func (v *View) missing(lost map[fleet.Name]tail, heads bool) (list []lacks) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	names := maps.Clone(lost)
	if names == nil {
		names = map[fleet.Name]tail{}
	}
	for n, r := range v.publishers {
		if _, known := names[n]; !known && len(r.gaps) > 0 {
			names[n] = tail{}
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(names), byNumber) {
		l := lacks{node: n}
		r, known := v.publishers[n]
		if !known {
			r = &received{}
		}
		if s := v.nodes[n]; s != nil && s.forgotten {
			continue
		}
		for _, g := range r.gaps {
			if heads || !g.since.IsZero() {
				l.gaps = append(l.gaps, g)
			}
		}
		if c := names[n]; c.last > r.seq && c.last-r.seq <= maxJump && (heads || known) {
			l.gaps = append(l.gaps, gap{fleet.Span{From: r.seq + 1, To: c.last}, r.at, c.since})
		}
		if len(l.gaps) > 0 {
			list = append(list, l)
		}
	}
	return list
}

// lastOf is the greatest number of a publisher.
func (v *View) lastOf(n fleet.Name) uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if r := v.publishers[n]; r != nil {
		return r.seq
	}
	return 0
}

func (g gap) String() string {
	numbers := fmt.Sprintf("number %d", g.From)
	if g.Len() > 1 {
		numbers = fmt.Sprintf("numbers %d to %d", g.From, g.To)
	}
	if g.since.IsZero() {
		return fmt.Sprintf("%s, from before %s", numbers, g.until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s, from between %s and %s", numbers, g.since.UTC().Format(time.RFC3339),
		g.until.UTC().Format(time.RFC3339))
}

// early are outcomes that came before what they speak of, an order or a node: the store lost that, and it comes again
// behind them.
type early struct {
	waiting map[string][]postponed
	each    map[fleet.Name]int
	count   int
	over    bool // the past has been read: what comes now follows its order
}

type postponed struct {
	node fleet.Name
	m    *fleet.Measured
	at   time.Time
}

// Bounds of what waits, in all and of one node.
const (
	maxEarly     = 10_000
	maxEarlyEach = 2_000
)

// add keeps an outcome; false where that is too much.
func (e *early) add(what string, p postponed) bool {
	if e.count >= maxEarly || e.each[p.node] >= maxEarlyEach || len(what) > 2*maxText {
		return false
	}
	if e.waiting == nil {
		e.waiting, e.each = map[string][]postponed{}, map[fleet.Name]int{}
	}
	e.waiting[what] = append(e.waiting[what], p)
	e.each[p.node]++
	e.count++
	return true
}

// take gives what waits for something.
func (e *early) take(what string) []postponed {
	list := e.waiting[what]
	delete(e.waiting, what)
	e.count -= len(list)
	for _, p := range list {
		e.each[p.node]--
	}
	return list
}

// catchUp folds what waited for something.
func (v *View) catchUp(what string) {
	for _, p := range v.early.take(what) {
		if s := v.nodes[p.node]; s != nil {
			v.measured(p.node, s, p.m, p.at)
		}
	}
}

// orderMissing tells whether an order may have been lost.
func (v *View) orderMissing() bool {
	own := v.publishers[""]
	return !v.early.over || own != nil && len(own.gaps) > 0
}

// settle tells that the past has been read, and what the server lost of it is back. What then still waits for its
// order, waits in vain unless something of the server's is missing.
func (v *View) settle() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.early.over = true
	if v.orderMissing() {
		return
	}
	for what := range v.early.waiting {
		if strings.HasPrefix(what, "order ") {
			v.ignored["unknown order"] += len(v.early.take(what))
		}
	}
}
