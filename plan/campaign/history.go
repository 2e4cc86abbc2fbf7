package campaign

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// History is how often nodes of a fleet failed, and how long they were away.
type History struct {
	Nodes    int       `json:"nodes"`
	Since    time.Time `json:"since"`      // the first that is known
	Observed unit.Span `json:"observed_s"` // of all nodes together
	Failures int       `json:"failures"`
	// Between is the mean time between failures of a node: the published figure counts as one more failure in its own
	// time, so that few observations do not promise too much or too little.
	Between unit.Span `json:"mtbf_node_s"`
	Repair  unit.Span `json:"repair_s,omitempty"` // mean of those that are back; 0 where there are none
}

// publishedNode is the GPUs of a node that the published time between failures is taken for.
const publishedNode = 8

// String says where the figure comes from.
func (h *History) String() string {
	return fmt.Sprintf("time between interruptions: %d failures of %d nodes in %v of them together, since %s, with the "+
		"published figure as one more: %v for a node",
		h.Failures, h.Nodes, h.Observed, h.Since.UTC().Format("2006-01-02"), h.Between)
}

// NewHistory counts failures of nodes that joined a fleet at these times: a node with a finding about it alone that is
// an error and certain, several at a time being one.
func NewHistory(nodes map[string]time.Time, found []finding.Finding, now time.Time) *History {
	type outage struct{ from, to time.Time }
	by := map[string][]outage{}
	for _, f := range slices.SortedFunc(slices.Values(found),
		func(a, b finding.Finding) int { return a.Since.Compare(b.Since) }) {
		if len(f.Nodes) != 1 || f.Severity < finding.Error || f.Confidence < 0.9 || f.Always || f.Since.IsZero() ||
			f.Since.After(now) {
			continue
		}
		if f.Cleared.IsZero() {
			f.Cleared = now
		}
		list := by[f.Nodes[0]]
		if k := len(list) - 1; k < 0 || f.Since.After(list[k].to) {
			by[f.Nodes[0]] = append(list, outage{f.Since, f.Cleared})
		} else if f.Cleared.After(list[k].to) {
			list[k].to = f.Cleared
		}
	}
	h := &History{Nodes: len(nodes), Since: now}
	back := 0
	for _, node := range slices.Sorted(maps.Keys(nodes)) { // in order: sums of floats
		from := now
		if joined := nodes[node]; !joined.IsZero() && joined.Before(now) {
			from = joined
		}
		for _, o := range by[node] {
			if h.Failures++; o.from.Before(from) {
				from = o.from // it joined again since
			}
			if o.to.Before(now) {
				h.Repair += unit.Span(o.to.Sub(o.from).Seconds())
				back++
			}
		}
		h.Observed += unit.Span(now.Sub(from).Seconds())
		if from.Before(h.Since) {
			h.Since = from
		}
	}
	h.Between = (h.Observed + MTBF().Value/publishedNode) / unit.Span(h.Failures+1)
	h.Repair /= unit.Span(max(back, 1))
	return h
}
