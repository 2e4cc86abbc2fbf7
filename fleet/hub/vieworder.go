package hub

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/fleet"
)

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

// begun is a sweep as the server says that it began. Nodes say what came of it, and in the wrong hands would move it in time
// or speak of sweeps that nobody remembers, until the statistics have forgotten those that were.
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

// partner tells whether a node may speak of a pair with another: it has one partner in a round, and with few rounds few, also
// where a server died and the next one paired them anew. A node in the wrong hands would claim a pair with everybody, and
// there outnumber what was measured.
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
	v.catchUp("order " + next.ID)
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

// ended reports whether a pair of the running sweep is over already.
func (v *View) ended(id string, sweep int, a, b fleet.Name) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	o := v.orders[id]
	if o == nil || o.Sweep != sweep {
		return false
	}
	x, ok1 := v.numbers[a]
	y, ok2 := v.numbers[b]
	if !ok1 || !ok2 {
		return false
	}
	_, done := o.done[uint64(min(x, y))<<32|uint64(max(x, y))]
	return done
}
