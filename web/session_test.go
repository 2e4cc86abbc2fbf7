package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// TestNextPage holds the address after logging in to this page's own views.
func TestNextPage(t *testing.T) {
	for to, want := range map[string]string{
		"": "/", "/": "/", "/predict": "/predict", "/predict?c=dgx-h100:4": "/predict?c=dgx-h100:4", "/fleet#n1": "/fleet#n1",
		"//evil.example": "/", "/.//evil.example": "/", "/./\\evil.example": "/", "/\\evil.example": "/",
		"\\\\evil.example": "/", "https://evil.example/fleet": "/",
		"javascript:alert(1)": "/", "/%2F/evil.example": "/", "//evil.example/fleet": "/", "/fleet/../..//evil.example": "/",
		"/\t/evil.example": "/", "fleet": "/",
		"/login?to=/fleet": "/", "/logout": "/", "http:fleet": "/", "/fleet@evil.example": "/", "///fleet": "/",
	} {
		if got := nextPage(to); got != want {
			t.Errorf("%q leads to %q; want %q", to, got, want)
		}
	}
}

// TestLogoutEndsTheCookie uses a copy of a cookie after its owner has logged out.
func TestLogoutEndsTheCookie(t *testing.T) {
	s := newSite(t, nil)
	login := func() *http.Cookie {
		res, err := http.PostForm(s.http.URL+"/login", url.Values{"token": {s.read}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.Cookies()[0]
	}
	with := func(method, path string, c *http.Cookie) int {
		r, _ := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, nil)
		r.AddCookie(c)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	one, other := login(), login()
	if code := with("POST", "/logout", one); code != 200 {
		t.Fatalf("logout: %d", code)
	}
	if code := with("GET", "/api/me", one); code != http.StatusUnauthorized {
		t.Errorf("a copy of the cookie after logout: %d; want 401", code)
	}
	if code := with("GET", "/api/me", other); code != http.StatusUnauthorized {
		t.Errorf("another session of the same token: %d; want 401", code)
	}
	again, err := OpenTokens(s.Tokens.path) // as a server that is started again
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := again.session(one.Value, time.Now()); ok {
		t.Error("the cookie counts again after a start")
	}
}

// TestOwnUser asks without a token over a Unix socket, where only the server's own user comes, and over TCP.
func TestOwnUser(t *testing.T) {
	s := newSite(t, nil)
	for network, at := range map[string]string{
		"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0",
	} {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Serve(ctx, l) })
		client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string,
			string,
		) (net.Conn, error) {
			return net.Dial(network, l.Addr().String())
		}}}
		r, err := client.Get("http://localhost/api/me")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		want := map[string]int{"unix": 200, "tcp": 401}[network]
		if r.StatusCode != want || want == 200 && !strings.Contains(string(body), `"name": "local"`) {
			t.Errorf("%s: %d, %s; want %d", network, r.StatusCode, body, want)
		}
		client.CloseIdleConnections()
		stop()
		wg.Wait()
	}
	if _, err := s.Tokens.Add("local", Read); err == nil {
		t.Error("somebody else has the name of the server's own user")
	}
}

// TestTokenForOneLogin uses a token that is for one login again, as who finds a printed address does.
func TestTokenForOneLogin(t *testing.T) {
	s := newSite(t, nil)
	secret, err := s.Tokens.AddOnce("first", Order)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := s.ask(t, "GET", "/api/me", secret, nil); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without logging in: %d; want 401", r.StatusCode)
	}
	opened := make(chan *http.Cookie, 8)
	var wg sync.WaitGroup
	for range cap(opened) {
		wg.Go(func() {
			res, err := http.PostForm(s.http.URL+"/login", url.Values{"token": {secret}})
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			if res.StatusCode == 200 {
				opened <- res.Cookies()[0]
			}
		})
	}
	wg.Wait()
	if len(opened) != 1 {
		t.Fatalf("%d of %d logins with one token that is for one; want 1", len(opened), cap(opened))
	}
	again, err := OpenTokens(s.Tokens.path) // as a server that is started again
	if err != nil {
		t.Fatal(err)
	}
	if x, ok := again.session((<-opened).Value, time.Now()); !ok || x.Name != "first" || x.Role != "order" || !x.Spent {
		t.Errorf("the session that it opened: %+v, %v", x, ok)
	}
	if _, ok := again.check(secret); ok {
		t.Error("the token counts again after a start")
	}
}

