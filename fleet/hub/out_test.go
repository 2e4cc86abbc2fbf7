package hub

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
		fail := 1
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
		eventually.Holds(t, "that it was told is kept", func() bool {
			return !slices.ContainsFunc(h.View().Findings(), func(f finding.Finding) bool { return !f.Alerted })
		})
		alerted := len(alerts("raised"))
		stop()
		h, _ = start(t, m, change) // knows what was told
		sweeps(t, h, 1)
		if n := len(alerts("raised")); n != alerted {
			t.Errorf("after a restart %d alerts became %d", alerted, n)
		}
		nodes[5].slow.Store(0)
		sweeps(t, h, 4)
		eventually.Holds(t, "it is over, and told",
			func() bool { return len(alerts("cleared")) == alerted && len(h.View().Findings()) == 0 })
		if s, _ := h.Node("n5"); s.Unhealthy {
			t.Error("n5 is well and called bad")
		}
		if p := h.View().Past(); len(p) == 0 || p[len(p)-1].Cleared.IsZero() {
			t.Errorf("the past: %+v", p)
		}
	})
}

func TestWebhooks(t *testing.T) {
	count := 0
	code := http.StatusInternalServerError
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count++
		if r.URL.Path != "/" {
			t.Error("a redirect was followed")
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
	}))
	defer s.Close()
	k := newHooks([]string{s.URL}, nil)[0]
	k.waits = []time.Duration{time.Millisecond, time.Millisecond}
	if err := k.send(t.Context(), Alert{}); err == nil || count != 3 {
		t.Errorf("%d attempts at a server that fails: %v", count, err)
	}
	for _, code = range []int{http.StatusFound, http.StatusUnauthorized} {
		count = 0
		if err := k.send(t.Context(), Alert{}); err == nil || count != 1 {
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
		if err := h.Metrics(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		v, names := readMetrics(t, &b)
		for key, want := range map[string]float64{
			`busbar_nodes{state="up"}`: 4, `busbar_node_up{node="n0"}`: 1, `busbar_node_up{node="n4"}`: 0,
			`busbar_orders{state="done"}`:                                                  1,
			`busbar_parts_total{result="good"}`:                                            6,
			`busbar_node_pair_rate_bytes_per_second{node="n1",stat="min",transport="tcp"}`: 1e10,
			`busbar_pair_rate_bytes_per_second{from="n0",to="n1",transport="tcp"}`:         1e10, `busbar_stream_lag`: 0,
			`busbar_leads`: 1,
		} {
			if got, ok := v[key]; !ok || got != want {
				t.Errorf("%s is %v (%v), want %v", key, got, ok, want)
			}
		}
		if v["process_resident_memory_bytes"] < 1e6 {
			t.Errorf("memory %v", v["process_resident_memory_bytes"])
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

func TestManyNodesHaveNoFigurePerPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(perPair + 1)
		h, _ := start(t, m, nil)
		o := pairOrder()
		o.Rounds = 2
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		finish(t, h, s.ID)
		var b bytes.Buffer
		if err := h.Metrics(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if _, names := readMetrics(t, &b); names["busbar_pair_rate_bytes_per_second"] != "" ||
			names["busbar_node_pair_rate_bytes_per_second"] == "" {
			t.Error(fmt.Sprint(names))
		}
	})
}
