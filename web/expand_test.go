package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/hostile"
)

// TestHostileUploads sends every known attack with a read token and asks for its map. Each is answered in time and at a
// bounded cost, and 20,000 nodes are the most that any form of description may stand for.
func TestHostileUploads(t *testing.T) {
	s := realSite(t, func(c *Config) { c.Memory = 2 << 30 })
	docs := append(hostile.Documents(),
		hostile.Doc{Name: "20001.yaml", Data: []byte("nodes:\n- {hosts: 'a[1-20001]', type: dgx-h100}\n")},
		hostile.Doc{Name: "20001.json", Data: []byte(`{"version":1,"types":[],"nodes":[{"hosts":"a[1-20001]"}]}`)},
		hostile.Doc{Name: "20001.conf", Data: []byte("SwitchName=s Nodes=a[1-20001]\n")})
	if testing.Short() { // the race detector makes minutes of the others
		docs = docs[len(docs)-3:]
	}
	for _, d := range docs {
		t.Run(d.Name, func(t *testing.T) {
			r, body := s.ask(t, "POST", "/api/files?name="+d.Name, s.read, bytes.NewReader(d.Data))
			if r.StatusCode != http.StatusOK {
				t.Fatalf("%d %.200s", r.StatusCode, body)
			}
			var kept struct{ ID string }
			if err := json.Unmarshal([]byte(body), &kept); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			r, body = s.ask(t, "GET", "/api/map?c="+url.QueryEscape(kept.ID), s.read, nil)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			mb := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d bytes: %d, %d MB allocated, %v: %.100s", len(d.Data), r.StatusCode, mb, took.Round(time.Millisecond),
				body)
			if mb > 1200 || r.StatusCode == http.StatusInternalServerError {
				t.Errorf("%d bytes: %d, %d MB, %v; want no fault, and at most 1,200 MB in all", len(d.Data), r.StatusCode, mb, took)
			}
			if strings.HasPrefix(d.Name, "20001") && r.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("20,001 nodes: %d; want 422", r.StatusCode)
			}
		})
	}
}

// TestUnpackedIsBounded holds the page to one GiB out of compressed logs.
func TestUnpackedIsBounded(t *testing.T) {
	s := newSite(t, nil)
	if got := s.env(&asked{}).Limits; got.Unpacked != 1<<30 || got.Held != 64<<20 || got.Steps == 0 ||
		got.Bytes != 32<<20 {
		t.Errorf("a question of the page may cost %+v", got)
	}
}
