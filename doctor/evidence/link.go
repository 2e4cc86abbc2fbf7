package evidence

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

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

// linkSample is a sample of the document.
type linkSample struct {
	At      time.Time `json:"at"`
	Sweep   string    `json:"sweep"`
	Rate    unit.Rate `json:"rate_GBps"`
	Latency unit.Time `json:"latency_us"`
	Failed  bool      `json:"failed"`
	Setup   string    `json:"setup"`
}

// fleetLink reads the history of a pair. Where its levels changed follows from the samples, and is not
// taken over.
func (r *Reader) fleetLink(text []byte) bool {
	if !bytes.Contains(text, []byte(`"there"`)) || !bytes.Contains(text, []byte(`"back"`)) {
		return false
	}
	var d struct {
		From  string       `json:"from"`
		To    string       `json:"to"`
		There []linkSample `json:"there"`
		Back  []linkSample `json:"back"`
	}
	if json.Unmarshal(text, &d) != nil || d.From == "" || d.To == "" || d.From == d.To ||
		max(len(d.From), len(d.To)) > maxLinkName {
		return false
	}
	there, ok1 := points(d.There)
	back, ok2 := points(d.Back)
	if !ok1 || !ok2 || len(there)+len(back) == 0 {
		return false
	}
	r.set.Links = append(r.set.Links, Link{r.name, d.From, d.To, there}, Link{r.name, d.To, d.From, back})
	r.document = true
	return true
}

// points are samples in the order of time; false where they are none.
func points(list []linkSample) ([]health.Point, bool) {
	if len(list) > maxLinkSamples {
		return nil, false
	}
	out := make([]health.Point, 0, len(list))
	for _, s := range list {
		if s.At.IsZero() || s.Rate < 0 || s.Latency < 0 || len(s.Setup) > maxLinkName {
			return nil, false
		}
		out = append(out, health.Point{
			Sweep: s.Sweep, Time: s.At, Rate: s.Rate, Latency: s.Latency, Failed: s.Failed, Setup: s.Setup,
		})
	}
	slices.SortStableFunc(out, func(a, b health.Point) int { return a.Time.Compare(b.Time) })
	return out, true
}
