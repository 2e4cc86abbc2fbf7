package agent

import (
	"context"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
)

// A beat carries a bounded part of what is wrong with a node.
const (
	maxHealth = 16
	maxWords  = 300 // bytes of a text
)

// readHealth asks the node's drivers and kernel what is wrong. Notes are left to busbar check: a node without GPUs is
// not ill.
func (a *agent) readHealth(ctx context.Context) {
	kept := []finding.Finding{}
	for _, f := range a.Health(ctx) {
		if f.Severity == finding.Note || len(kept) == maxHealth {
			continue
		}
		_, at, _ := strings.Cut(f.Where, "/")
		kept = append(kept, finding.Finding{
			ID: f.ID, Severity: f.Severity, Where: at, Text: short(texttab.Clean(f.Text), maxWords),
			Fix: short(texttab.Clean(f.Fix), maxWords),
		})
	}
	a.ill.Store(&kept)
}
