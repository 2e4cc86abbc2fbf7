package hub

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/unit"
)

// said draws something that one of a few speakers says, sense or not.
func anyEvent(t *rapid.T, at time.Time) *fleet.Event {
	names := []fleet.Name{"a", "b", "c", "d10", "d9"}
	name := func(what string) fleet.Name { return rapid.SampledFrom(names).Draw(t, what) }
	id := rapid.SampledFrom([]string{"o1", "o2", "o3"})
	n := &fleet.Event{
		Seq: rapid.Uint64Range(1, 40).Draw(t, "number"), At: at, Node: name("node"),
		Kind: rapid.SampledFrom([]fleet.Kind{
			fleet.KindJoined, fleet.KindLink, fleet.KindCounters, fleet.KindMeasured, fleet.KindMeasured, fleet.KindLeft,
			fleet.KindOrder, fleet.KindOrder, fleet.KindFinding,
		}).Draw(t, "kind"),
	}
	small := rapid.IntRange(-1, 4)
	switch n.Kind {
	case fleet.KindJoined:
		n.Joined = &fleet.Joined{Meet: "x:1", Map: json.RawMessage(`{}`)}
	case fleet.KindLink:
		n.Link = &fleet.Link{
			Port: rapid.SampledFrom([]string{"", "eth0", "eth1"}).Draw(t, "port"), Up: rapid.Bool().Draw(t, "up"),
			Rate: unit.Rate(rapid.Float64Range(-1, 1e14).Draw(t, "rate")),
		}
	case fleet.KindCounters:
		n.Counters = &fleet.Counters{
			Boot:   rapid.SampledFrom([]string{"", "1"}).Draw(t, "boot"),
			Values: map[string]map[string]uint64{"eth0": {"rx_errors": rapid.Uint64().Draw(t, "count")}},
		}
	case fleet.KindMeasured:
		m := &fleet.Measured{
			Order: id.Draw(t, "order"), Part: "p", Sweep: small.Draw(t, "sweep"), Round: small.Draw(t, "round"),
		}
		if rapid.Bool().Draw(t, "failed") {
			m.Failed, m.Peer = "broken", name("peer")
		} else {
			r := unit.Rate(rapid.Float64Range(-1e9, 1e14).Draw(t, "rate"))
			m.Pairs = []fleet.PairSample{{
				From: name("from"), To: name("to"), Rate: r, Latency: unit.Time(rapid.Int64Range(-5, 1e9).Draw(t, "latency")),
			}}
		}
		n.Measured = m
	case fleet.KindOrder:
		n.Node = ""
		o := &fleet.Order{
			ID: id.Draw(t, "order"), Sweep: small.Draw(t, "sweep"),
			State: rapid.SampledFrom([]fleet.State{
				fleet.Waiting, fleet.Running, fleet.Running, fleet.Done, fleet.Cancelled,
			}).Draw(t, "state"),
		}
		Fill(o)
		n.Order = o
	case fleet.KindFinding:
		n.Node = ""
		n.Finding = &finding.Finding{
			ID: id.Draw(t, "finding"), Severity: finding.Warn, Nodes: []string{"a"},
		}
		if rapid.Bool().Draw(t, "over") {
			n.Finding.Cleared = at
		}
	}
	return n
}

// everything is all that a view shows.
func everything(v *View) string {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	out := map[string]any{
		"seq": v.Seq(), "nodes": v.Nodes(), "orders": v.Orders(now), "rate": v.heatOf(fleet.FigureRate),
		"latency":  v.heatOf(fleet.FigureLatency),
		"findings": v.Findings(), "past": v.Past(), "ignored": v.Ignored(), "kept": v.Collectives(),
	}
	v.ask(func(h *health.History) {
		out["found"] = h.Findings(now)
		for _, a := range v.Nodes() {
			for _, b := range v.Nodes() {
				out["history of "+string(a.Name)+" "+string(b.Name)] = h.Pair(string(a.Name), string(b.Name), health.Way{})
			}
		}
	})
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		panic(err)
	}
	return string(data)
}

// A view is a function of the stream: what comes in pieces, again from anywhere, or after being
// said twice, makes no difference.
func TestViewIsAFunctionOfTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var list []Entry
		for i := range rapid.IntRange(0, 60).Draw(t, "length") {
			at := base.Add(time.Duration(rapid.Int64Range(0, 3000).Draw(t, "at")) * time.Second)
			n := anyEvent(t, at)
			publisher := n.Node
			if rapid.IntRange(0, 20).Draw(t, "forged") == 0 {
				publisher = "mallory"
			}
			list = append(list, Entry{
				Seq: uint64(i*2 + 1), Stored: base.Add(time.Duration(i) * time.Minute), Publisher: publisher, Event: n,
			})
		}
		whole := NewView()
		for _, e := range list {
			whole.Apply(e)
		}
		pieces := NewView()
		cut := rapid.IntRange(0, len(list)).Draw(t, "cut")
		back := rapid.IntRange(0, cut).Draw(t, "back")
		for _, e := range list[:cut] {
			pieces.Apply(e)
		}
		for _, e := range list[back:] { // a reader that begins again, a little before
			pieces.Apply(e)
		}
		for _, e := range list {
			if pieces.Apply(e) {
				t.Fatalf("entry %d was taken twice", e.Seq)
			}
		}
		if d := cmp.Diff(everything(whole), everything(pieces)); d != "" {
			t.Fatal(d)
		}
	})
}

