package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
)

// holds is for how long a finding that is not seen any more is kept as clearing, maxHeld how many are of one node: none
// drives out those of others.
const (
	holds   = 3 * time.Minute
	maxHeld = 32
)

// holding are findings that come in passing, when first and when last: a minute in which one does not show does not
// clear it.
type holding map[string]*heldFinding

type heldFinding struct {
	finding.Finding

	last time.Time
}

// with takes what is found now, and lists what holds.
func (h *holding) with(list []finding.Finding, now time.Time) []finding.Finding {
	if *h == nil {
		*h = holding{}
	}
	each := map[string]int{}
	for _, f := range *h {
		each[f.Nodes[0]]++
	}
	for _, f := range list {
		old := (*h)[f.ID]
		if f.Severity < finding.Warn || len(f.Nodes) == 0 || old == nil && each[f.Nodes[0]] >= maxHeld {
			continue
		}
		if old == nil {
			each[f.Nodes[0]]++
		}
		if f.Since = now; old != nil {
			f.Since = old.Since
		}
		(*h)[f.ID] = &heldFinding{f, now}
	}
	out := []finding.Finding{}
	for _, id := range slices.Sorted(maps.Keys(*h)) {
		f := (*h)[id]
		if now.Sub(f.last) > holds {
			delete(*h, id)
			continue
		}
		f.Clearing = now.After(f.last)
		out = append(out, f.Finding)
	}
	return out
}

// reported are what nodes say is wrong with themselves.
type reported struct {
	mu   sync.Mutex
	last map[fleet.Name]report
	held holding
}

type report struct {
	at   time.Time
	list []finding.Finding
}

// maxReported bounds what one node may say.
const maxReported = 16

// take keeps what a node says of itself. It counts for itself alone: names and places are made here, and what it says
// is told as its words.
func (r *reported) take(n fleet.Name, list []finding.Finding, now time.Time) {
	kept := report{at: now}
	for _, f := range list[:min(len(list), maxReported)] {
		kind := strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
				return c
			}
			return -1
		}, f.ID)
		where := texttab.Clean(f.Where)
		if kind == "" || len(kind) > 40 || len(where) > 40 || len(f.Text) > 1000 || len(f.Fix) > 1000 {
			continue
		}
		kept.list = append(kept.list, finding.Finding{
			ID: kind + ":" + string(n) + "/" + where, Kind: finding.Kind(kind), Severity: min(f.Severity, finding.Error),
			Confidence: 1,
			Nodes:      []string{string(n)}, Where: string(n) + "/" + where, Text: says(n, f.Text), Fix: says(n, f.Fix),
		})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[fleet.Name]report{}
	}
	if len(kept.list) == 0 {
		delete(r.last, n)
		return
	}
	r.last[n] = kept
}

// says tells something as the words of a node, on one line.
func says(n fleet.Name, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s says: %s", n, strings.Join(strings.Fields(texttab.Clean(text)), " "))
}

// findings are those that nodes told in their last beats.
func (r *reported) findings(now time.Time) []finding.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []finding.Finding
	for _, n := range slices.Sorted(maps.Keys(r.last)) {
		if now.Sub(r.last[n].at) > holds { // it is unreachable, which is a finding of its own
			delete(r.last, n)
			continue
		}
		list = append(list, r.last[n].list...)
	}
	return r.held.with(list, now)
}
