package hub

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/test/eventually"
)

// TestWorseIsToldAgain has a node fall silent, which is a warning first and an error later: a webhook hears of
// both, once each, under keys of their own.
func TestWorseIsAlertedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var keys []string
		hook := here.serve(t, func(_ http.ResponseWriter, r *http.Request) {
			var a Alert
			if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
				t.Error(err)
			}
			if a.Finding.Kind == health.Unreachable {
				mu.Lock()
				keys = append(keys, a.Key[:strings.LastIndex(a.Key, "/")])
				mu.Unlock()
			}
		})
		m := newMemory()
		nodes := m.join(4)
		_, stop := start(t, m, func(c *Config) { c.Webhooks = []string{hook} })
		defer stop()
		time.Sleep(200 * time.Millisecond) // some beats
		nodes[2].dead.Store(true)
		alerted := func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(keys, " ")
		}
		const want = "silent:n2/raised/warn silent:n2/raised/error"
		eventually.Holds(t, "both are told", func() bool { return strings.Contains(alerted(), "error") })
		time.Sleep(300 * time.Millisecond) // several looks
		if alerted() != want {
			t.Errorf("told %s, expected %s", alerted(), want)
		}
	})
}

// TestRaisedAgain has a finding come and go: each state is sent once, and the end of the first time not again when it
// is back.
func TestRaisedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ear := newListener(t)
		m := newMemory()
		m.join(2)
		h, _ := start(t, m, func(c *Config) { c.Webhooks, c.Look = []string{ear.URL}, time.Hour })
		eventually.Holds(t, "it leads", h.Leads)
		f := finding.Finding{ID: "x:n0", Kind: "x", Severity: finding.Warn, Nodes: []string{"n0"}}
		for range 3 {
			time.Sleep(time.Minute)
			f.Since, f.Cleared = time.Now(), time.Time{}
			for range 2 {
				if err := h.publishFinding(t.Context(), f); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				f.Cleared = time.Now()
			}
		}
		list := ear.alerts("x:n0")
		for i, k := range list {
			if want := []string{"raised", "cleared"}[i%2]; !strings.Contains(k, "/"+want+"/") {
				t.Errorf("alert %d is %s, want %s", i, k, want)
			}
		}
		if len(list) != 6 {
			t.Errorf("%d alerts, want 6: %v", len(list), list)
		}
	})
}

// TestKeyIsAsDocumented holds the form of keys to what the documentation shows.
func TestKeyIsAsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	f := finding.Finding{
		ID: "slow-host:gpu07", Severity: finding.Error, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	if want := "Idempotency-Key: " + alertOf(f).Key + "\n"; !strings.Contains(string(doc), want) {
		t.Errorf("docs/fleet.md does not have %q", want)
	}
}
