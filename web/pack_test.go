package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
			h := Packed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
			if res.StatusCode != c.code || (res.Header.Get("Content-Encoding") == "gzip") != c.packed || res.Header.Get("Vary") == "" {
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
