package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/counter"
)

// Pause frames are no errors: a lossless network works with them. They tell who waits for whom, and
// matter where there are more of them than this port used to see, and than its peers do.

// habitual is how many times its own habit a counter must rise by.
const habitual = 3

// within is how much the counter rose between two times.
func (t *track) within(from, to int64) float64 {
	sum := 0.0
	for k := 1; k < len(t.list); k++ {
		a, b := t.list[k-1], t.list[k]
		lo, hi := max(a.at, from), min(b.at, to)
		if hi <= lo {
			continue
		}
		d := b.v // counted anew after a reset
		if b.v >= a.v {
			d = b.v - a.v
		}
		sum += float64(d) * float64(hi-lo) / float64(b.at-a.at)
	}
	return sum
}

// habit is what the counter rises by in an hour in which there is much of it: the upper quarter of the
// last three days' hours before the last one. It is false where there is no such hour. What lasts is a
// habit after most of a day, and a job that runs eight hours a day is one.
func (t *track) habit(now time.Time) (rate float64, known bool) {
	if len(t.list) == 0 {
		return 0, false
	}
	var hours []float64
	for k := range 72 {
		to := now.UnixNano() - int64(k+1)*int64(countWindow)
		if to-int64(countWindow) < t.list[0].at {
			break
		}
		hours = append(hours, t.within(to-int64(countWindow), to))
	}
	if len(hours) == 0 {
		return 0, false
	}
	slices.Sort(hours)
	return hours[(3*len(hours)-1)/4], true
}

// held is what pause counters of one direction say of a port.
type held struct {
	where
	kind    finding.Kind
	lines   []string
	names   []string
	part    float64 // of the time, 0 unknown
	since   int64
	own     bool // far more than its peers
	unusual bool // more than it used to, as far as that is known
	known   bool
}

// heldBy looks at the pause counters of a port that rise.
func (h *History) heldBy(w where, kind counter.Kind, peers map[string]float64, now time.Time) (x held, ok bool) {
	p := h.node[w.node].ports[w.port]
	x = held{where: w, kind: Congestion}
	switch kind {
	case counter.Slow:
		x.kind = SlowTaker
	case counter.Marks:
		x.kind = Marked
	}
	for _, c := range sortedKeys(p.counters) {
		t := p.counters[c]
		by, over, since := t.rise(now)
		rate := by / over.Hours()
		if t.of.Kind != kind || rate < t.of.Hourly || by < 2 {
			continue
		}
		habit, known := t.habit(now)
		line := fmt.Sprintf("%s rises by %s/h (peers %s/h", c, tidy(rate), tidy(peers[c]))
		if known {
			line += fmt.Sprintf(", itself before %s/h", tidy(habit))
		}
		line += "): " + t.of.Says
		if part, timed := t.of.Share(rate); timed {
			line += fmt.Sprintf(", %.0f%% of the time", 100*part)
			x.part = max(x.part, part)
		}
		x.lines, x.names = append(x.lines, line), append(x.names, c)
		x.own = x.own || rate > beyond*peers[c]
		x.known = x.known || known
		x.unusual = x.unusual || !known || rate >= habitual*habit
		if x.since == 0 || since < x.since {
			x.since = since
		}
	}
	return x, len(x.lines) > 0
}

// congested finds ports that are held, or that hold the network, more than they used to and more than
// their peers. Where most ports are held at once it is one finding, about the network.
func (h *History) congested(ports []where, peers map[string]float64, now time.Time) []finding.Finding {
	var list, common []held
	for _, w := range ports {
		for _, kind := range []counter.Kind{counter.Pause, counter.Slow, counter.Marks} {
			x, ok := h.heldBy(w, kind, peers, now)
			switch {
			case ok && x.unusual && x.own:
				list = append(list, x)
			case ok && x.unusual && x.known && kind == counter.Pause:
				common = append(common, x)
			}
		}
	}
	if len(common) >= 3 && 2*len(common) > h.pausing() {
		return append(findingsOf(h, list), h.heldAll(common))
	}
	return findingsOf(h, list)
}

// pausing is how many ports have counters of pauses received.
func (h *History) pausing() (n int) {
	for i := range h.node {
		if h.node[i].gone {
			continue
		}
		for _, p := range h.node[i].ports {
			for _, t := range p.counters {
				if t.of.Kind == counter.Pause {
					n++
					break
				}
			}
		}
	}
	return n
}

func findingsOf(h *History, list []held) []finding.Finding {
	var out []finding.Finding
	for _, x := range list {
		node := h.nodes.list[x.node]
		f := finding.Finding{
			ID: string(x.kind) + ":" + node + "/" + x.port, Kind: x.kind, Severity: finding.Warn, Nodes: []string{node},
			Where: x.port,
			Since: stamp(x.since), Confidence: 0.8, Evidence: finding.Facts(x.lines[:min(len(x.lines), 5)]...),
		}
		if !x.known {
			f.Confidence = 0.6 // what is usual for it nobody knows yet
		}
		often := strings.Join(x.names, ", ")
		if x.part > 0 {
			often += fmt.Sprintf("; %.0f%% of the time", 100*x.part)
		}
		switch x.kind {
		case Marked:
			f.Severity = finding.Note
			f.Text = fmt.Sprintf("Port %s/%s meets more congestion than its peers (%s).", node, x.port, often)
			f.Fix = "No error of this port: many send to one (incast), or a link on the way has less rate than the others. " +
				"np_ and tx_cnp counters are of what comes to the host, rp_ and rx_cnp of what it sends. Look at the uplinks of " +
				"its leaf, adaptive routing, and ECN thresholds."
		case Congestion:
			if x.part < 0.1 {
				f.Severity = finding.Note
			}
			f.Text = fmt.Sprintf("Port %s/%s is told to pause: congestion from the switch (%s).", node, x.port, often)
			f.Fix = "Not this host: whoever it sends to takes too slowly, or many send to one. Look for a node that sends " +
				"pause frames (slow-receiver), for links with less rate than the others, and at the switch's queues; then at PFC " +
				"and ECN thresholds."
		default:
			f.Text = fmt.Sprintf("Port %s/%s tells others to pause: this host is slow to receive (%s).", node, x.port, often)
			f.Fix = "Check its PCIe link (lspci -vv: LnkSta), IOMMU, memory and CPU frequency, the receive rings (ethtool " +
				"-g), and PFC thresholds; while it lasts, everybody who sends through the same switch waits."
		}
		out = append(out, f)
	}
	return out
}

// heldAll is one finding for most ports.
func (h *History) heldAll(list []held) finding.Finding {
	f := finding.Finding{ID: "congestion:", Kind: Congestion, Severity: finding.Note, Nodes: []string{}, Confidence: 0.7}
	since := list[0].since
	for _, x := range list {
		f.Nodes = append(f.Nodes, h.nodes.list[x.node])
		since = min(since, x.since)
	}
	slices.Sort(f.Nodes)
	f.Nodes = slices.Compact(f.Nodes)
	f.Since = stamp(since)
	f.Text = fmt.Sprintf("%d ports are told to pause, at least %d times as much as they used to: congestion from the "+
		"switch, all over the network.", len(list), habitual)
	f.Fix = "A job that sends more than the network carries does this; else what changed for all: PFC and ECN " +
		"thresholds of the switches, a spine or uplink that is down, another tenant."
	f.Evidence = finding.Facts("port " + h.nodes.list[list[0].node] + "/" + list[0].port + ": " + list[0].lines[0])
	return f
}
