package health

import (
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
)

// beats are the last heartbeats of a node, oldest first.
type beats struct {
	at []int64 // ns
}

const mostBeats = 128

// Beat takes a heartbeat; false where it is known already or older than those kept.
func (h *History) Beat(name string, at time.Time) bool {
	i, ok := h.nodeOf(name)
	if !ok || !known(at) {
		return h.no()
	}
	b := &h.node[i].beats
	t := at.UnixNano()
	k, there := slices.BinarySearch(b.at, t)
	if there || k == 0 && len(b.at) == mostBeats {
		return false
	}
	if len(b.at) == mostBeats {
		b.at = slices.Delete(b.at, 0, 1)
		k--
	}
	b.at = slices.Insert(b.at, k, t)
	return true
}

// deafGap is the longest between two calls of Deaf that tell of one time, and mostDeaf how many times are kept.
const (
	deafGap  = 10 * time.Second
	mostDeaf = 64
)

// MessagesLost tells that heartbeats were lost until a time, and for some seconds before. Nobody is unreachable for
// want of those.
func (h *History) MessagesLost(until time.Time) {
	t := until.UnixNano()
	if n := len(h.deaf); n > 0 && t-h.deaf[n-1][1] < int64(deafGap) {
		h.deaf[n-1][1] = max(h.deaf[n-1][1], t)
		return
	}
	if len(h.deaf) == mostDeaf {
		h.deaf = slices.Delete(h.deaf, 0, 1)
	}
	h.deaf = append(h.deaf, [2]int64{t - int64(deafGap), t})
}

// reachableAgain is when a node could have been heard again that was last heard at a time.
func (h *History) reachableAgain(last int64) time.Time {
	if n := len(h.deaf); n > 0 {
		last = max(last, h.deaf[n-1][1])
	}
	return stamp(last)
}

// lostWithin tells whether heartbeats were lost between two times.
func (h *History) lostWithin(from, to int64) bool {
	return slices.ContainsFunc(h.deaf, func(d [2]int64) bool { return d[0] < to && from < d[1] })
}

// MoveBeats adds to the times of all heartbeats: the clock that they were read from was set.
func (h *History) MoveBeats(d time.Duration) {
	for i := range h.node {
		at := h.node[i].beats.at
		for k := range at {
			at[k] += int64(d)
		}
	}
	for i := range h.deaf {
		h.deaf[i][0] += int64(d)
		h.deaf[i][1] += int64(d)
	}
}

// usual is the middle distance of heartbeats; 0 where there are too few to tell.
func (b *beats) usual() time.Duration {
	if len(b.at) < 4 {
		return 0
	}
	gaps := make([]int64, 0, len(b.at))
	for i := 1; i < len(b.at); i++ {
		gaps = append(gaps, b.at[i]-b.at[i-1])
	}
	return time.Duration(stats.Nearest(gaps, 0.5))
}

// typicalText says what is usual, for the middle of a sentence, and nothing where that is not known.
func (b *beats) typicalText() string {
	d := b.usual()
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(" typical are %s,", d.Round(time.Millisecond))
}

// silenceLimit is how long a node may be silent.
func (h *History) silenceLimit(b *beats) time.Duration {
	if h.opt.Unreachable > 0 {
		return h.opt.Unreachable
	}
	return max(3*b.usual(), 15*time.Second)
}

// unreachable finds nodes without heartbeats, and those that have gaps.
func (h *History) unreachable(now time.Time) []finding.Finding {
	var list, late []finding.Finding
	all := 0
	for i := range h.node {
		n := &h.node[i]
		if n.gone || len(n.beats.at) == 0 {
			continue
		}
		all++
		last := stamp(n.beats.at[len(n.beats.at)-1])
		patience := h.silenceLimit(&n.beats)
		name := h.nodes.list[i]
		if gone := now.Sub(h.reachableAgain(n.beats.at[len(n.beats.at)-1])); gone > patience {
			f := finding.Finding{
				ID: "silent:" + name, Kind: Unreachable, Severity: finding.Warn, Nodes: []string{name}, Since: last,
				Confidence: 0.9,
				Text:       fmt.Sprintf("%s is unreachable since %s.", name, clock(last)),
				Fix: fmt.Sprintf("Check whether %s is up and its agent runs (systemctl status, console, BMC); drain it "+
					"until it is back.", name),
				Evidence: finding.Facts(fmt.Sprintf("no heartbeat for %s;%s allowed %s", gone.Round(time.Second),
					n.beats.typicalText(), patience.Round(time.Second))),
			}
			if gone > 2*patience {
				f.Severity, f.Confidence = finding.Error, 0.99
			}
			list = append(list, f)
			continue
		}
		if f, ok := h.lateBeats(name, &n.beats, now); ok {
			late = append(late, f)
		}
	}
	if all >= 4 && len(list) > all/2 {
		list = []finding.Finding{unreachableFleet(list, all)}
	}
	return append(list, late...)
}

// unreachableFleet is one finding for most nodes: they hardly died together.
func unreachableFleet(list []finding.Finding, all int) finding.Finding {
	f := finding.Finding{
		ID: "silent-fleet:", Kind: UnreachableFleet, Severity: finding.Error, Since: list[0].Since, Confidence: 0.9,
		Text: fmt.Sprintf("%d of %d nodes are unreachable at the same time: probably the network between them and this "+
			"server, not the nodes.", len(list), all),
		Fix: "Check the management network and this server's own connection before draining anything.",
	}
	for _, o := range list {
		f.Nodes = append(f.Nodes, o.Nodes...)
		if o.Since.Before(f.Since) {
			f.Since = o.Since
		}
	}
	slices.Sort(f.Nodes)
	f.Evidence = finding.Facts(fmt.Sprintf("the first became unreachable at %s", clock(f.Since)))
	return f
}

// lateBeats finds a node that comes and goes: several gaps within the last hour.
func (h *History) lateBeats(name string, b *beats, now time.Time) (f finding.Finding, ok bool) {
	const several = 3
	patience := h.silenceLimit(b)
	var longestGap time.Duration
	n, since := 0, time.Time{}
	for i := 1; i < len(b.at); i++ {
		gap := time.Duration(b.at[i] - b.at[i-1])
		if at := stamp(b.at[i]); gap > patience && now.Sub(at) < time.Hour && !h.lostWithin(b.at[i-1], b.at[i]) {
			n++
			longestGap = max(longestGap, gap)
			if since.IsZero() {
				since = stamp(b.at[i-1])
			}
		}
	}
	if n < several {
		return f, false
	}
	return finding.Finding{
		ID: "late-beats:" + name, Kind: LateBeats, Severity: finding.Warn, Nodes: []string{name}, Since: since,
		Confidence: 0.8,
		Text:       fmt.Sprintf("%s comes and goes: %d gaps between its heartbeats within an hour.", name, n),
		Fix: "Look for a node that hangs (memory, I/O, kernel log), an agent that restarts, or a flapping management " +
			"link.",
		Evidence: finding.Facts(fmt.Sprintf("the longest gap was %s;%s allowed %s", longestGap.Round(time.Second),
			b.typicalText(), patience.Round(time.Second))),
	}, true
}
