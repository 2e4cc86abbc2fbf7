package evidence

import (
	"bytes"
	"encoding/json"
	"slices"

	"busbar.dev/fleet/health"
	"busbar.dev/unit"
)

// Link is what one direction of a pair showed over time, as the server's /api/fleet/link prints it.
type Link struct {
	File     string
	From, To string
	Points   []health.Point // oldest first
}

const (
	maxLinkSamples = 20_000 // of one direction; a server keeps some hundred
	maxLinkName    = 256
)

// fleetLink reads the history of a pair.
func (r *Reader) fleetLink(text []byte) bool {
	if !bytes.Contains(text, []byte(`"there"`)) || !bytes.Contains(text, []byte(`"back"`)) {
		return false
	}
	var d struct {
		From  string         `json:"from"`
		To    string         `json:"to"`
		There []health.Point `json:"there"`
		Back  []health.Point `json:"back"`
	}
	if json.Unmarshal(unit.InSeconds(text), &d) != nil || d.From == "" || d.To == "" || d.From == d.To ||
		max(len(d.From), len(d.To)) > maxLinkName {
		return false
	}
	if !inOrder(d.There) || !inOrder(d.Back) || len(d.There)+len(d.Back) == 0 {
		return false
	}
	r.set.Links = append(r.set.Links, Link{r.name, d.From, d.To, d.There}, Link{r.name, d.To, d.From, d.Back})
	r.document = true
	return true
}

// inOrder brings samples in the order of time; false where they are none.
func inOrder(list []health.Point) bool {
	if len(list) > maxLinkSamples || slices.ContainsFunc(list, func(s health.Point) bool {
		return s.Time.IsZero() || s.Rate < 0 || s.Latency < 0 || len(s.Setup) > maxLinkName
	}) {
		return false
	}
	slices.SortStableFunc(list, func(a, b health.Point) int { return a.Time.Compare(b.Time) })
	return true
}
