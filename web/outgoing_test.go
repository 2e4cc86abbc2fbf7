package web

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
	"busbar.dev/query"
)

// TestPacked sends answers of others compressed, where the client takes that.
func TestPacked(t *testing.T) {
	long := strings.Repeat("0123456789", 1000)
	for _, c := range []struct {
		name, accept, body string
		code               int
		packed             bool
	}{
		{"long", "gzip, br", long, 200, true},
		{"long, refused", "gzip", long, 404, true},
		{"short", "gzip", "short", 201, false},
		{"empty", "gzip", "", 204, false},
		{"not taken", "br", long, 200, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, nil)
			h := s.computed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				if c.body != "" {
					_, _ = io.WriteString(w, c.body)
				}
			}))
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept-Encoding", c.accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			res := w.Result()
			if res.StatusCode != c.code || (res.Header.Get("Content-Encoding") == "gzip") != c.packed ||
				res.Header.Get("Vary") == "" {
				t.Fatalf("%d %v", res.StatusCode, res.Header)
			}
			body := io.Reader(res.Body)
			if c.packed {
				z, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			if got, err := io.ReadAll(body); err != nil || string(got) != c.body {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(c.body))
			}
		})
	}
}

// TestSlowTakersHoldTheirOwn asks for long answers and takes none of them: beyond a few the client is refused, and
// others are not.
func TestSlowTakersHoldTheirOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("answers of many megabytes, whose questions run into their time under the race detector")
	}
	for _, q := range questions() { // however long a busy machine takes to write them
		usual := q.Within
		q.Within = time.Hour
		t.Cleanup(func() { q.Within = usual })
	}
	s := newSite(t, nil)
	long := strings.Repeat("x", 30<<20)
	s.asking = func(context.Context, *asked, query.Env) (any, error) { return map[string]string{"x": long}, nil }
	var codes []string
	for i := range 6 {
		c, err := net.Dial("tcp", s.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /api/predict?c=dgx-h100:%d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", i+1,
			s.read)
		line, err := bufio.NewReaderSize(c, 16).ReadString('\n') // and no more
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, strings.Fields(line)[1])
	}
	if got, want := fmt.Sprint(codes), "[200 200 200 503 503 503]"; got != want {
		t.Errorf("long answers to one token: %v; want %v", got, want)
	}
	if res, _ := s.ask(t, "GET", "/api/predict?c=dgx-h100:99", s.order, nil); res.StatusCode != 200 {
		t.Errorf("another token: %d; want 200", res.StatusCode)
	}
}

// TestFleetAnswersTakeTurns has one token ask a route of others more often at a time than there are places.
func TestFleetAnswersTakeTurns(t *testing.T) {
	hold := make(chan struct{})
	s := newSite(t, func(c *Config) {
		c.More = []Route{{
			Method: "GET", Path: "/api/fleet/x", Role: Read, Computes: true,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("hold") != "" {
					<-hold
				}
				Reply(w, "x")
			}),
		}}
	})
	codes := make(chan int, 40)
	for range cap(codes) {
		go func() {
			r, _ := http.NewRequestWithContext(context.Background(), "GET", s.http.URL+"/api/fleet/x?hold=1", nil)
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
	eventually.Holds(t, "the places of one token are taken", func() bool { return s.pool.busy() == s.pool.slots-1 })
	if res, _ := s.ask(t, "GET", "/api/fleet/x", s.order, nil); res.StatusCode != 200 {
		t.Errorf("another token: %d; want 200", res.StatusCode)
	}
	close(hold)
	count := map[int]int{}
	for range cap(codes) {
		count[<-codes]++
	}
	if count[200] == 0 || count[503] == 0 || count[200]+count[503] != cap(codes) {
		t.Errorf("answers %v; want some 200, the rest 503", count)
	}
}
