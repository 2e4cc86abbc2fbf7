package hub

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
)

// listener is a webhook that writes down what it is told, or refuses.
type listener struct {
	URL  string
	mu   sync.Mutex
	keys []string
	code int
}

func newListener(t *testing.T) *listener {
	l := &listener{code: http.StatusOK}
	l.URL = here.serve(t, func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		var a Alert
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Errorf("%v: %+v", err, a)
		}
		if l.code < 300 {
			l.keys = append(l.keys, a.Key)
		}
		w.WriteHeader(l.code)
	})
	return l
}

func (l *listener) answers(code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.code = code
}

// told are the keys that begin so.
func (l *listener) alerts(prefix string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.keys {
		if strings.HasPrefix(k, prefix) {
			list = append(list, k)
		}
	}
	return list
}

// TestUnreachableOverARestart starts a hub anew while a node is unreachable: it still is, and webhooks get it again
// under the same key.
func TestUnreachableOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(testClock)
		ear := newListener(t)
		change := func(cfg *Config) {
			c.config(cfg)
			cfg.Webhooks = []string{ear.URL}
		}
		m := newMemory()
		nodes := m.join(6)
		h, stop := start(t, m, change)
		time.Sleep(30 * time.Second)
		nodes[4].dead.Store(true)
		time.Sleep(80 * time.Second)
		since := func(h *Hub) time.Time { s, _ := h.Node("n4"); return s.UnreachableSince }
		eventually.Holds(t, "n4 is missed and that is told", func() bool {
			f, ok := h.View().Finding("silent:n4")
			return ok && f.Severity == finding.Error && len(ear.alerts("silent:n4/raised/error")) > 0
		})
		was, alerts := since(h), ear.alerts("silent:n4/raised/error")
		stop()
		nodes[5].dead.Store(true) // while nobody looks
		time.Sleep(5 * time.Second)
		h, _ = start(t, m, change)
		if s, _ := h.Node("n4"); s.State != fleet.NodeUnreachable || !s.UnreachableSince.Equal(was) {
			t.Errorf("after a restart n4 is %s since %v, before it was silent since %v", s.State, s.UnreachableSince, was)
		}
		if why := h.absent("n4"); !strings.Contains(why, "unreachable since 2") {
			t.Errorf("n4 is absent: %q", why)
		}
		if s, _ := h.Node("n5"); s.State != fleet.NodeStarting {
			t.Errorf("n5 is %s; it may yet beat", s.State)
		}
		for range 6 {
			time.Sleep(10 * time.Second)
			if s, _ := h.Node("n4"); s.State != fleet.NodeUnreachable || !since(h).Equal(was) {
				t.Errorf("n4 is %s since %v", s.State, since(h))
			}
		}
		eventually.Holds(t, "n5 is missed too", func() bool {
			s, _ := h.Node("n5")
			return s.State == fleet.NodeUnreachable && !s.UnreachableSince.IsZero()
		})
		if again := ear.alerts("silent:n4/raised/error"); !slices.Equal(again, append(alerts, alerts...)) {
			t.Errorf("that n4 is silent was told as %v, and with what came after a restart as %v", alerts, again)
		}
		if n := len(ear.alerts("silent:n4/cleared")); n != 0 {
			t.Error("a restart ended the silence of n4")
		}
		nodes[4].dead.Store(false)
		time.Sleep(5 * time.Second)
		eventually.Holds(t, "n4 is back, and that is told", func() bool {
			s, _ := h.Node("n4")
			return s.State == fleet.NodeUp && len(ear.alerts("silent:n4/cleared")) > 0
		})
	})
}

// TestEachWebhookIsAlertedByItself has one webhook that takes nothing for a while. The other one is not held up, and it
// gets what holds when it works again.
func TestEachWebhookIsAlertedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := newListener(t), newListener(t)
		bad.answers(http.StatusUnauthorized)
		m := newMemory()
		nodes := m.join(8)
		h, _ := start(t, m, func(cfg *Config) { cfg.Webhooks = []string{bad.URL, good.URL} })
		sweeps(t, h, 3)
		nodes[5].slow.Store(40)
		sweeps(t, h, 4)
		eventually.Holds(t, "one is told", func() bool { return len(good.alerts("slow")) > 0 })
		bad.answers(http.StatusOK)
		eventually.Holds(t, "the other is told too", func() bool { return len(bad.alerts("slow")) > 0 })
		nodes[5].slow.Store(0)
		sweeps(t, h, 4)
		for _, l := range []*listener{good, bad} {
			eventually.Holds(t, "it is over, for both", func() bool {
				list := l.alerts("slow")
				cleared := slices.DeleteFunc(slices.Clone(list), func(k string) bool { return !strings.Contains(k, "/cleared/") })
				return len(cleared) > 0 && len(list) == 2*len(cleared)
			})
		}
	})
}

