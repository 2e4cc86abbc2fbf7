package hub

import (
	"sync"
	"time"

	"busbar.dev/fleet"
)

// live is what nodes sent and nobody keeps.
type live struct {
	mu         sync.Mutex // guards following
	beats      map[fleet.Name]lastBeat
	progresses map[fleet.Name]fleet.Progress
	fresh      map[fleet.Name]bool // beats that no page was told of
	count      uint64
	lost       time.Time // until when messages were lost
}

// lastBeat is a beat and when it came, by our own clock: a node's may be wrong. See Hub.now.
type lastBeat struct {
	fleet.Beat
	came time.Time
}

func newLive() *live {
	return &live{
		beats: map[fleet.Name]lastBeat{}, progresses: map[fleet.Name]fleet.Progress{}, fresh: map[fleet.Name]bool{},
	}
}

// beat keeps a beat; false where there are too many nodes.
func (l *live) beat(b *fleet.Beat, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.beats[b.Node]; !known && len(l.beats) >= fleet.MaxNodes {
		return false
	}
	kept := *b
	kept.Part = cut(b.Part)
	l.beats[b.Node] = lastBeat{kept, now}
	l.fresh[b.Node] = true
	l.count++
	if kept.Part == "" {
		delete(l.progresses, b.Node)
	}
	return true
}

// deaf notes that messages were lost until now.
func (l *live) deaf(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = now
}

// quiet is for how long a node that was last heard at a time could have been heard, and was not.
func (l *live) quiet(came, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost.After(came) {
		came = l.lost
	}
	return max(now.Sub(came), 0)
}

// move follows a clock that was set.
func (l *live) move(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lost.IsZero() {
		l.lost = l.lost.Add(d)
	}
	for n, b := range l.beats {
		b.came = b.came.Add(d)
		l.beats[n] = b
	}
}

// progress keeps how far a part is, of nodes that beat.
func (l *live) progress(d *fleet.Progress) (kept fleet.Progress, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.beats[d.Node]; !known {
		return kept, false
	}
	kept = *d
	kept.Order, kept.Part, kept.Text = cut(d.Order), cut(d.Part), cut(d.Text)
	l.progresses[d.Node] = kept
	return kept, true
}

// done clears what a node was at, before its next beat says so.
func (l *live) done(n fleet.Name, part string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.beats[n]; ok && b.Part == part {
		b.Part = ""
		l.beats[n] = b
		delete(l.progresses, n)
	}
}

func (l *live) forget(n fleet.Name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.beats, n)
	delete(l.progresses, n)
	delete(l.fresh, n)
}

// of is the last beat of a node.
func (l *live) of(n fleet.Name) (b lastBeat, d fleet.Progress, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok = l.beats[n]
	return b, l.progresses[n], ok
}

// takeFresh are the nodes that beat since the last call.
func (l *live) takeFresh() []lastBeat {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]lastBeat, 0, len(l.fresh))
	for n := range l.fresh {
		out = append(out, l.beats[n])
	}
	clear(l.fresh)
	return out
}
