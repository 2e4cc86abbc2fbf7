package health

import (
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
)

// severalGaps between heartbeats within an hour are told of.
const severalGaps = 3

// Beat takes a heartbeat. A gap in which messages were lost is not the node's.
func (h *History) Beat(name string, at time.Time) {
	i, ok := h.nodeOf(name)
	if !ok || !isTime(at) || at.UnixNano() <= h.node[i].beat {
		return
	}
	n, last := &h.node[i], h.node[i].beat
	if n.beat = at.UnixNano(); last > h.lost && time.Duration(n.beat-last) > h.silence {
		n.gaps = append(n.gaps[max(0, len(n.gaps)-severalGaps+1):], last)
	}
}

// MessagesLost tells that heartbeats were lost until a time. Nobody is unreachable for want of those.
func (h *History) MessagesLost(until time.Time) { h.lost = max(h.lost, until.UnixNano()) }

// MoveBeats adds to the times of all heartbeats: the clock that they were read from was set.
func (h *History) MoveBeats(d time.Duration) {
	for i := range h.node {
		n := &h.node[i]
		if n.beat > 0 {
			n.beat += int64(d)
		}
		for k := range n.gaps {
			n.gaps[k] += int64(d)
		}
	}
	h.lost = max(0, h.lost+int64(d))
}

// unreachable finds nodes without heartbeats, and those that have gaps. Most nodes at once are one finding: they hardly
// died together.
func (h *History) unreachable(now time.Time) []finding.Finding {
	var list, late []finding.Finding
	all, first := 0, now.UnixNano()
	for i := range h.node {
		n, name := &h.node[i], h.nodes.list[i]
		if n.beat == 0 {
			continue
		}
		all++
		gone := now.Sub(stamp(max(n.beat, h.lost)))
		if gone > h.silence {
			f := found(Unreachable, name, "", n.beat, []string{fmt.Sprintf("no heartbeat for %s; allowed %s",
				gone.Round(time.Second), h.silence.Round(time.Second))}, clock(n.beat))
			first = min(first, n.beat)
			if gone > 2*h.silence {
				f.Severity, f.Confidence = finding.Error, 0.99
			}
			list = append(list, f)
		} else if len(n.gaps) == severalGaps && now.Sub(stamp(n.gaps[0])) < time.Hour {
			late = append(late, found(LateBeats, name, "", n.gaps[0],
				[]string{"the last gap began at " + clock(n.gaps[severalGaps-1])}))
		}
	}
	if all < 4 || len(list) <= all/2 {
		return append(list, late...)
	}
	f := found(UnreachableFleet, "", "", first, []string{"the first became unreachable at " + clock(first)}, len(list),
		all)
	f.Nodes = nil
	for i := range list {
		f.Nodes = append(f.Nodes, list[i].Nodes...)
	}
	slices.Sort(f.Nodes)
	return append(late, f)
}
