package health

import (
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
)

const (
	mostBeats = 128
	// deafGap is the longest between two calls of MessagesLost that tell of one time, and mostDeaf how many are kept.
	deafGap  = 10 * time.Second
	mostDeaf = 64
)

// Beat takes a heartbeat; false where it is known already or older than those kept.
func (h *History) Beat(name string, at time.Time) bool {
	i, ok := h.nodeOf(name)
	if !ok || !isTime(at) || !insertTimed(&h.node[i].beats, at, struct{}{}, mostBeats) {
		return false
	}
	b := &h.node[i].beats
	*b = slices.Delete(*b, 0, max(0, len(*b)-mostBeats))
	return true
}

// MessagesLost tells that heartbeats were lost until a time, and for some seconds before. Nobody is unreachable for
// want of those.
func (h *History) MessagesLost(until time.Time) {
	t := until.UnixNano()
	if n := len(h.deaf); n > 0 && t-h.deaf[n-1][1] < int64(deafGap) {
		h.deaf[n-1][1] = max(h.deaf[n-1][1], t)
		return
	}
	h.deaf = append(h.deaf[max(0, len(h.deaf)-mostDeaf+1):], [2]int64{t - int64(deafGap), t})
}

// MoveBeats adds to the times of all heartbeats: the clock that they were read from was set.
func (h *History) MoveBeats(d time.Duration) {
	for i := range h.node {
		for k := range h.node[i].beats {
			h.node[i].beats[k].at += int64(d)
		}
	}
	for i := range h.deaf {
		h.deaf[i][0] += int64(d)
		h.deaf[i][1] += int64(d)
	}
}

// patience is how long a node may be silent, and says so with what is typical of it where that is known.
func (h *History) patience(n *node) (limit time.Duration, text string) {
	if len(n.beats) >= 4 {
		var gaps []int64
		for i := 1; i < len(n.beats); i++ {
			gaps = append(gaps, n.beats[i].at-n.beats[i-1].at)
		}
		usual := time.Duration(stats.Nearest(gaps, 0.5))
		limit, text = 3*usual, fmt.Sprintf(" typical are %s,", usual.Round(time.Millisecond))
	}
	if limit = max(limit, 15*time.Second); h.opt.Unreachable > 0 {
		limit = h.opt.Unreachable
	}
	return limit, fmt.Sprintf("%s allowed %s", text, limit.Round(time.Second))
}

// unreachable finds nodes without heartbeats, and those that have gaps. Most nodes at once are one finding: they hardly
// died together.
func (h *History) unreachable(now time.Time) []finding.Finding {
	var list, late []finding.Finding
	all := 0
	for i := range h.node {
		n, name := &h.node[i], h.nodes.list[i]
		if len(n.beats) == 0 {
			continue
		}
		all++
		last := n.beats[len(n.beats)-1].at
		heard := last // or could have been heard again
		if k := len(h.deaf); k > 0 {
			heard = max(last, h.deaf[k-1][1])
		}
		limit, allowed := h.patience(n)
		gone := now.Sub(stamp(heard))
		if gone <= limit {
			late = append(late, h.lateBeats(name, n, now)...)
			continue
		}
		f := found(Unreachable, name, "", last,
			[]string{fmt.Sprintf("no heartbeat for %s;%s", gone.Round(time.Second), allowed)}, clock(stamp(last)))
		if gone > 2*limit {
			f.Severity, f.Confidence = finding.Error, 0.99
		}
		list = append(list, f)
	}
	if all < 4 || len(list) <= all/2 {
		return append(list, late...)
	}
	first := slices.MinFunc(list, func(a, b finding.Finding) int { return a.Since.Compare(b.Since) }).Since
	f := found(UnreachableFleet, "", "", first.UnixNano(), []string{"the first became unreachable at " + clock(first)},
		len(list), all)
	f.Nodes = nil
	for i := range list {
		f.Nodes = append(f.Nodes, list[i].Nodes...)
	}
	slices.Sort(f.Nodes)
	return append(late, f)
}

// lateBeats finds a node that comes and goes: several gaps within the last hour.
func (h *History) lateBeats(name string, n *node, now time.Time) []finding.Finding {
	const several = 3
	limit, allowed := h.patience(n)
	var longest time.Duration
	var since []int64
	for i := 1; i < len(n.beats); i++ {
		a, b := n.beats[i-1].at, n.beats[i].at
		lost := slices.ContainsFunc(h.deaf, func(d [2]int64) bool { return d[0] < b && a < d[1] })
		if gap := time.Duration(b - a); gap > limit && now.Sub(stamp(b)) < time.Hour && !lost {
			since, longest = append(since, a), max(longest, gap)
		}
	}
	if len(since) < several {
		return nil
	}
	return []finding.Finding{found(LateBeats, name, "", since[0],
		[]string{fmt.Sprintf("the longest gap was %s;%s", longest.Round(time.Second), allowed)}, len(since))}
}
