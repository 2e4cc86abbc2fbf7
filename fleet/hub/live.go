package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	"busbar.dev/fleet"
)

// live is what nodes sent and nobody keeps. Its times are of the process's own clock, which nobody sets.
type live struct {
	mu    sync.Mutex // guards following
	beats map[fleet.Name]lastBeat
	fresh map[fleet.Name]bool // beats that no page was told of
	lost  time.Time           // until when messages were lost
}

// lastBeat is a beat and when it came; missed tells that the next one is overdue.
type lastBeat struct {
	fleet.Beat
	came   time.Time
	missed bool
}

// beat keeps a beat; false where there are too many nodes.
func (l *live) beat(b *fleet.Beat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.beats[b.Node]; !known && len(l.beats) >= fleet.MaxNodes {
		return false
	}
	kept := *b
	kept.Part = cut(b.Part)
	l.beats[b.Node] = lastBeat{Beat: kept, came: time.Now()}
	l.fresh[b.Node] = true
	return true
}

// deaf notes that messages were lost until now.
func (l *live) deaf() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = time.Now()
}

// quiet is for how long a node could have been heard, and was not. The caller holds mu.
func (l *live) quiet(b lastBeat) time.Duration {
	if l.lost.After(b.came) {
		return time.Since(l.lost)
	}
	return time.Since(b.came)
}

func (l *live) forget(n fleet.Name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.beats, n)
	delete(l.fresh, n)
}

// names are the nodes that beat.
func (l *live) names() []fleet.Name {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.beats))
}

// alive adds the last beat to what is known of a node; false where it has not beaten.
func (l *live) alive(s *fleet.NodeState, unreachable time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.beats[s.Name]
	if !ok {
		return false
	}
	if s.State != fleet.NodeLeft && l.quiet(b) <= unreachable {
		s.State = fleet.NodeUp
	}
	s.Age = time.Since(b.came)
	s.AgeS = s.Age.Seconds()
	s.Waiting, s.Load, s.Receive, s.Send = b.Waiting, b.Load, b.Receive, b.Send
	if b.Part != "" {
		s.Progress = &fleet.Progress{Node: s.Name, Part: b.Part}
	}
	return true
}

// takeFresh are the nodes that beat since the last call; missed tells that others have just become unreachable.
func (l *live) takeFresh(unreachable time.Duration) (list []fleet.Name, missed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list = slices.Collect(maps.Keys(l.fresh))
	clear(l.fresh)
	for n, b := range l.beats {
		if !b.missed && l.quiet(b) > unreachable {
			b.missed, missed = true, true
			l.beats[n] = b
		}
	}
	return list, missed
}
