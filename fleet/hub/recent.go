package hub

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// recentLasts is for how long a finding tells of something that has not been noticed again.
const recentLasts = 10 * time.Minute

// recent is what was noticed of nodes of late, by the process's own clock, which nobody sets.
type recent[T any] map[fleet.Name]*noticed[T]

// noticed is one node's.
type noticed[T any] struct {
	first, last time.Time
	what        T
}

// notice is what is noticed of a node now; fresh where nothing was of late.
func (r *recent[T]) notice(n fleet.Name, now time.Time) (e *noticed[T], fresh bool) {
	if e = (*r)[n]; e != nil && now.Sub(e.last) <= recentLasts {
		return e, false
	}
	if *r == nil || len(*r) >= fleet.MaxNodes {
		*r = recent[T]{}
	}
	e = &noticed[T]{first: now, last: now}
	(*r)[n] = e
	return e, true
}

// findings tell of a kind what was noticed and is not over.
func (r recent[T]) findings(kind finding.Kind, s finding.Severity, now time.Time,
	words func(n fleet.Name, what T) (text, fact, fix string),
) (list []finding.Finding) {
	maps.DeleteFunc(r, func(_ fleet.Name, e *noticed[T]) bool { return now.Sub(e.last) > recentLasts })
	for _, n := range slices.Sorted(maps.Keys(r)) {
		e := r[n]
		text, fact, fix := words(n, e.what)
		list = append(list, finding.Finding{
			ID: fmt.Sprintf("%s:%s", kind, n), Kind: kind, Severity: s, Nodes: []string{string(n)},
			Since: e.first.UTC().Truncate(time.Second), Confidence: 1,
			Text: text, Evidence: finding.Facts(fact), Fix: fix,
		})
	}
	return list
}
