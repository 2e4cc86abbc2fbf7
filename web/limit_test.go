package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/query"
)

func TestBuckets(t *testing.T) {
	b := newBuckets(2, 3)
	now := time.Unix(1000, 0)
	for i := range 5 {
		if got := b.takeAt("a", now); got != (i < 3) {
			t.Errorf("%d at once: %v", i+1, got)
		}
	}
	if !b.takeAt("b", now) {
		t.Error("another client waits for the first")
	}
	if now = now.Add(500 * time.Millisecond); !b.takeAt("a", now) || b.takeAt("a", now) {
		t.Error("after half a second: expected one")
	}
	for i := range 3 * maxClients {
		b.takeAt(fmt.Sprint(i), now.Add(time.Duration(i)*time.Second))
	}
	if len(b.each) > maxClients {
		t.Errorf("%d clients are remembered", len(b.each))
	}
}

// TestWorkKeepsItsPlace has a program that does not stop when it is told: whoever asked gets an
// answer, and the place is free only when the work has ended.
func TestWorkKeepsItsPlace(t *testing.T) {
	release := make(chan struct{})
	s := newSite(t, nil)
	s.asking = func(context.Context, *asked, query.Env) (any, error) {
		<-release
		return struct{}{}, nil
	}
	q := *questions()[0]
	q.Within = 20 * time.Millisecond
	for range s.pool.slots - 1 {
		if g := s.compute(t.Context(), &asked{Question: &q}); g.code != http.StatusServiceUnavailable {
			t.Errorf("code %d", g.code)
		}
	}
	if n := s.pool.busy(); n != s.pool.slots-1 {
		t.Errorf("%d places are held, expected all %d", n, s.pool.slots-1)
	}
	if g := s.compute(t.Context(), &asked{Question: &q}); g.code != http.StatusServiceUnavailable ||
		!strings.Contains(string(g.body), "busy") {
		t.Errorf("with no place left: %d %s", g.code, g.body)
	}
	close(release)
	eventually.Holds(t, "places are given back", func() bool { return s.pool.busy() == 0 })
}

func TestAnswers(t *testing.T) {
	runs := 0
	s := newSite(t, nil)
	s.asking = func(_ context.Context, a *asked, _ query.Env) (any, error) {
		runs++
		switch a.Route {
		case "presets":
			return map[string]any{"presets": []string{}}, nil
		case "models":
			return nil, errors.New("no such model")
		case "hardware":
			return nil, failure.Cannot(errors.New("a limit"))
		}
		return strings.Repeat("x", maxAnswer+1), nil
	}
	for range 3 {
		res, text := s.ask(t, "GET", "/api/presets", s.read, nil)
		if res.StatusCode != 200 || text != "{\n \"presets\": []\n}\n" {
			t.Errorf("%d %s", res.StatusCode, text)
		}
	}
	if runs != 1 {
		t.Errorf("equal questions ran %d times", runs)
	}
	res, _ := s.ask(t, "GET", "/api/presets", s.read, nil)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.http.URL+"/api/presets", nil)
	r.Header.Set("Authorization", "Bearer "+s.read)
	r.Header.Set("If-None-Match", res.Header.Get("ETag"))
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != http.StatusNotModified {
		t.Errorf("again: %v, %v", res.StatusCode, err)
	}
	for _, c := range []struct {
		path string
		code int
		text string
	}{
		{"/api/models?words=x", 400, `"error":"no such model"`},
		{"/api/hardware", 422, "a limit"},
		{"/api/version", 422, "error"},
	} {
		if testing.Short() && c.path == "/api/version" {
			continue // an answer that is too long takes longer than it may under the race detector
		}
		if res, text := s.ask(t, "GET", c.path, s.read, nil); res.StatusCode != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s", c.path, res.StatusCode, text)
		}
	}
}

func TestTokensFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	a, err := OpenTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenTokens(path) // another process
	if err != nil {
		t.Fatal(err)
	}
	secret, err := b.Add("alice", Order)
	if err != nil {
		t.Fatal(err)
	}
	if x, ok := a.check(secret); !ok || x.Name != "alice" || x.Role != "order" {
		t.Errorf("the other does not see it: %v %v", x, ok)
	}
	for _, bad := range []string{"", " ", secret[1:], secret + "A", "alice", hashOf(secret)} {
		if _, ok := a.check(bad); ok {
			t.Errorf("%q counts as a token", bad)
		}
	}
	if _, err := a.Add("alice", Read); err == nil {
		t.Error("two tokens of one name")
	}
	for _, name := range []string{"", "../x", "a b", "a\nb", strings.Repeat("x", 65)} {
		if _, err := a.Add(name, Read); err == nil {
			t.Errorf("name %q is taken", name)
		}
	}
	data, err := os.ReadFile(path)
	info, _ := os.Stat(path)
	if err != nil || strings.Contains(string(data), secret) || info.Mode().Perm() != 0o600 {
		t.Errorf("the file holds the secret, or is %v", info.Mode())
	}
	if err := b.Revoke("alice"); err != nil {
		t.Fatal(err)
	}
	if _, ok := a.check(secret); ok {
		t.Error("a revoked token counts")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(path); err == nil {
		t.Error("a file that all can read is taken")
	}
}
