package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/query"
)

// site is a server with a program of its own making, and tokens of both roles.
type site struct {
	*Server
	http        *httptest.Server
	read, order string
	mu          sync.Mutex
	ran         []*asked
}

// echo answers a question with the command that asks the same.
func (s *site) echo(_ context.Context, a *asked, _ query.Env) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, a)
	if q, ok := a.ask.(*query.Plan); ok && q.Emit != "" {
		return &query.PlanDoc{Emitted: &query.PlanFiles{}}, nil
	}
	if a.drawing != "" {
		return &query.MapDoc{Document: &cluster.Document{}}, nil
	}
	return map[string]any{"line": a.line}, nil
}

// newSite is a server that computes nothing.
func newSite(t *testing.T, change func(*Config)) *site {
	t.Helper()
	s := realSite(t, change)
	s.asking = s.echo
	return s
}

// realSite is a server that answers.
func realSite(t *testing.T, change func(*Config)) *site {
	t.Helper()
	dir := t.TempDir()
	tokens, err := OpenTokens(filepath.Join(dir, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{}
	c := Config{Tokens: tokens, Data: dir, Version: "test", Hosts: Loopback()}
	if change != nil {
		change(&c)
	}
	if s.Server, err = New(c); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		role Role
		to   *string
	}{{Read, &s.read}, {Order, &s.order}} {
		if *x.to, err = tokens.Add(x.role.String(), x.role); err != nil {
			t.Fatal(err)
		}
	}
	s.http = httptest.NewServer(s.Handler())
	t.Cleanup(s.http.Close)
	return s
}

// ask sends a request with a token, or without one.
func (s *site) ask(t *testing.T, method, path, token string, body io.Reader) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil && res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(err)
	}
	return res, string(data)
}

