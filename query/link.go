package query

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"busbar.dev/fleet/health"
	"busbar.dev/unit"
)

// Link asks what the fleet measured between two nodes over time: changes of the rate, and hours of the day at which it is low.
type Link struct {
	Nodes string `placeholder:"NODE,NODE" help:"Two nodes: gpu01,gpu02."`
}

// LinkDoc is the answer to Link.
type LinkDoc struct {
	From         string          `json:"from"`
	To           string          `json:"to"`
	There        []LinkSample    `json:"there"`
	Back         []LinkSample    `json:"back"`
	ThereChanges []health.Change `json:"there_changes,omitempty"`
	BackChanges  []health.Change `json:"back_changes,omitempty"`
	ThereDaily   []health.Daily  `json:"there_daily,omitempty"`
	BackDaily    []health.Daily  `json:"back_daily,omitempty"`
}

// LinkSample is one time that a direction of a pair was measured.
type LinkSample struct {
	At      time.Time `json:"at"`
	Sweep   string    `json:"sweep"`
	Rate    unit.Rate `json:"rate_GBps,omitzero"`
	Latency unit.Time `json:"latency_us,omitzero"`
	Failed  bool      `json:"failed,omitempty"`
	Setup   string    `json:"setup,omitempty"` // how it was measured; those that differ cannot be compared
}

// Run asks the server.
func (q Link) Run(ctx context.Context, env Env) (doc *LinkDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	from, to, ok := strings.Cut(q.Nodes, ",")
	if !ok || from == "" || to == "" || strings.Contains(to, ",") {
		return nil, fmt.Errorf("--link %.80s: expected two nodes: --link gpu01,gpu02", q.Nodes)
	}
	doc = &LinkDoc{}
	path := "/api/fleet/link?" + url.Values{"from": {from}, "to": {to}}.Encode()
	return doc, env.ask(ctx, "GET", path, nil, doc)
}
