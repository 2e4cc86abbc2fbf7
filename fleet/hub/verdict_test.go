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

// TestNobodyIsGoodUnmeasured: a sweep of which nothing came says nothing about its nodes, whether it was cancelled or
// no part of it ended in time.
func TestNobodyIsHealthyUnmeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cancel := range []bool{false, true} {
			m := newMemory()
			nodes := m.join(4)
			for _, n := range nodes {
				n.hang.Store(true)
			}
			h, _ := start(t, m, nil)
			o := pairOrder()
			o.Caps.Time = 50 * time.Millisecond
			if cancel {
				o.Caps.Time = fleet.MaxTime
			}
			s, err := h.Give(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if cancel {
				eventually.Holds(t, "parts run", func() bool { return nodes[0].running() != "" })
				if _, err := h.Cancel(t.Context(), s.ID, "me"); err != nil {
					t.Fatal(err)
				}
			}
			finish(t, h, s.ID)
			v, err := h.Verdict(s.ID)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Healthy) != 0 || len(v.Unhealthy) != 0 ||
				!slices.Equal(v.Unmeasured, []fleet.Name{"n0", "n1", "n2", "n3"}) {
				t.Errorf("cancelled %v: %+v", cancel, v)
			}
		}
	})
}

// TestOneRoundOfAnOddNumber leaves one out, which is not its fault.
func TestOneRoundOfAnOddNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(3)
		h, _ := start(t, m, nil)
		o := pairOrder()
		o.Rounds = 1
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		finish(t, h, s.ID)
		if v, err := h.Verdict(s.ID); err != nil || len(v.Healthy) != 2 || len(v.Unhealthy) != 0 || len(v.Unmeasured) != 1 {
			t.Errorf("%v %+v", err, v)
		}
	})
}

// TestFiguresOfASweep: what a sweep is said to have measured is its own, and nothing that one before it did.
func TestFiguresOfASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(4)
		h, _ := start(t, m, nil)
		api := serveAPI(t, h)
		give := func() string {
			s, err := h.Give(t.Context(), pairOrder())
			if err != nil {
				t.Fatal(err)
			}
			finish(t, h, s.ID)
			return s.ID
		}
		count := func(id string) (n int) {
			heat := h.View().Heat(fleet.FigureRate, fleet.TCP, h.View().asked(&fleet.Order{}), id)
			for _, row := range heat.Values {
				for _, v := range row {
					if v != nil {
						n++
					}
				}
			}
			return n
		}
		first := give()
		if n := count(first); n != 12 {
			t.Errorf("%d directions of 12", n)
		}
		nodes[2].refuse.Store(true)
		second := give()
		if n := count(second); n != 6 {
			t.Errorf("without n2 there are %d directions, and 6 were measured", n)
		}
		if n := count(first); n != 6 { // those that were not measured again
			t.Errorf("the first sweep still has %d directions", n)
		}
		for path, code := range map[string]int{"order=" + second: 200, "order=none": 404, "nodes=n1&order=" + second: 400} {
			if got, text := ask(t, "GET", fmt.Sprintf("%s/api/fleet/pairs?%s", api, path), ""); got != code {
				t.Errorf("%s: %d %s", path, got, text)
			}
		}
	})
}

// TestVerdictOfManyNodes: what it costs goes with what was measured, and not with all pairs that there could be.
func TestVerdictOfManyNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("folds 17,500 events")
	}
	const nodes = 10_000
	l := newLiars(t, nodes)
	l.order(sweepOf(1, 2))
	for i := 0; i+1 < nodes/2; i += 2 {
		l.say(l.names[i], pairOf(l.names[i], l.names[i+1], 1, 1e10), true)
	}
	for i := nodes / 2; i < nodes; i++ {
		l.say(l.names[i], fleet.Event{
			Kind:     fleet.KindMeasured,
			Measured: &fleet.Measured{Order: "o", Part: "p", Sweep: 1, Failed: "no way", Peer: l.names[0]},
		}, true)
	}
	o := sweepOf(1, 2)
	o.State = fleet.Done
	l.order(o)
	h := New(Config{})
	h.view = l.v
	began := time.Now()
	v, err := h.Verdict("o")
	if err != nil || len(v.Healthy) != nodes/2 || len(v.Unhealthy) != 0 || len(v.Unmeasured) != nodes/2+1 {
		t.Errorf("%v: %d healthy, %d unhealthy, %d not measured", err, len(v.Healthy), len(v.Unhealthy), len(v.Unmeasured))
	}
	t.Logf("a verdict about %d nodes took %v", nodes, time.Since(began).Round(time.Millisecond))
}

// TestOneSweepIsNoVerdict: who is slow in one sweep is named as what stands out, and is unhealthy only before a job,
// where there is no other.
func TestOneSweepIsNoVerdict(t *testing.T) {
	for _, job := range []string{"", "42"} {
		l := newLiars(t, 8)
		o := sweepOf(1, 0)
		o.Job, o.Nodes = job, l.names
		l.order(o)
		for i, a := range l.names {
			for k, b := range l.names[:i] {
				rate := unit.Rate(1e10)
				if i == 3 || k == 3 {
					rate = 2e9
				}
				l.say(a, pairOf(a, b, 1, rate), true)
			}
		}
		o.State = fleet.Done
		l.order(o)
		h := New(Config{})
		h.view = l.v
		v, err := h.Verdict("o")
		if err != nil {
			t.Fatal(err)
		}
		if job == "" && (len(v.Unhealthy) > 0 || len(v.Notes) == 0 || !strings.HasPrefix(v.Notes[0], standsOut) ||
			!strings.Contains(v.Notes[0], "n03")) {
			t.Errorf("a sweep: %+v", v)
		}
		if job != "" && (len(v.Unhealthy) != 1 || v.Unhealthy[0].Node != "n03") {
			t.Errorf("a check: %+v", v)
		}
	}
}

// TestBlame: who is slow with most others is to blame, and not who is slow with those alone.
func TestBlame(t *testing.T) {
	for name, c := range map[string]struct {
		slow []string // pairs
		want string
	}{
		"nobody":            {nil, ""},
		"one pair":          {[]string{"ab"}, ""},
		"one node":          {[]string{"ab", "ac", "ad"}, "a"},
		"two of four":       {[]string{"ab", "ac", "ad", "bc", "bd"}, "a b"},
		"all":               {[]string{"ab", "ac", "ad", "bc", "bd", "cd"}, "a b c d"},
		"with half of them": {[]string{"ab", "cd"}, ""},
		"with most":         {[]string{"ab", "ac"}, "a"},
	} {
		var list []judgedPair
		for _, p := range []string{"ab", "ac", "ad", "bc", "bd", "cd"} {
			x := judgedPair{a: fleet.Name(p[:1]), b: fleet.Name(p[1:])}
			if slices.Contains(c.slow, p) {
				x.slow = "slow"
			}
			list = append(list, x)
		}
		var got []string
		for _, o := range blame(list) {
			got = append(got, string(o.Node))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: blamed %q, want %q", name, got, c.want)
		}
	}
}
