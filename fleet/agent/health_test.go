package agent

import (
	"context"
	"strings"
	"testing"

	"busbar.dev/finding"
)

// TestHealth: a beat carries what is wrong with the node, in bounds, and nothing when it is well again.
func TestHealth(t *testing.T) {
	list := []finding.Finding{{ID: "gpu-persistence", Severity: finding.Note, Where: "n1/gpu0"}}
	for range 2 * maxHealth {
		list = append(list, finding.Finding{
			ID: "gpu-xid-79", Severity: finding.Error, Where: "n1/gpu3", Text: strings.Repeat("lost ", 100),
		})
	}
	a := &agent{Config: Config{Health: func(context.Context) []finding.Finding { return list }}}
	a.readHealth(t.Context())
	got := *a.ill.Load()
	if len(got) != maxHealth || got[0].ID != "gpu-xid-79" || got[0].Where != "gpu3" || len(got[0].Text) > maxWords+3 {
		t.Fatalf("%+v", got)
	}
	list = nil
	if a.readHealth(t.Context()); len(*a.ill.Load()) > 0 {
		t.Errorf("%+v", *a.ill.Load())
	}
}