// TestLogoutsEndNobodyElses has a token log in and out: its own sessions end, and nobody else's.
func TestLogoutsEndNobodyElses(t *testing.T) {
	s := newSite(t, nil)
	now := time.Now()
	session := func(secret string) string {
		x, ok := s.Tokens.check(secret)
		if !ok {
			t.Fatal("no such token")
		}
		return s.Tokens.sign(x, now.Add(sessionLasts))
	}
	honest, own := session(s.order), session(s.read)
	for range 3 {
		if err := s.Tokens.end(session(s.read), now); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Tokens.session(honest, now); !ok {
		t.Error("another token's session ended")
	}
	if _, ok := s.Tokens.session(own, now); ok {
		t.Error("a session of the token that logged out still counts")
	}
	if _, ok := s.Tokens.session(session(s.read), now); !ok {
		t.Error("the token cannot log in any more")
	}
}

// TestHeldConnectionsMakeRoom has one token hold every place. Another is served.
func TestHeldConnectionsMakeRoom(t *testing.T) {
	s := newSite(t, nil)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Bounded(inner).(*boundedListener)
	l.places = 8
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	defer func() { cancel(); <-ended }()
	for range 8 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /api/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", s.read)
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+inner.Addr().String()+"/api/me", nil)
	r.Header.Set("Authorization", "Bearer "+s.order)
	// idle ones end after two
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("%d; want 200", res.StatusCode)
	}
}

// TestIdleConnectionsKeepNobodyOut fills every place with connections that say nothing. Who has a token is served.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	s := newSite(t, nil)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Bounded(inner).(*boundedListener)
	l.places = 16
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	defer func() { cancel(); <-ended }()
	// Idle ones are ended after 5 s. Questions that wait for that take longer every time; on a machine that stops for
	// seconds some do.
	eventually.Holds(t, "three questions are answered beside 64 idle connections that have not ended", func() bool {
		return besideIdle(t, s, inner.Addr().String()) < 4500*time.Millisecond
	})
}

// besideIdle is how long three questions take beside 64 connections that begin one and say no more.
func besideIdle(t *testing.T, s *site, address string) time.Duration {
	t.Helper()
	for range 64 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET /api/me HTTP/1.1\r\nHost: localhost\r\nX: ")
	}
	began := time.Now()
	for range 3 {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/api/me", nil)
		r.Header.Set("Authorization", "Bearer "+s.read)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("%d; want 200", res.StatusCode)
		}
	}
	return time.Since(began)
}

// TestUploadsAreBounded has one client send many files slowly: it is refused beyond a few, and others are not.
func TestUploadsAreBounded(t *testing.T) {
	s := newSite(t, nil)
	var held []*io.PipeWriter
	codes := make(chan int, 8)
	for range 8 {
		body, w := io.Pipe()
		held = append(held, w)
		go func() {
			r, _ := http.NewRequestWithContext(context.Background(), "POST", s.http.URL+"/api/files?name=x", body)
			r.Header.Set("Authorization", "Bearer "+s.read)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				codes <- 0
				return
			}
			res.Body.Close()
			codes <- res.StatusCode
		}()
	}
	for range 8 - sendingOfOne {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("one too many: %d; want 503", code)
		}
	}
	if r, body := s.ask(t, "POST", "/api/files?name=x", s.order, strings.NewReader("x")); r.StatusCode != 200 {
		t.Errorf("another client: %d %s", r.StatusCode, body)
	}
	for _, w := range held {
		w.Close()
	}
}
