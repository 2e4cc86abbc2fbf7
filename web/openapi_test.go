package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestOpenAPI: every question has an address with its parameters, and every type that is referred to is there.
// tools/contracts holds the whole against OpenAPI's own rules.
func TestOpenAPI(t *testing.T) {
	s := newSite(t, nil)
	res, text := s.ask(t, "GET", "/api/openapi.json", s.read, nil)
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.StatusCode, text)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for _, q := range questions() {
		op, ok := doc.Paths["/api/"+q.Route]["get"]
		if n := len(newIndexCommand(q).Parameters); !ok || len(op.Parameters) != n {
			t.Errorf("%s: %d parameters, want %d", q.Route, len(op.Parameters), n)
		}
	}
	for _, part := range strings.Split(text, "#/components/schemas/")[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if doc.Components.Schemas[name] == nil {
			t.Errorf("no schema %s", name)
		}
	}
}
