package hub

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/test/eventually"
)

// testClock is a clock that tests set. It is ahead of the bubble's, which goes on evenly, and shows no other time.
type testClock struct{ ahead atomic.Int64 }

func (c *testClock) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }

// set sets the clock.
func (c *testClock) set(by time.Duration) { c.ahead.Add(int64(by)) }

func (c *testClock) config(cfg *Config) { cfg.Now, cfg.Unreachable = c.now, 0 }

// silent are the findings about silence.
func unreachable(h *Hub) (ids []string) {
	for _, f := range h.View().Findings() {
		if f.Cleared.IsZero() &&
			(f.Kind == health.Unreachable || f.Kind == health.UnreachableFleet || f.Kind == health.LateBeats) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// TestSetClockSilencesNobody sets the server's clock back and forth while nodes beat.
func TestSetClockMakesNobodyUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(testClock)
		m := newMemory()
		nodes := m.join(6)
		h, _ := start(t, m, c.config)
		time.Sleep(40 * time.Second)
		for _, by := range []time.Duration{
			time.Hour, -3 * time.Hour, 400 * 24 * time.Hour, -400 * 24 * time.Hour, 20 * time.Second, -20 * time.Second,
		} {
			c.set(by)
			for _, n := range h.Nodes() { // before any of them beats
				if n.State != fleet.NodeUp || n.Age > 25*time.Second {
					t.Errorf("clock set by %v: %s is %s, heard of %v ago", by, n.Name, n.State, n.Age)
				}
			}
			time.Sleep(3 * h.cfg.Look)
			time.Sleep(15 * time.Second)
			if f := unreachable(h); len(f) > 0 {
				t.Errorf("clock set by %v: %v", by, f)
			}
		}
		// Who dies after all that is missed in time.
		nodes[2].dead.Store(true)
		time.Sleep(50 * time.Second)
		eventually.Holds(t, "n2 is missed", func() bool { return strings.Join(unreachable(h), " ") == "silent:n2" })
		c.set(-time.Hour)
		time.Sleep(10 * time.Second)
		if f := unreachable(h); strings.Join(f, " ") != "silent:n2" {
			t.Errorf("the clock was set back, and %v are silent", f)
		}
	})
}

// TestSetClockAndSchedules waits for the times of orders while the clock is set.
func TestSetClockAndSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(testClock)
		h := New(Config{Bus: newMemory(), Now: c.now})
		given := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		show := func(at time.Time) { c.set(at.Sub(c.now())) }
		show(given.Add(30 * time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ends := func(o *fleet.Order) <-chan bool {
			done := make(chan bool, 1)
			go func() { done <- h.untilDue(ctx, o, given) }()
			return done
		}
		still := func(what string, done <-chan bool) {
			t.Helper()
			select {
			case <-done:
				t.Errorf("%s: it runs at %v", what, c.now())
			case <-time.After(clockTurn + time.Second):
			}
		}
		hourly := ends(&fleet.Order{Every: time.Hour, Ran: given})
		once := ends(&fleet.Order{From: given.Add(24 * time.Hour)})
		still("too early", hourly)
		show(given.Add(-48 * time.Hour))
		still("two days back", hourly)
		show(given.Add(59 * time.Minute))
		still("a minute too early", hourly)
		show(given.Add(365*24*time.Hour + 80*time.Minute)) // far over it
		still("overtaken", hourly)
		if !<-once {
			t.Error("what was to run once does not")
		}
		show(given.Add(365*24*time.Hour + 2*time.Hour))
		if !<-hourly {
			t.Error("the next time is missed")
		}
		// A sweep of a time that never was holds nothing up.
		o := &fleet.Order{Every: time.Hour, Ran: c.now().Add(10 * 365 * 24 * time.Hour)}
		if d := due(o, given, c.now()).Sub(c.now()); d < 0 || d > time.Hour {
			t.Errorf("the next time is in %v", d)
		}
	})
}

// TestFiguresOfAWrongClock replaces what was measured while the clock was ahead.
func TestFiguresOfAWrongClock(t *testing.T) {
	v := NewView()
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	seq := uint64(0)
	numbers := map[fleet.Name]uint64{}
	send := func(node fleet.Name, at time.Time, n fleet.Event) {
		seq++
		numbers[node]++
		n.Seq, n.At, n.Node = numbers[node], at, node
		if !v.Apply(Entry{Seq: seq, Stored: at, Publisher: node, Event: &n}) {
			t.Fatalf("%+v was ignored: %v", n, v.Ignored())
		}
	}
	for i := range 2 {
		send(fleet.Name(fmt.Sprintf("n%d", i)), at, fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "x:1"}})
	}
	for sweep, ahead := range []time.Duration{0, 1000 * time.Hour, 0} {
		o := pairOrder()
		o.ID, o.Sweep, o.State = "o", sweep+1, fleet.Running
		now := at.Add(ahead + time.Duration(sweep)*time.Hour)
		send("", now, fleet.Event{Kind: fleet.KindOrder, Order: &o})
		send("n0", now, fleet.Event{Kind: fleet.KindMeasured, Measured: &fleet.Measured{
			Order: "o", Part: "p", Sweep: sweep + 1,
			Pairs: []fleet.PairSample{{From: "n0", To: "n1", Rate: 1e9 * 2, Latency: 1e6}},
		}})
	}
	for _, c := range v.cells[table{fleet.TCP, false}] {
		if c.sweep != 3 {
			t.Errorf("the figures shown are of sweep %d", c.sweep)
		}
	}
}

// TestOneThresholdOfUnreachable: whoever is shown as up is called unreachable by no finding, whatever its beats were
// like before; a node that dies has its finding within 30 s.
func TestOneThresholdOfUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(6)
		h, _ := start(t, m, func(c *Config) { c.Unreachable, c.Look = 0, 0 })
		time.Sleep(time.Minute)
		nodes[2].dead.Store(true)
		for range 24 {
			time.Sleep(time.Second)
			before, _ := h.Node("n2")
			if ids := unreachable(h); len(ids) > 0 && before.Age <= 25*time.Second {
				t.Errorf("%s after %v: %v", before.State, before.Age, ids)
			}
		}
		time.Sleep(4 * time.Second) // 28 s after its last heartbeat
		if n, _ := h.Node("n2"); n.State != fleet.NodeUnreachable || strings.Join(unreachable(h), " ") != "silent:n2" {
			t.Errorf("%s after %v: %v", n.State, n.Age, unreachable(h))
		}
	})
}