func TestViewTakesNoEventForAnother(t *testing.T) {
	v := NewView()
	at := time.Now()
	seq := uint64(0)
	apply := func(publisher fleet.Name, n *fleet.Event) bool {
		seq++
		n.Seq, n.At = seq, at.Add(time.Duration(seq)*time.Second)
		return v.Apply(Entry{Seq: seq, Stored: n.At, Publisher: publisher, Event: n})
	}
	join := func(n fleet.Name) *fleet.Event {
		return &fleet.Event{Node: n, Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "x:1"}}
	}
	for _, n := range []fleet.Name{"a", "b", "c"} {
		if !apply(n, join(n)) {
			t.Fatal("a node could not join")
		}
	}
	if apply("a", join("b")) {
		t.Error("a spoke for b")
	}
	if apply("a", &fleet.Event{Kind: fleet.KindOrder, Order: &fleet.Order{ID: "x"}}) {
		t.Error("a node gave an order in the server's name")
	}
	o := pairOrder()
	o.ID, o.Sweep, o.State, o.Nodes = "o", 2, fleet.Running, []fleet.Name{"a", "b"}
	if !apply("", &fleet.Event{Kind: fleet.KindOrder, Order: &o}) {
		t.Fatal("no order")
	}
	measured := func(m fleet.Measured) *fleet.Event {
		return &fleet.Event{Node: "a", Kind: fleet.KindMeasured, Measured: &m}
	}
	pair := func(from, to fleet.Name, r unit.Rate) []fleet.PairSample {
		return []fleet.PairSample{{From: from, To: to, Rate: r, Latency: 1e6}}
	}
	good := fleet.Measured{Order: "o", Part: "p", Sweep: 2, Pairs: pair("a", "b", 1e9)}
	for what, change := range map[string]func(*fleet.Measured){
		"an order that there is not": func(m *fleet.Measured) { m.Order = "none" },
		"a sweep to come":            func(m *fleet.Measured) { m.Sweep = 3 },
		"sweep 0":                    func(m *fleet.Measured) { m.Sweep = 0 },
		"another's pair":             func(m *fleet.Measured) { m.Pairs = pair("b", "c", 1e9) },
		"a pair with nobody":         func(m *fleet.Measured) { m.Pairs = pair("a", "", 1e9) },
		"nobody's pair":              func(m *fleet.Measured) { m.Pairs = pair("", "", 1e9) },
		"a pair with itself":         func(m *fleet.Measured) { m.Pairs = pair("a", "a", 1e9) },
		"a node out of the order":    func(m *fleet.Measured) { m.Pairs = pair("a", "c", 1e9) },
		"a node that there is not":   func(m *fleet.Measured) { m.Pairs = pair("a", "z", 1e9) },
		"more than light":            func(m *fleet.Measured) { m.Pairs = pair("a", "b", 1e20) },
		"below zero":                 func(m *fleet.Measured) { m.Pairs = pair("a", "b", -1) },
		"no number":                  func(m *fleet.Measured) { m.Pairs = pair("a", "b", unit.Rate(math.NaN())) },
		"nothing":                    func(m *fleet.Measured) { m.Pairs = []fleet.PairSample{{From: "a", To: "b"}} },
		"a thousand pairs":           func(m *fleet.Measured) { m.Pairs = make([]fleet.PairSample, 1000) },
	} {
		m := good
		change(&m)
		if apply("a", measured(m)) {
			t.Errorf("%s was taken", what)
		}
	}
	if !apply("a", measured(good)) {
		t.Error("the truth was not taken")
	}
	if s, _ := v.Order("o", at); s.Measured != 1 {
		t.Errorf("%+v", s)
	}
}