// TestEveryRouteTakesItsRole tries all that can be asked, with every kind of credential.
func TestEveryRouteTakesItsRole(t *testing.T) {
	s := newSite(t, func(c *Config) {
		c.More = []Route{{
			Method: "POST", Path: "/api/orders/{id}", Role: Order,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Reply(w, Requester(r).Name) }),
		}}
	})
	s.attempts.rate, s.requests.rate = 1e6, 1e6 // limits are tried elsewhere
	wrong := strings.Repeat("A", 43)
	if len(s.routes) < 30 {
		t.Fatalf("%d routes; are they all in the table?", len(s.routes))
	}
	for _, rt := range s.routes {
		if rt.Path == "/api/events" {
			continue // it never ends; TestEvents has it
		}
		path := strings.NewReplacer("{build}", s.assets.build, "{file...}", "main.js", "{file}", "login.js", "{$}", "",
			"{id}", "1").Replace(rt.Path)
		for _, c := range []struct {
			name, token string
			role        Role
		}{
			{"nothing", "", Public},
			{"a wrong token", wrong, Public},
			{"read", s.read, Read},
			{"order", s.order, Order},
			{"a token as a password", "Basic " + s.order, Public},
		} {
			res, text := s.ask(t, rt.Method, path, c.token, strings.NewReader("token=x"))
			refused := res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden
			if rt.Path == "/login" && rt.Method == "POST" {
				continue // refuses what is no token, whoever asks
			}
			if may := c.role >= rt.Role; may == refused {
				t.Errorf("%s %s with %s: %d %.100s", rt.Method, path, c.name, res.StatusCode, text)
			}
			if rt.Role > Public && c.role == Public && res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s with %s: %d, expected 401", rt.Method, path, c.name, res.StatusCode)
			}
			if res.StatusCode >= 500 {
				t.Errorf("%s %s with %s: %d %s", rt.Method, path, c.name, res.StatusCode, text)
			}
		}
	}
	for _, path := range []string{
		"/nothing", "/api/bench", "/api/lab", "/api/exec", "/assets/", "/web.go", "/../tokens.json", "/tokens.json",
	} {
		for _, token := range []string{"", s.order} {
			if res, _ := s.ask(t, "GET", path, token, nil); res.StatusCode != http.StatusNotFound && res.StatusCode/100 != 3 {
				t.Errorf("GET %s: %d, expected 404", path, res.StatusCode)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	s := newSite(t, nil)
	for _, path := range []string{"/login", "/healthz", "/api/map", "/nothing"} {
		res, _ := s.ask(t, "GET", path, "", nil)
		for _, h := range []string{
			"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "X-Frame-Options",
		} {
			if res.Header.Get(h) == "" {
				t.Errorf("%s: no %s", path, h)
			}
		}
		if p := res.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'self'") ||
			strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %s", path, p)
		}
	}
}

func TestSession(t *testing.T) {
	s := newSite(t, nil)
	login := func(token string) *http.Response {
		res, err := http.PostForm(s.http.URL+"/login", map[string][]string{"token": {token}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	if res := login("wrong"); res.StatusCode != http.StatusUnauthorized || len(res.Cookies()) > 0 {
		t.Fatalf("a wrong token: %d, cookies %v", res.StatusCode, res.Cookies())
	}
	res := login(s.read)
	if len(res.Cookies()) != 1 {
		t.Fatalf("cookies: %v", res.Cookies())
	}
	c := res.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, s.read) {
		t.Errorf("cookie: %v", c)
	}
	with := func(value string) int {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.http.URL+"/api/me", nil)
		r.AddCookie(&http.Cookie{Name: c.Name, Value: value})
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	parts := strings.Split(c.Value, ".")
	for _, x := range []struct {
		value string
		code  int
	}{
		{c.Value, 200},
		{c.Value[:len(c.Value)-1], 401},
		{parts[0] + ".9999999999." + parts[2], 401},
		{strings.Repeat("0", 16) + "." + parts[1] + "." + parts[2], 401},
		{"." + parts[1] + "." + parts[2], 401},
		{"", 401},
		{"...", 401},
	} {
		if code := with(x.value); code != x.code {
			t.Errorf("cookie %q: %d, expected %d", x.value, code, x.code)
		}
	}
	if err := s.Tokens.Revoke("read"); err != nil {
		t.Fatal(err)
	}
	if code := with(c.Value); code != 401 {
		t.Errorf("after its token was revoked: %d, expected 401", code)
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	s := newSite(t, nil)
	try := func(method, host, origin, site string) int {
		r, _ := http.NewRequestWithContext(t.Context(), method, s.http.URL+"/login", strings.NewReader("token=x"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if host != "" {
			r.Host = host
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		method, host, origin, site string
		code                       int
	}{
		{"POST", "", "", "", 401},
		{"POST", "", "", "same-origin", 401},
		{"POST", "", "https://evil.example", "", 403},
		{"POST", "", "", "cross-site", 403},
		{"POST", "", "null", "", 403},
		{"GET", "", "", "", 200},
		{"GET", "localhost:1", "", "", 200},
		{"GET", "evil.example", "", "", 421},
		{"GET", "evil.example:7641", "", "", 421},
		{"GET", "127.0.0.1.evil.example", "", "", 421},
		{"GET", "[::1]:7641", "", "", 200},
	} {
		if code := try(c.method, c.host, c.origin, c.site); code != c.code {
			t.Errorf("%s host %q origin %q site %q: %d, expected %d", c.method, c.host, c.origin, c.site, code, c.code)
		}
	}
}

func TestAttemptsAreLimited(t *testing.T) {
	s := newSite(t, nil)
	codes := map[int]int{}
	for i := range 30 {
		res, _ := s.ask(t, "GET", "/api/me", fmt.Sprintf("guess%d", i), nil)
		codes[res.StatusCode]++
	}
	if codes[429] < 15 || codes[401] > attemptBurst+1 {
		t.Errorf("thirty guesses: %v", codes)
	}
	if res, _ := s.ask(t, "GET", "/api/me", s.read, nil); res.StatusCode != 200 {
		t.Errorf("a good token after them: %d", res.StatusCode)
	}
}

func TestEvents(t *testing.T) {
	s := newSite(t, nil)
	if res, _ := s.ask(t, "GET", "/api/events", "", nil); res.StatusCode != 401 {
		t.Fatalf("events for anybody: %d", res.StatusCode)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", s.http.URL+"/api/events", nil)
	r.Header.Set("Authorization", "Bearer "+s.read)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 256)
	n, err := res.Body.Read(buf)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "retry:") {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if err := s.Events.Publish("order", map[string]int{"done": 3}); err != nil {
		t.Fatal(err)
	}
	n, err = res.Body.Read(buf)
	if want := "event: order\ndata: {\"done\":3}\n\n"; err != nil || string(buf[:n]) != want {
		t.Errorf("%q, %v; expected %q", buf[:n], err, want)
	}
}

// TestListenersOfOne has one token listen as often as it can. Another listens too.
func TestListenersOfOne(t *testing.T) {
	s := newSite(t, nil)
	n := 0
	for ; n <= listenersOfOne; n++ {
		if _, ok := s.listeners.take("greedy", 1); !ok {
			break
		}
	}
	if n != listenersOfOne {
		t.Errorf("one token listens %d times; want %d", n, listenersOfOne)
	}
	if _, ok := s.listeners.take("other", 1); !ok {
		t.Error("another token cannot listen")
	}
}
