package hub

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/result/pairs"
)

// sweeps gives orders one after the other.
func sweeps(t *testing.T, h *Hub, count int) {
	t.Helper()
	for range count {
		s, err := h.Give(t.Context(), pairOrder())
		if err != nil {
			t.Fatal(err)
		}
		if s = finish(t, h, s.ID); s.State != fleet.Done {
			t.Fatalf("%+v", s)
		}
	}
}

func TestSlowNodeIsFoundAlertedOnceAndForgottenWhenHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []Alert
		fail := 3
		secret := []byte("shared")
		hook := here.serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			if fail > 0 {
				fail--
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			m := hmac.New(sha256.New, secret)
			m.Write(body)
			if want := "sha256=" + hex.EncodeToString(m.Sum(nil)); r.Header.Get(Signature) != want {
				t.Errorf("signed %q, want %q", r.Header.Get(Signature), want)
			}
			var a Alert
			if err := json.Unmarshal(body, &a); err != nil {
				t.Error(err)
			}
			if r.Header.Get("Idempotency-Key") != a.Key {
				t.Error("the key of the header is not that of the body")
			}
			got = append(got, a)
		})
		alerts := func(event string) (list []Alert) {
			mu.Lock()
			defer mu.Unlock()
			for _, a := range got {
				if a.Event == event && a.Finding.Severity != finding.Note {
					list = append(list, a)
				}
			}
			return list
		}
		change := func(c *Config) { c.Webhooks, c.Secret = []string{hook}, secret }
		m := newMemory()
		nodes := m.join(8)
		h, stop := start(t, m, change)
		sweeps(t, h, 3)
		if f := h.View().Findings(); len(f) != 0 {
			t.Fatalf("all are well: %+v", f)
		}
		nodes[5].slow.Store(50)
		sweeps(t, h, 2)
		eventually.Holds(t, "n5 is found", func() bool { s, _ := h.Node("n5"); return s.Unhealthy })
		eventually.Holds(t, "it is told", func() bool { return len(alerts("raised")) > 0 })
		if a := alerts("raised")[0]; !slices.Equal(a.Finding.Nodes, []string{"n5"}) || a.Finding.Kind != pairs.SlowHost ||
			a.Finding.Fix == "" {
			t.Errorf("%+v", a)
		}
		for _, n := range h.Nodes() {
			if n.Unhealthy != (n.Name == "n5") {
				t.Errorf("%s bad: %v (%v)", n.Name, n.Unhealthy, n.Findings)
			}
		}
		time.Sleep(time.Minute) // nothing is told twice
		first := keysOf(alerts("raised"))
		if keys := slices.Compact(slices.Clone(first)); len(keys) != len(first) {
			t.Errorf("told twice: %v", first)
		}
		stop()
		h, _ = start(t, m, change) // what holds is told again, under the same keys
		eventually.Holds(t, "it is told again", func() bool { return len(alerts("raised")) == 2*len(first) })
		if again := keysOf(alerts("raised")); !slices.Equal(slices.Compact(again), first) {
			t.Errorf("after a restart %v were told, and %v before", again, first)
		}
		nodes[5].slow.Store(0)
		sweeps(t, h, 4)
		eventually.Holds(t, "it is over, and told",
			func() bool { return len(alerts("cleared")) == len(first) && len(h.View().Findings()) == 0 })
		if s, _ := h.Node("n5"); s.Unhealthy {
			t.Error("n5 is well and called bad")
		}
		if p := h.View().Past(); len(p) == 0 || p[len(p)-1].Cleared.IsZero() {
			t.Errorf("the past: %+v", p)
		}
	})
}

// keysOf are the keys of alerts, sorted.
func keysOf(list []Alert) (keys []string) {
	for _, a := range list {
		keys = append(keys, a.Key)
	}
	slices.Sort(keys)
	return keys
}

