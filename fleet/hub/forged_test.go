package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// liars is a fleet as its stream tells it, of which one node says what it likes.
type liars struct {
	t     *testing.T
	v     *View
	at    time.Time
	seq   uint64
	said  map[fleet.Name]uint64
	names []fleet.Name
}

func newLiars(t *testing.T, honest int) *liars {
	l := &liars{t: t, v: NewView(), at: time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC), said: map[fleet.Name]uint64{}}
	for i := range honest {
		l.names = append(l.names, fleet.Name(fmt.Sprintf("n%02d", i)))
	}
	for _, n := range append([]fleet.Name{"evil"}, l.names...) {
		l.say(n, fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "x:1"}}, true)
	}
	return l
}

// say applies an event; want tells whether it is to be taken.
func (l *liars) say(n fleet.Name, e fleet.Event, want bool) {
	l.t.Helper()
	l.seq++
	l.said[n]++
	l.at = l.at.Add(time.Millisecond)
	e.Node, e.Seq = n, l.said[n]
	if e.At.IsZero() {
		e.At = l.at
	}
	if got := l.v.Apply(Entry{Seq: l.seq, Stored: l.at, Publisher: n, Event: &e}); got != want {
		l.t.Fatalf("%s says %+v %+v: taken %v, want %v; ignored %v", n, e.Kind, e.Measured, got, want, l.v.Ignored())
	}
}

func (l *liars) order(o fleet.Order) {
	l.t.Helper()
	l.at = l.at.Add(time.Minute)
	o.Ran, o.Since = l.at, l.at
	l.say("", fleet.Event{Kind: fleet.KindOrder, Order: &o}, true)
}

func sweepOf(sweep, rounds int) fleet.Order {
	return fleet.Order{
		ID: "o", State: fleet.Running, Sweep: sweep, Rounds: rounds,
		What: fleet.What{Measure: fleet.MeasurePairs, Small: 8, Large: 1 << 20, Iters: 5},
	}
}

func pairOf(a, b fleet.Name, sweep int, rate unit.Rate) fleet.Event {
	return fleet.Event{
		Kind: fleet.KindMeasured, Measured: &fleet.Measured{
			Order: "o", Part: "p", Sweep: sweep,
			Pairs: []fleet.PairSample{{From: a, To: b, Rate: rate}, {From: b, To: a, Rate: rate}},
		},
	}
}

// drained are the honest nodes that the statistics would have drained.
func (l *liars) drained() (list []string) {
	l.v.ask(func(h *health.History) { list = health.Drain(h.Findings(l.at)) })
	return slices.DeleteFunc(list, func(n string) bool { return n == "evil" })
}

// TestForgedRates has a node claim enormous rates with everybody, sweep after sweep of one round: in each of them it
// would outnumber the one pair that every other node was measured in. Nobody is slow beside it.
func TestForgedRates(t *testing.T) {
	l := newLiars(t, 16)
	for sweep := 1; sweep <= 20; sweep++ {
		l.order(sweepOf(sweep, 1))
		for _, p := range pairs.Round(len(l.names), sweep%15) {
			l.say(l.names[p[0]], pairOf(l.names[p[0]], l.names[p[1]], sweep, 10*unit.GBps), true)
		}
		for i, n := range l.names {
			l.say("evil", pairOf("evil", n, sweep, 1e13), i < 2)
		}
	}
	if bad := l.drained(); len(bad) > 0 {
		t.Errorf("honest nodes would be drained: %v", bad)
	}
	if usual := unit.Rate(l.v.typical(l.v.orders["o"]).rate); usual > 20*unit.GBps {
		t.Errorf("the fleet usually shows %v, by the word of one node", usual)
	}
}

