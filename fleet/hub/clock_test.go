package hub

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/test/eventually"
)

// testClock is a clock that tests set and let go on.
type testClock struct {
	mu     sync.Mutex
	wall   time.Time
	steady time.Duration
}

func newTestClock() *testClock {
	return &testClock{wall: time.Now().UTC().Truncate(time.Second)}
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *testClock) even() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steady
}

// set sets the clock.
func (c *testClock) set(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(by)
}

// pass lets time pass, in steps after which nodes of a bus beat.
func (c *testClock) pass(m *memory, d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		c.mu.Lock()
		c.wall, c.steady = c.wall.Add(5*time.Second), c.steady+5*time.Second
		c.mu.Unlock()
		m.pulse()
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *testClock) config(cfg *Config) {
	cfg.Now, cfg.Steady, cfg.Unreachable = c.now, c.even, 35*time.Second
}

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
		c := newTestClock()
		m := newMemory()
		nodes := m.join(6)
		h, _ := start(t, m, c.config)
		c.pass(m, 40*time.Second)
		for _, by := range []time.Duration{
			time.Hour, -3 * time.Hour, 400 * 24 * time.Hour, -400 * 24 * time.Hour, 20 * time.Second, -20 * time.Second,
		} {
			looks := h.counts.looks.Load()
			c.set(by)
			for _, n := range h.Nodes() { // before any of them beats
				if n.State != fleet.NodeUp || n.Age > 35*time.Second {
					t.Errorf("clock set by %v: %s is %s, heard of %v ago", by, n.Name, n.State, n.Age)
				}
			}
			eventually.Holds(t, "the statistics are asked", func() bool { return h.counts.looks.Load() > looks+2 })
			c.pass(m, 15*time.Second)
			if f := unreachable(h); len(f) > 0 {
				t.Errorf("clock set by %v: %v", by, f)
			}
		}
		// Who dies after all that is missed in time.
		nodes[2].dead.Store(true)
		c.pass(m, 70*time.Second)
		eventually.Holds(t, "n2 is missed", func() bool { return strings.Join(unreachable(h), " ") == "silent:n2" })
		c.set(-time.Hour)
		c.pass(m, 10*time.Second)
		if f := unreachable(h); strings.Join(f, " ") != "silent:n2" {
			t.Errorf("the clock was set back, and %v are silent", f)
		}
	})
}

// TestSetClockAndSchedules waits for the times of orders while the clock is set.
func TestSetClockAndSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClock()
		c.wall = time.Date(2026, 6, 1, 12, 0, 30, 0, time.UTC)
		h := New(Config{Bus: newMemory(), Now: c.now, Steady: c.even})
		h.clock.turn = time.Millisecond
		given := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
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
			case <-time.After(50 * time.Millisecond):
			}
		}
		hourly := ends(&fleet.Order{Every: time.Hour, Ran: given})
		once := ends(&fleet.Order{From: given.Add(24 * time.Hour)})
		still("too early", hourly)
		c.set(-48 * time.Hour) // to 12:00:30 two days before
		still("two days back", hourly)
		c.set(48*time.Hour + 59*time.Minute + 29*time.Second)
		still("a second too early", hourly)
		c.set(365*24*time.Hour + 20*time.Minute) // far over it, to 13:19:59
		still("overtaken", hourly)
		if !<-once {
			t.Error("what was to run once does not")
		}
		c.set(40*time.Minute + time.Second + 500*time.Microsecond) // to 14:00:00
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
	for _, c := range v.cells[fleet.TCP] {
		if c.sweep != 3 {
			t.Errorf("the figures shown are of sweep %d", c.sweep)
		}
	}
}

func TestClockNoticesWhenItIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := newTestClock(), newMemory()
		k := newClock(c.now, c.even)
		var moved []time.Duration
		read := func() { k.read(func(d time.Duration) { moved = append(moved, d) }) }
		c.pass(m, 5*time.Second)
		read()
		c.set(time.Second) // a correction
		read()
		c.set(time.Minute)
		c.pass(m, 5*time.Second)
		read()
		read()
		c.set(-time.Hour)
		read()
		if fmt.Sprint(moved) != "[1m0s -1h0m0s]" {
			t.Errorf("moved %v", moved)
		}
	})
}

// TestOneThresholdOfSilence: whoever is shown as up is called silent by no finding, whatever its beats were like
// before.
func TestOneThresholdOfUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClock()
		m := newMemory()
		nodes := m.join(6)
		h, _ := start(t, m, c.config)
		c.pass(m, 60*time.Second)
		nodes[2].dead.Store(true)
		looks := h.counts.looks.Load()
		for range 8 {
			c.pass(m, 5*time.Second)
			before, _ := h.Node("n2")
			if ids := unreachable(h); len(ids) > 0 && before.Age <= 35*time.Second {
				t.Errorf("%s after %v: %v", before.State, before.Age, ids)
			}
		}
		c.pass(m, 5*time.Second)
		eventually.Holds(t, "it is silent", func() bool {
			n, _ := h.Node("n2")
			return n.State == fleet.NodeUnreachable && h.counts.looks.Load() > looks+2
		})
		eventually.Holds(t, "a finding says so", func() bool { return strings.Join(unreachable(h), " ") == "silent:n2" })
	})
}
