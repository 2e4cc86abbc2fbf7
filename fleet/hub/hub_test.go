package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/unit"
)

func TestSweepMeasuresEveryPairOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{2, 5, 8} {
			m := newMemory()
			nodes := m.join(n)
			h, stop := start(t, m, nil)
			s, err := h.Give(t.Context(), pairOrder())
			if err != nil {
				t.Fatal(err)
			}
			if s = finish(t, h, s.ID); s.State != fleet.Done || s.Measured != n*(n-1)/2 || s.Failed != 0 || len(s.Out) != 0 {
				t.Errorf("%d nodes: %+v", n, s)
			}
			heat := h.View().heatOf(fleet.FigureRate)
			for i, row := range heat.Values {
				for j, v := range row {
					if (v == nil) != (i == j) {
						t.Errorf("cell %d,%d: %v", i, j, v)
					}
				}
			}
			stop()
			for _, x := range nodes {
				if x.count() != n-1 {
					t.Errorf("%s did %d parts", x.name, x.count())
				}
			}
		}
	})
}

func TestSweepGoesOnWithoutTheDeadTheBusyAndThoseWhoRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(8)
		nodes[1].dead.Store(true)
		nodes[2].refuse.Store(true)
		nodes[3].busy.Store(3)         // for a moment
		nodes[4].busy.Store(1_000_000) // all the time
		nodes[5].hang.Store(true)
		h, _ := start(t, m, nil)
		o := pairOrder()
		o.Caps.Time = 200 * time.Millisecond
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		// n5 begins parts and never ends them; it dies.
		time.AfterFunc(100*time.Millisecond, func() { nodes[5].dead.Store(true) })
		s = finish(t, h, s.ID)
		if s.State != fleet.Done {
			t.Fatalf("%+v", s)
		}
		t.Log("the sweep took", s.Since.Sub(s.Ran))
		adds(t, s)
		out := map[fleet.Name]string{}
		for _, x := range s.Out {
			out[x.Node] = x.Why
		}
		for n, want := range map[fleet.Name]string{"n1": "unreachable", "n2": "refuses", "n4": "busy", "n5": ""} {
			if out[n] == "" || !strings.Contains(out[n], want) {
				t.Errorf("%s: %q, want %q", n, out[n], want)
			}
		}
		// n0, n3, n6, n7 are measured with each other.
		good := []fleet.Name{"n0", "n3", "n6", "n7"}
		for i, row := range h.View().Heat(fleet.FigureRate, fleet.TCP, good, "").Values {
			for j, v := range row {
				if i != j && v == nil {
					t.Errorf("%s to %s is missing", good[i], good[j])
				}
			}
		}
		v, err := h.Verdict(s.ID)
		if err != nil {
			t.Fatal(err)
		}
		var bad []fleet.Name
		for _, b := range v.Unhealthy {
			bad = append(bad, b.Node)
		}
		if slices.Contains(bad, "n4") || slices.Contains(v.Healthy, "n4") ||
			!strings.Contains(strings.Join(v.Notes, "\n"), "n4: busy") {
			t.Errorf("a busy node is neither good nor bad: %+v", v)
		}
		for _, n := range []fleet.Name{"n1", "n2", "n5"} {
			if !slices.Contains(bad, n) {
				t.Errorf("%s is not called bad: %v", n, bad)
			}
		}
		for _, n := range good {
			if slices.Contains(bad, n) {
				t.Errorf("%s is called bad: %+v", n, v.Unhealthy)
			}
		}
	})
}

func TestTheOtherOfTwoIsNotToBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(2)
		h, _ := start(t, m, nil)
		nodes[1].refuse.Store(true)
		s, err := h.Give(t.Context(), pairOrder())
		if err != nil {
			t.Fatal(err)
		}
		if s = finish(t, h, s.ID); s.State != fleet.Failed || !strings.Contains(s.Why, "refuses") {
			t.Errorf("%+v", s)
		}
		v, err := h.Verdict(s.ID)
		if err != nil || len(v.Unhealthy) != 1 || v.Unhealthy[0].Node != "n1" || len(v.Healthy) != 0 ||
			!slices.Equal(v.Unmeasured, []fleet.Name{"n0"}) {
			t.Errorf("%v %+v", err, v)
		}
	})
}

func TestOrdersNeverClashOnANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(6)
		for _, n := range nodes {
			n.took = 2 * time.Millisecond
		}
		h, stop := start(t, m, nil)
		var ids []string
		for range 4 {
			s, err := h.Give(t.Context(), pairOrder())
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, s.ID)
		}
		for _, id := range ids {
			if s := finish(t, h, id); s.State != fleet.Done || s.Measured != 15 {
				t.Errorf("%+v", s)
			}
		}
		stop()
		for _, n := range nodes {
			// the last a moment after its peer
			eventually.Holds(t, fmt.Sprintf("%s did its 20 parts", n.name), func() bool { return n.count() == 20 })
		}
	})
}

func TestCancelStopsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(4)
		for _, n := range nodes {
			n.hang.Store(true)
		}
		h, _ := start(t, m, nil)
		o := pairOrder()
		o.Caps.Time = fleet.MaxTime
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "parts run", func() bool { return nodes[0].running() != "" && nodes[1].running() != "" })
		if s, err = h.Cancel(t.Context(), s.ID, "me"); err != nil || s.State != fleet.Cancelled {
			t.Fatalf("%v %+v", err, s)
		}
		eventually.Holds(t, "parts are stopped", func() bool {
			return !slices.ContainsFunc(nodes, func(n *fakeNode) bool { return n.running() != "" })
		})
		if _, err := h.Cancel(t.Context(), s.ID, "me"); err != errOver {
			t.Errorf("a second time: %v", err)
		}
		if _, err := h.Cancel(t.Context(), "none", "me"); err != errUnknown {
			t.Errorf("an order that there is not: %v", err)
		}
	})
}

func TestHubThatDiesInASweepGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(8)
		for _, n := range nodes {
			n.took = 20 * time.Millisecond
		}
		h, stop := start(t, m, nil)
		s, err := h.Give(t.Context(), pairOrder())
		if err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "some pairs are measured",
			func() bool { s, _ := h.View().Order(s.ID, time.Now()); return s.Measured >= 8 })
		stop() // without a word: nothing is said after the context's end
		last := m.entries[len(m.entries)-1]
		if last.Event.Kind == fleet.KindOrder && last.Event.Order.Final() {
			t.Fatal("the sweep was over before the hub was")
		}
		h, _ = start(t, m, nil)
		s = finish(t, h, s.ID)
		if s.State != fleet.Done || s.Measured != 28 || s.Sweep != 1 {
			t.Errorf("%+v", s)
		}
		done := 0
		for _, n := range nodes {
			done += n.count()
		}
		if done > 56+16 {
			t.Errorf("%d parts of nodes for 28 pairs: the sweep began anew", done)
		}
	})
}

func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(2)
		var skew time.Duration
		now := func() time.Time { return time.Now().Add(skew) }
		h, stop := start(t, m, func(c *Config) { c.Now = now })
		o := pairOrder()
		o.Every = fleet.MinEvery
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "the first sweep", func() bool {
			s, _ = h.View().Order(s.ID, now())
			return s.Sweep == 1 && s.State == fleet.Waiting
		})
		if s.Next.Sub(s.Given)%fleet.MinEvery != 0 || !s.Next.After(now()) {
			t.Errorf("given %v, next %v", s.Given, s.Next)
		}
		stop()
		// Much later, a little before a time of the grid: what was missed is not made up for.
		skew += s.Given.Add(100 * fleet.MinEvery).Add(-500 * time.Millisecond).Sub(now())
		h, _ = start(t, m, func(c *Config) { c.Now = now })
		eventually.Holds(t, "the next sweep", func() bool {
			s, _ = h.View().Order(s.ID, now())
			return s.Sweep == 2 && s.State == fleet.Waiting
		})
		if late := s.Ran.Sub(s.Given.Add(100 * fleet.MinEvery)); late < 0 || late > 5*time.Second {
			t.Errorf("began %v after its time", late)
		}
		if _, err := h.Cancel(t.Context(), s.ID, "me"); err != nil {
			t.Error(err)
		}
	})
}

func TestRoundsOfLaterSweepsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(8)
		h, _ := start(t, m, nil)
		seen := map[int]bool{}
		for i := range 4 {
			w := &sweep{
				h: h, o: &fleet.Order{ID: "x", Rounds: 2, Sweep: i + 1}, nodes: h.View().asked(&fleet.Order{}),
				out: map[fleet.Name]fleet.Out{},
			}
			first := (w.o.Sweep - 1) * 2 % 7
			seen[first], seen[(first+1)%7] = true, true
		}
		if len(seen) != 7 {
			t.Errorf("four sweeps of two rounds met %d of 7", len(seen))
		}
		o := pairOrder()
		o.Rounds = 2
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if s = finish(t, h, s.ID); s.Measured != 8 || s.Parts != 8 {
			t.Errorf("%+v", s)
		}
	})
}

func TestLiarSpoilsNothingOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(4)
		h, _ := start(t, m, nil)
		nodes[0].lie = func(out *fleet.Measured) {
			out.Pairs = []fleet.PairSample{{From: "n1", To: "n2", Rate: 1, Latency: 1}}
		}
		nodes[1].lie = func(out *fleet.Measured) {
			for i := range out.Pairs {
				out.Pairs[i].Rate = unit.Rate(5e15)
			}
		}
		o := pairOrder()
		o.Caps.Time = 50 * time.Millisecond
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "the honest are measured",
			func() bool { s, _ := h.View().Order(s.ID, time.Now()); return s.Measured >= 1 })
		ignored := h.View().Ignored()
		eventually.Holds(t, "lies are counted", func() bool {
			ignored = h.View().Ignored()
			return ignored["another's pair"] > 0 && ignored["absurd values"] > 0
		})
		if v := h.View().Heat(fleet.FigureRate, fleet.TCP, []fleet.Name{"n1", "n2"}, ""); v.Values[0][1] != nil {
			t.Errorf("n0 spoke for n1 and n2: %v", *v.Values[0][1])
		}
	})
}

func TestTwoHubsOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(4)
		a, stopA := start(t, m, nil)
		b, _ := start(t, m, nil)
		eventually.Holds(t, "one leads", func() bool { return a.Leads() != b.Leads() })
		if !a.Leads() {
			t.Skip("the second came first")
		}
		s, err := b.Give(t.Context(), pairOrder()) // asked of the one that does not lead
		if err != nil {
			t.Fatal(err)
		}
		if s = finish(t, b, s.ID); s.State != fleet.Done || s.Measured != 6 {
			t.Errorf("%+v", s)
		}
		stopA()
		eventually.Holds(t, "the other leads", b.Leads)
		if s, err = b.Give(t.Context(), pairOrder()); err != nil {
			t.Fatal(err)
		}
		if s = finish(t, b, s.ID); s.State != fleet.Done {
			t.Errorf("%+v", s)
		}
		for _, n := range nodes {
			if n.count() != 6 {
				t.Errorf("%s did %d parts", n.name, n.done)
			}
		}
	})
}

// TestStoreAwayAtTheStart: a server whose store is not there yet when its hub starts waits for it, and does not end.
func TestStoreAwayAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(2)
		m.away.Store(3)
		h, _ := start(t, m, nil)
		if n := len(h.Nodes()); n != 2 {
			t.Errorf("%d nodes; want 2", n)
		}
	})
}