// TestForgedRails has a node claim thirty rails with everybody, on all of which but the victim's it is twice as fast:
// it has one vote, not thirty.
func TestForgedRails(t *testing.T) {
	l := newLiars(t, 7)
	for sweep := 1; sweep <= 20; sweep++ {
		l.order(sweepOf(sweep, 0))
		for i, a := range l.names {
			for _, b := range l.names[:i] {
				l.say(a, pairOf(a, b, sweep, 10*unit.GBps), true)
			}
			e := pairOf("evil", a, sweep, 10*unit.GBps)
			for r := 0; r < 30 && sweep > 10; r++ {
				for _, p := range e.Measured.Pairs[:2] {
					p.Rail = fmt.Sprint("made-up", r)
					if i > 0 {
						p.Rate *= 2
					}
					e.Measured.Pairs = append(e.Measured.Pairs, p)
				}
			}
			l.say("evil", e, true)
		}
		if bad := l.drained(); len(bad) > 0 {
			t.Fatalf("sweep %d: honest nodes would be drained: %v", sweep, bad)
		}
	}
}

// TestForgedTimes has a node speak of sweeps at other times than they were, and of ones that nobody remembers. The
// order of sweeps is the server's word, and what the statistics know stays.
func TestForgedTimes(t *testing.T) {
	l := newLiars(t, 4)
	const sweeps = 100
	for sweep := 1; sweep <= sweeps; sweep++ {
		l.order(sweepOf(sweep, 0))
		l.say("n00", pairOf("n00", "n01", sweep, 10*unit.GBps), true)
	}
	history := func() (list []health.Point) {
		l.v.ask(func(h *health.History) { list = h.Pair("n00", "n01", health.Way{}) })
		return list
	}
	before := history()
	if len(before) != sweeps {
		t.Fatalf("%d points, want %d", len(before), sweeps)
	}
	for sweep := 1; sweep <= sweeps; sweep++ {
		e := pairOf("evil", "n01", sweep, unit.GBps)
		e.At = l.at.Add(-20 * 24 * time.Hour)
		if sweep == 1 {
			l.said["evil"] += 5000 // numbers that jump
		}
		l.say("evil", e, sweep > sweeps-mostBegun)
	}
	if after := history(); !slices.Equal(before, after) {
		t.Errorf("the history of two others changed:\n%v\n%v", before[:3], after[:min(3, len(after))])
	}
	var own []health.Point
	l.v.ask(func(h *health.History) { own = h.Pair("evil", "n01", health.Way{}) })
	for _, p := range own {
		if l.at.Sub(p.Time) > 3*time.Hour {
			t.Fatalf("sweep %s is said to have been at %v", p.Sweep, p.Time)
		}
	}
}

// TestForgedCollectives has a node that is not rank 0 say what came of a collective.
func TestForgedCollectives(t *testing.T) {
	l := newLiars(t, 3)
	results := result.Sweeps{{
		Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float", Ranks: 3, Transport: "tcp",
		Points: []result.Point{{Size: 8, Out: &result.Timing{Time: result.Times{Min: 1, Median: 1, P99: 1, Mean: 1}}}},
	}}
	for sweep := 1; sweep <= 3; sweep++ {
		l.order(fleet.Order{
			ID: "c", State: fleet.Running, Sweep: sweep, Lead: "n00",
			What: fleet.What{Measure: fleet.MeasureCollective, Op: coll.AllReduce, Sizes: []unit.Bytes{8}, Iters: 1},
		})
		said := fleet.Event{
			Kind: fleet.KindMeasured, Measured: &fleet.Measured{Order: "c", Part: "p", Sweep: sweep, Results: results},
		}
		l.say("evil", said, false)
		if s, _ := l.v.Order("c", l.at); s.Measured != 0 {
			t.Error("the word of a node that is not rank 0 counts as the outcome")
		}
		l.say("n00", said, true)
	}
	if kept := l.v.Collectives(); len(kept) != 3 ||
		slices.ContainsFunc(kept, func(c fleet.Collective) bool { return c.Node == "evil" }) {
		t.Errorf("%d collectives are kept: %+v", len(kept), kept)
	}
}