func TestViewIsBounded(t *testing.T) {
	v := NewView()
	at := time.Now()
	for i := range 3000 {
		n := &fleet.Event{
			Seq: uint64(i + 1), At: at.Add(time.Duration(i) * time.Millisecond), Node: "a", Kind: fleet.KindLink,
			Link: &fleet.Link{Port: fmt.Sprint("p", i)},
		}
		if i%2 == 0 {
			n.Kind, n.Link, n.Counters = fleet.KindCounters, nil,
				&fleet.Counters{Values: map[string]map[string]uint64{fmt.Sprint("p", i): {"x": 1}}}
		}
		v.Apply(Entry{Seq: uint64(i + 1), Stored: n.At, Publisher: "a", Event: n})
	}
	s, _ := v.Node("a")
	if len(s.Ports) > maxPorts {
		t.Errorf("%d ports", len(s.Ports))
	}
	big := &fleet.Event{Seq: 9000, At: at.Add(time.Hour), Node: "a", Kind: fleet.KindJoined, Joined: &fleet.Joined{
		Version: strings.Repeat("ä", 10_000), Map: json.RawMessage(`"` + strings.Repeat("x", maxMap) + `"`),
	}}
	v.Apply(Entry{Seq: 9000, Stored: at, Publisher: "a", Event: big})
	if s, _ := v.Node("a"); len(s.Version) > maxText || v.maps != 0 || s.Joined.After(at) {
		t.Errorf("version of %d bytes, maps of %d, joined %v after it was stored", len(s.Version), v.maps, s.Joined.Sub(at))
	}
	for i := range maxOrders + 2*maxFinal {
		o := pairOrder()
		o.ID, o.State = fmt.Sprint("o", i), fleet.Cancelled
		n := &fleet.Event{Seq: uint64(i + 1), At: at.Add(time.Duration(i) * time.Second), Kind: fleet.KindOrder, Order: &o}
		v.Apply(Entry{Seq: uint64(9001 + i), Stored: n.At, Event: n})
	}
	if n := len(v.Orders(at)); n != maxFinal {
		t.Errorf("%d orders that are over are kept", n)
	}
}

func TestNamesInOrder(t *testing.T) {
	for _, c := range [][2]fleet.Name{
		{"a2", "a10"}, {"a", "b"}, {"a", "a1"}, {"r1n10", "r2n1"}, {"a01", "a1"}, {"n9.x", "n10.x"},
	} {
		if byNumber(c[0], c[1]) >= 0 || byNumber(c[1], c[0]) <= 0 || byNumber(c[0], c[0]) != 0 {
			t.Errorf("%s is not before %s", c[0], c[1])
		}
	}
}

// TestSetup: orders whose figures differ for what they ask for have other words.
func TestSetup(t *testing.T) {
	base := fleet.Order{What: fleet.What{Measure: fleet.MeasurePairs, Small: 8, Large: 4 * unit.MiB, Iters: 10}}
	seen := map[string]string{}
	for name, change := range map[string]func(o *fleet.Order){
		"plain":   func(*fleet.Order) {},
		"size":    func(o *fleet.Order) { o.What.Large = 64 * unit.KiB },
		"iters":   func(o *fleet.Order) { o.What.Iters = 20 },
		"rate":    func(o *fleet.Order) { o.Caps.Rate = 1e9 },
		"at once": func(o *fleet.Order) { o.AtOnce = 4 },
		"always":  func(o *fleet.Order) { o.Caps.Always = true },
		"busy":    func(o *fleet.Order) { o.Caps.Busy = 1e9 },
	} {
		o := base
		change(&o)
		text := setupOf(&o)
		if other, twice := seen[text]; twice || len(text) > maxText {
			t.Errorf("%s and %s: %q", name, other, text)
		}
		seen[text] = name
	}
	// These are no difference: who is measured, when, and for how long at most.
	o := base
	o.ID, o.Every, o.Nodes, o.Rounds, o.Caps.Time, o.Caps.Busy = "x", time.Hour, []fleet.Name{"a", "b"}, 3, time.Minute,
		fleet.DefaultBusy
	if setupOf(&o) != setupOf(&base) {
		t.Errorf("%q", setupOf(&o))
	}
}

// TestOtherVersions reads a stream with what other versions store: they count as numbers, and for nothing else. An
// earlier server measured its own machine.
func TestOtherVersions(t *testing.T) {
	v := NewView()
	for i, text := range []string{
		`{"seq":1,"at":"2026-01-01T00:00:00Z","kind":"tokens","tokens":{"node":"x","key":"k"}}`,
		`{"seq":2,"at":"2026-01-01T00:00:01Z","kind":"measured","measured":{"order":"local","part":"first","sweep":1,"round":0,"took_ns":1,"records":[]}}`,
		`{"seq":3,"at":"2026-01-01T00:00:02Z","kind":"weather","weather":{"rain":true}}`,
		`{"seq":1,"at":"2026-01-01T00:00:03Z","node":"a","kind":"weather","weather":{"rain":true}}`,
		`{"seq":2,"at":"2026-01-01T00:00:04Z","node":"a","kind":"left"}`,
		`{"seq":4,"at":"2026-01-01T00:00:05Z","kind":"tokens","tokens":{"node":"x","key":"k"}}`,
	} {
		n, err := fleet.Decode[fleet.Event]([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		v.Apply(Entry{Seq: uint64(i + 1), Stored: n.At, Publisher: n.Node, Event: n})
	}
	if list := v.missing(true); len(list) > 0 || v.Ignored()["kind"] != 3 || len(v.Collectives()) > 0 {
		t.Errorf("missing %v, ignored %v, collectives %v; expected 3 ignored kinds", list, v.Ignored(), v.Collectives())
	}
}
