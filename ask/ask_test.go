package ask

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestRegistry holds every question to what commands, routes and documents are made from.
func TestRegistry(t *testing.T) {
	names, routes := map[string]bool{}, map[string]bool{}
	for _, q := range Questions {
		if names[q.Name] || Named(q.Name) != q {
			t.Errorf("%s is registered twice", q.Name)
		}
		names[q.Name] = true
		if q.Route != "" && (routes[q.Route] || q.Within == 0) {
			t.Errorf("%s: route %s, within %v; expected a route of its own and a time", q.Name, q.Route, q.Within)
		}
		routes[q.Route] = true
		if kind := reflect.TypeOf(q.New()).Elem().Kind(); kind != reflect.Struct || q.Text == nil || q.Run == nil {
			t.Errorf("%s: %v; expected a struct that can be asked", q.Name, kind)
		}
		forms := map[string]bool{"text": true, "json": true}
		for _, f := range q.Forms {
			if forms[f.Name] || f.Write == nil {
				t.Errorf("%s: form %s is there already, or is not written", q.Name, f.Name)
			}
			forms[f.Name] = true
		}
	}
}

// TestCommands: a question's command is in the manual, which TestManualLinks of cmd/busbar holds README to.
func TestCommands(t *testing.T) {
	for _, q := range Questions {
		top, _, _ := strings.Cut(q.Words(), " ")
		if _, err := os.Stat("../docs/manual/" + top + ".md"); err != nil && top != "version" && top != "self-test" {
			t.Errorf("%s has no manual page: %v", q.Words(), err)
		}
	}
}