// TestWebhooks: whatever is not 2xx was not accepted, and a redirect is not followed.
func TestWebhooks(t *testing.T) {
	count, code := 0, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count++
		if r.URL.Path != "/" {
			t.Error("a redirect was followed")
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
	}))
	defer s.Close()
	h := New(Config{})
	for _, code = range []int{
		http.StatusOK, http.StatusNoContent, http.StatusFound, http.StatusUnauthorized, http.StatusInternalServerError,
	} {
		count = 0
		if err := h.send(t.Context(), s.URL, Alert{}); (err == nil) != (code < 300) || count != 1 {
			t.Errorf("%d attempts at a server that answers %d: %v", count, code, err)
		}
	}
}

// Prometheus' text format, read strictly: https://prometheus.io/docs/instrumenting/exposition_formats
var (
	metricHelp = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	metricType = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)$`)
	metricLine = regexp.MustCompile(
		`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\n"])*"(,[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\n"])*")*)\})? (\S+)$`)
)

// readMetrics gives the values by name with labels, and the names.
func readMetrics(t *testing.T, r io.Reader) (values map[string]float64, names map[string]string) {
	t.Helper()
	values, names = map[string]float64{}, map[string]string{}
	helped, current := "", ""
	for s := bufio.NewScanner(r); s.Scan(); {
		line := s.Text()
		if m := metricHelp.FindStringSubmatch(line); m != nil {
			helped = m[1]
		} else if m := metricType.FindStringSubmatch(line); m != nil {
			if m[1] != helped || names[m[1]] != "" {
				t.Errorf("%q: a type without its help before it, or twice", line)
			}
			current = m[1]
			names[current] = m[2]
			if (m[2] == "counter") != strings.HasSuffix(current, "_total") {
				t.Errorf("%s is a %s", current, m[2])
			}
		} else if m := metricLine.FindStringSubmatch(line); m != nil {
			v, err := strconv.ParseFloat(m[len(m)-1], 64)
			if m[1] != current || err != nil {
				t.Errorf("%q under %s: %v", line, current, err)
			}
			key := m[1] + m[2]
			if _, twice := values[key]; twice {
				t.Errorf("%s twice", key)
			}
			values[key] = v
		} else {
			t.Errorf("no line of the format: %q", line)
		}
	}
	return values, names
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(5)
		nodes[4].dead.Store(true)
		h, _ := start(t, m, nil)
		sweeps(t, h, 1)
		var b bytes.Buffer
		if err := h.Metrics(t.Context(), &b, false); err != nil {
			t.Fatal(err)
		}
		v, names := readMetrics(t, &b)
		for key, want := range map[string]float64{
			`busbar_nodes{state="up"}`: 4, `busbar_node_up{node="n0"}`: 1, `busbar_node_up{node="n4"}`: 0,
			`busbar_parts_total{result="good"}`:                                            6,
			`busbar_node_pair_rate_bytes_per_second{node="n1",stat="min",transport="tcp"}`: 1e10, `busbar_stream_lag`: 0,
		} {
			if got, ok := v[key]; !ok || got != want {
				t.Errorf("%s is %v (%v), want %v", key, got, ok, want)
			}
		}
		dashboard(t, names)
	})
}

// dashboard holds the Grafana file against the metrics that there are.
func dashboard(t *testing.T, names map[string]string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/grafana-busbar.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\b(busbar|process|go)_[a-z_]+`)
	used := 0
	for _, p := range doc.Panels {
		for _, x := range p.Targets {
			for _, name := range name.FindAllString(x.Expr, -1) {
				used++
				if names[name] == "" {
					t.Errorf("panel %q asks for %s, which there is not", p.Title, name)
				}
				if rate := strings.Contains(x.Expr, "rate("); rate != (names[name] == "counter") {
					t.Errorf("panel %q: %s is a %s in %q", p.Title, name, names[name], x.Expr)
				}
			}
		}
	}
	if doc.Title == "" || used < 8 {
		t.Errorf("%q asks for %d metrics", doc.Title, used)
	}
}
