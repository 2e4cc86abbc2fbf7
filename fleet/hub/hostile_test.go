package hub

import (
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/result"
)

// TestOneNodeDrivesNothingOut has a node say again and again what it measured, and what nobody
// asked for.
func TestOneNodeDrivesNothingOut(t *testing.T) {
	v := NewView()
	at := time.Now()
	seq := uint64(0)
	apply := func(n *fleet.Event) bool {
		seq++
		n.Seq, n.At = seq, at.Add(time.Duration(seq)*time.Millisecond)
		return v.Apply(Entry{Seq: seq, Stored: n.At, Publisher: n.Node, Event: n})
	}
	row := &result.Sweep{
		Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float", Ranks: 2, Transport: "tcp",
		Points: []result.Point{{Size: 8, Out: result.Time(5)}},
	}
	if err := row.Check(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []fleet.Name{"a", "b"} {
		apply(&fleet.Event{Node: n, Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "x:1"}})
	}
	for _, x := range []struct {
		id      string
		measure fleet.Measure
	}{{"c", fleet.MeasureCollective}, {"p", fleet.MeasurePairs}} {
		o := fleet.Order{ID: x.id, Sweep: 1, State: fleet.Running, What: fleet.What{Measure: x.measure}}
		Fill(&o)
		if !apply(&fleet.Event{Kind: fleet.KindOrder, Order: &o}) {
			t.Fatal("no order")
		}
	}
	send := func(n fleet.Name, order string) bool {
		return apply(&fleet.Event{
			Node: n, Kind: fleet.KindMeasured,
			Measured: &fleet.Measured{Order: order, Part: "x", Sweep: 1, Results: result.Sweeps{row}},
		})
	}
	if !send("b", "c") {
		t.Fatal("what is true was not taken")
	}
	for range 2 * maxKept {
		send("a", "c")
	}
	if send("a", "p") {
		t.Error("a collective of an order for pairs was taken")
	}
	if list := v.Collectives(); len(list) != 2 {
		t.Errorf("%d are kept; b and a measured one each", len(list))
	}
	if s, _ := v.Order("c", at); s.Measured != 1 {
		t.Errorf("%d parts are good of one, whoever says so", s.Measured)
	}
}

// TestWordsThatMoveTheCursor sends what a terminal would take for orders.
func TestTextsThatMoveTheCursor(t *testing.T) {
	v := NewView()
	at := time.Now()
	const evil = "x\x1b[2J\r\ny\u202e"
	for i, n := range []*fleet.Event{
		{Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: evil, Meet: evil, Bind: evil}},
		{Kind: fleet.KindLink, Link: &fleet.Link{Port: evil}},
		{Kind: fleet.KindLink, Link: &fleet.Link{Port: "eth0", State: evil}},
		{
			Kind:     fleet.KindCounters,
			Counters: &fleet.Counters{Values: map[string]map[string]uint64{evil: {"a": 1}, "eth0": {evil: 1, "b": 1}}},
		},
	} {
		n.Node, n.Seq, n.At = "a", uint64(i+1), at.Add(time.Duration(i)*time.Second)
		v.Apply(Entry{Seq: n.Seq, Stored: n.At, Publisher: "a", Event: n})
	}
	s, _ := v.Node("a")
	for _, text := range []string{s.Version, s.Meet, s.Bind, s.Ports[0].State} {
		if !plain(text) || text == "" {
			t.Errorf("%q", text)
		}
	}
	if len(s.Ports) != 1 {
		t.Errorf("%+v", s.Ports)
	}
}

// TestStatisticsAreNotBuried feeds more than may wait while somebody asks.
func TestStatisticsAreNotBuried(t *testing.T) {
	v := NewView()
	asked, release := make(chan struct{}), make(chan struct{})
	go v.ask(func(*health.History) { close(asked); <-release })
	<-asked
	done := make(chan struct{})
	fed := 0
	go func() {
		defer close(done)
		for range mostFed + 10 {
			v.history(func(*health.History) { fed++ })
		}
	}()
	select {
	case <-done:
		t.Error("more was kept than may wait")
	case <-time.After(300 * time.Millisecond): // it waits for a mutex, which no bubble can tell from work
	}
	close(release)
	<-done
	v.ask(func(*health.History) {})
	if want := mostFed + 10; fed != want {
		t.Errorf("%d of %d", fed, want)
	}
}
