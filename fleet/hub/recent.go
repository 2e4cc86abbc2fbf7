package hub

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// recentLasts is for how long a finding tells of something that has not been noticed again.
const recentLasts = 10 * time.Minute

// recent is what was noticed of nodes of late, by the process's own clock, which nobody sets.
type recent[T any] struct {
	mu   sync.Mutex // guards following
	each map[fleet.Name]*noticed[T]
}

// noticed is one node's.
type noticed[T any] struct {
	first, last time.Time
	what        T
}

// notice takes note of a node now: change gets what was noticed of it of late. It is true where nothing was.
func (r *recent[T]) notice(n fleet.Name, now time.Time, change func(T) T) (fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.each[n]
	if fresh = e == nil || now.Sub(e.last) > recentLasts; fresh {
		if r.each == nil || len(r.each) >= fleet.MaxNodes {
			r.each = map[fleet.Name]*noticed[T]{}
		}
		e = &noticed[T]{first: now}
		r.each[n] = e
	}
	e.last, e.what = now, change(e.what)
	return fresh
}

// findings tell of a kind what was noticed and is not over.
func (r *recent[T]) findings(kind finding.Kind, s finding.Severity, now time.Time,
	words func(n fleet.Name, what T) (text, fact, fix string),
) (list []finding.Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.each, func(_ fleet.Name, e *noticed[T]) bool { return now.Sub(e.last) > recentLasts })
	for _, n := range slices.Sorted(maps.Keys(r.each)) {
		e := r.each[n]
		text, fact, fix := words(n, e.what)
		list = append(list, finding.Finding{
			ID: fmt.Sprintf("%s:%s", kind, n), Kind: kind, Severity: s, Nodes: []string{string(n)},
			Since: e.first.UTC().Truncate(time.Second), Confidence: 1,
			Text: text, Evidence: finding.Facts(fact), Fix: fix,
		})
	}
	return list
}