// TestSlowPairOfTwo judges a check of two nodes of which one is slow, or says so: neither is drained, for nobody can
// say which. With a third, the one that is slow with both is.
func TestSlowPairOfTwo(t *testing.T) {
	l := newLiars(t, 8)
	h := New(Config{Now: func() time.Time { return l.at }})
	h.view = l.v
	l.order(sweepOf(1, 0)) // what the fleet usually shows
	for i := range l.names {
		for k := range i {
			l.say(l.names[k], pairOf(l.names[k], l.names[i], 1, 10*unit.GBps), true)
		}
	}
	check := func(id string, nodes ...fleet.Name) *fleet.Verdict {
		t.Helper()
		o := sweepOf(1, 3)
		o.ID, o.Job, o.Nodes = id, "job", nodes
		l.order(o)
		for i, b := range nodes {
			for _, a := range nodes[:i] {
				rate := 10 * unit.GBps
				if a == "evil" || b == "evil" {
					rate = unit.GBps / 10
				}
				e := pairOf(a, b, 1, rate)
				e.Measured.Order = id
				l.say(a, e, true)
			}
		}
		o.State = fleet.Done
		o.Parts = len(nodes) * (len(nodes) - 1) / 2
		l.order(o)
		v, err := h.Verdict(id)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	two := check("two", "evil", "n01")
	if len(two.Unhealthy) > 0 || len(two.Healthy) > 0 || len(two.Unmeasured) != 2 ||
		!strings.Contains(strings.Join(two.Notes, "\n"), "a third node is needed") {
		t.Errorf("of two: %+v", two)
	}
	three := check("three", "evil", "n01", "n02")
	if len(three.Unhealthy) != 1 || three.Unhealthy[0].Node != "evil" || len(three.Healthy) != 2 {
		t.Errorf("of three: %+v", three)
	}
}

// TestNumbersNearTheEnd has a node count near the greatest numbers there are: nothing wraps, no gap of as many numbers
// is reported, and what comes after counts.
func TestNumbersNearTheEnd(t *testing.T) {
	link := func(port string) fleet.Event {
		return fleet.Event{Kind: fleet.KindLink, Link: &fleet.Link{Port: port, Up: true}}
	}
	for _, c := range []struct {
		seq  uint64
		want bool
	}{
		{1<<64 - 1, false},
		{1<<64 - 2, false},
		{1 << 63, false},
		{fleet.MaxSeq + 1, false},
		{fleet.MaxSeq, true},
		{fleet.MaxSeq - 1, true},
	} {
		l := newLiars(t, 1)
		l.said["evil"] = c.seq - 1
		l.say("evil", link("a"), c.want)
		for _, m := range l.v.missing(true) {
			t.Errorf("after %d: %v", c.seq, m)
		}
		l.said["evil"] = 1 // it begins anew, and its clock goes on
		l.say("evil", link("b"), true)
		l.said["evil"] = fleet.MaxSeq - 1
		l.say("evil", link("c"), true)
	}
}

// TestForgedLoss: what one node alone says about its own numbers is no damage of the store, but a warning that names
// it; what the server itself or several nodes lack is.
func TestForgedLoss(t *testing.T) {
	link := fleet.Event{Kind: fleet.KindLink, Link: &fleet.Link{Port: "a", Up: true}}
	for _, c := range []struct {
		lacks []fleet.Name
		want  finding.Severity
		text  string
	}{
		{[]fleet.Name{"evil"}, finding.Warn, "The numbers of node evil leave out 99 events, and nothing else is missing."},
		{[]fleet.Name{"evil", "n00"}, finding.Error, "The store does not have 198 events that it had acknowledged."},
	} {
		l := newLiars(t, 2)
		h := New(Config{Bus: newMemory()})
		h.view = l.v
		for _, n := range c.lacks {
			l.said[n] += 99
			l.say(n, link, true)
		}
		list := h.damageFindings(l.v.missing(true), l.at)
		if len(list) != 1 || list[0].Severity != c.want || list[0].Text != c.text || len(list[0].Nodes) != 0 ||
			drains(list[0]) {
			t.Errorf("%q: %+v", c.lacks, list)
		}
		if late := h.damageFindings(l.v.missing(true), l.at.Add(damageLasts+time.Hour)); len(late) != 0 {
			t.Errorf("%q: found after a week: %+v", c.lacks, late)
		}
	}
}
