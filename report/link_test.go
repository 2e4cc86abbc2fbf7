package report

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"busbar.dev/query"
)

// linkServer answers about one pair as a fleet's server does.
type linkServer struct{ path string }

func (s *linkServer) Call(_ context.Context, _, path string, _, out any) error {
	s.path = path
	return json.Unmarshal([]byte(`{"from": "gpu01", "to": "gpu02",
		"there": [{"at": "2026-03-01T00:00:00Z", "sweep": "1", "rate_GBps": 12}, {"at": "2026-03-06T00:00:00Z", "sweep": "2", "rate_GBps": 12}, {"at": "2026-03-06T01:00:00Z", "sweep": "3", "failed": true}],
		"back": []}`), out)
}

// A pair's history: each direction with its median.
func TestLink(t *testing.T) {
	server := &linkServer{}
	doc, err := query.Link{Nodes: "gpu01,gpu02"}.Run(t.Context(), query.Env{Fleet: server})
	if err != nil {
		t.Fatal(err)
	}
	if server.path != "/api/fleet/link?from=gpu01&to=gpu02" {
		t.Errorf("%s: %+v", server.path, doc)
	}
	var b strings.Builder
	if err := Print(&b, TextOptions{}, Link, doc); err != nil {
		t.Fatal(err)
	}
	const want = `gpu01 to gpu02: 3 samples from 2026-03-01 00:00Z to 2026-03-06 01:00Z, median 12 GB/s, 1 failed
gpu02 to gpu01: never measured
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	for _, bad := range []string{"", "gpu01", "gpu01,", "a,b,c"} {
		if _, err := (query.Link{Nodes: bad}).Run(t.Context(), query.Env{Fleet: server}); err == nil ||
			!strings.Contains(err.Error(), "expected two nodes") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