// TestClearedIsSentToThoseAlerted ends a finding that one webhook never heard of, and starts the server anew after
// another one ended: that it is over is sent again.
func TestClearedIsSentToThoseAlerted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := newListener(t), newListener(t)
		bad.answers(http.StatusNotFound)
		m := newMemory()
		nodes := m.join(8)
		change := func(cfg *Config) { cfg.Webhooks = []string{good.URL, bad.URL} }
		h, stop := start(t, m, change)
		sweeps(t, h, 3)
		nodes[5].slow.Store(40)
		sweeps(t, h, 4)
		eventually.Holds(t, "one is told", func() bool { return len(good.alerts("slow")) > 0 })
		nodes[5].slow.Store(0)
		sweeps(t, h, 4)
		over := func(l *listener) (n int) {
			for _, k := range l.alerts("slow") {
				if strings.Contains(k, "/cleared/") {
					n++
				}
			}
			return n
		}
		eventually.Holds(t, "it is over", func() bool { return len(h.View().Findings()) == 0 && over(good) > 0 })
		bad.answers(http.StatusOK)
		time.Sleep(2 * mostPause)
		if n := len(bad.alerts("slow")); n > 0 {
			t.Errorf("who never heard of it is told that it is over: %v", bad.alerts("slow"))
		}
		stop()
		_, _ = start(t, m, change)
		eventually.Holds(t, "both are told that it is over", func() bool { return over(good) > 1 && over(bad) > 0 })
	})
}

// TestNothingIsAnsweredWhileThePastIsRead asks a hub that has read half of it.
func TestNothingIsAnsweredWhileThePastIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(10)
		h := New(Config{Bus: m})
		at := serveAPI(t, h)
		h.target.Store(10)
		for _, e := range m.entries[:6] {
			h.take(e)
		}
		code, text := ask(t, "GET", at+"/api/fleet/nodes", "")
		if code != http.StatusServiceUnavailable || !strings.Contains(text, "it has read 55% of its stored events") ||
			!strings.Contains(text, `"reading":0.55`) {
			t.Errorf("%d %s", code, text)
		}
		if code, text = ask(t, "POST", at+"/api/fleet/orders", "{}"); code != http.StatusServiceUnavailable {
			t.Errorf("an order: %d %s", code, text)
		}
		if code, text = ask(t, "GET", at+"/metrics", ""); code != 200 || strings.Contains(text, "busbar_node_up") ||
			!strings.Contains(text, "busbar_stream_lag 4") {
			t.Errorf("metrics: %d %s", code, text)
		}
	})
}

// TestWhatHoldsIsSaidAgain folds the end of a stream whose beginning was dropped.
func TestWhatHoldsIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(8)
		ear := newListener(t)
		h, stop := start(t, m, func(c *Config) { c.Restate, c.Webhooks = 100*time.Millisecond, []string{ear.URL} })
		o := pairOrder()
		o.Every, o.From = 7*24*time.Hour, time.Now().Add(time.Hour)
		weekly, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		sweeps(t, h, 3)
		nodes[5].slow.Store(40)
		sweeps(t, h, 2)
		eventually.Holds(t, "n5 is found and told", func() bool {
			return slices.ContainsFunc(h.View().Findings(),
				func(f finding.Finding) bool { return slices.Equal(f.Nodes, []string{"n5"}) }) && len(ear.alerts("slow")) > 0
		})
		before, err := m.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tail := func() *View {
			v := NewView()
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, e := range m.entries[before:] {
				v.Apply(e)
			}
			return v
		}
		eventually.Holds(t, "the end of the stream says it all", func() bool {
			v := tail()
			s, ok := v.Order(weekly.ID, time.Now())
			return ok && s.Every == o.Every && s.Next.Equal(weekly.Next) &&
				slices.ContainsFunc(v.Findings(),
					func(f finding.Finding) bool { return slices.Equal(f.Nodes, []string{"n5"}) })
		})
		alerts := len(ear.alerts("slow"))
		time.Sleep(time.Minute)
		stop()
		if n := len(ear.alerts("slow")); n != alerts {
			t.Errorf("what is said again is told again: %d times, then %d", alerts, n)
		}
	})
}

// TestJoinedAgain takes a node's word that nothing has changed as that.
func TestJoinedAgain(t *testing.T) {
	v := NewView()
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i, j := range []fleet.Joined{
		{Meet: "x:1", Map: json.RawMessage(`{}`)},
		{Meet: "x:1", Map: json.RawMessage(`{}`)},
		{Meet: "x:2", Map: json.RawMessage(`{}`)},
		{Meet: "x:2", Map: json.RawMessage(`{"a":1}`)},
		{Meet: "x:2", Map: json.RawMessage(`{"a":1}`)},
	} {
		seq, now := uint64(i+1), at.Add(time.Duration(i)*time.Hour)
		v.Apply(Entry{
			Seq: seq, Stored: now, Publisher: "a",
			Event: &fleet.Event{Seq: seq, At: now, Node: "a", Kind: fleet.KindJoined, Joined: &j},
		})
		s, _ := v.Node("a")
		if want := []int{0, 0, 2, 3, 3}[i]; !s.Joined.Equal(at.Add(time.Duration(want)*time.Hour)) || !s.Received.Equal(now) {
			t.Errorf("word %d: it joined at %v and was heard of at %v", i+1, s.Joined, s.Received)
		}
	}
	if v.changes != 3 {
		t.Errorf("its map is read %d times", v.changes)
	}
}
