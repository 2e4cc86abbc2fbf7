package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/counter"
	"busbar.dev/internal/stats"
)

// reading is a counter's value at a time in ns.
type reading struct {
	at    int64
	value uint64
}

// track is a counter over time, oldest first; values in a row that are equal are kept as
// the first and the last, so a counter at rest takes two.
type track struct {
	of   *counter.Counter
	list []reading
}

// Bounds of what is kept of a port's counters.
const (
	mostCounters = 256
	mostCounts   = 48
	countWindow  = time.Hour
	// shortest is what a rate is at least taken over, so that two readings a second apart
	// do not make an hour's errors of one.
	shortest = 15 * time.Minute
)

// Count takes the value of a port's counter since the device was reset, in the order in which its node tells. Counters
// that say nothing about faults are not kept. Zeros are worth reporting: what a counter had when first seen is no rise.
func (h *History) Count(node, port, name string, value uint64, at time.Time) {
	p := h.portOf(node, port, at)
	if p == nil || len(name) > longest {
		return
	}
	t := p.counters[name]
	if t == nil {
		of := counter.Find(name)
		if of == nil || len(p.counters) >= mostCounters {
			return
		}
		t = &track{of: of}
		p.counters[name] = t
	}
	n, now := len(t.list), reading{at.UnixNano(), value}
	switch {
	case n > 0 && now.at <= t.list[n-1].at:
		return
	case n > 1 && t.list[n-1].value == value && t.list[n-2].value == value:
		t.list[n-1] = now
		return
	}
	t.list = append(t.list, now)
	if n == mostCounts { // of the older half every second goes; increments stay whole but for one reset
		keep := t.list[:1]
		for k := 1; k <= n; k++ {
			if k > n/2 || k%2 == 0 {
				keep = append(keep, t.list[k])
			}
		}
		t.list = keep
	}
}

// hourly is the rate per hour of the last hour, by how much the counter rose in it, and since when. A value below the
// one before is a reset, after which it counts from 0.
func (t *track) hourly(now time.Time) (rate, by float64, since int64) {
	from, to, over := now.Add(-countWindow).UnixNano(), now.UnixNano(), time.Duration(0)
	for k := 1; k < len(t.list); k++ {
		a, b := t.list[k-1], t.list[k]
		first, last := max(a.at, from), min(b.at, to)
		if first >= last {
			continue
		}
		d := b.value
		if b.value >= a.value {
			d -= a.value
		}
		by += float64(d) * float64(last-first) / float64(b.at-a.at)
		over += time.Duration(last - first)
		if d > 0 && since == 0 {
			since = first
		}
	}
	return by / max(over, shortest).Hours(), by, since
}

// peerRates are the rates per hour of counters that the median node shows. Every node has one vote, the most of its
// ports: one that makes up ports has no more.
func (h *History) peerRates(now time.Time) map[string]float64 {
	votes := map[string][]float64{}
	for i := range h.node {
		own := map[string]float64{}
		for _, p := range h.node[i].ports {
			for name, t := range p.counters {
				rate, _, _ := t.hourly(now)
				own[name] = max(own[name], rate)
			}
		}
		for name, rate := range own {
			votes[name] = append(votes[name], rate)
		}
	}
	peers := map[string]float64{}
	for name, list := range votes {
		peers[name] = stats.MedianLow(list)
	}
	return peers
}

// troubleKinds are what counters that rise are findings of.
var troubleKinds = map[counter.Kind]finding.Kind{
	counter.Link: Errors, counter.Loss: Loss, counter.Host: Loss, counter.Program: Loss, counter.Lane: Loss,
	counter.Unready: NotReady, counter.Pause: Congestion, counter.Slow: SlowTaker, counter.Marks: Marked,
}

const (
	// beyond is how many times the rate of its peers a counter must rise at to be a port's own
	// trouble; what all have is the fabric's, or the program's.
	beyond = 10
	// severe is how many times its ordinary rate a counter of errors rises at that is an error.
	severe = 100
	// mostNamed bounds the counters that a finding names.
	mostNamed = 5
)

// troubles are findings about counters that rise beyond what is ordinary for them and for the peers, by what they
// count.
func (p *port) troubles(node, port string, peers map[string]float64, now time.Time) (list []finding.Finding) {
	type trouble struct {
		names, lines []string
		worst        float64 // the most times its ordinary rate
		since        int64
	}
	all := map[finding.Kind]trouble{}
	for _, c := range slices.Sorted(maps.Keys(p.counters)) {
		t := p.counters[c]
		rate, by, since := t.hourly(now)
		if rate < t.of.Hourly || by < 2 || rate <= beyond*peers[c] {
			continue
		}
		x := all[troubleKinds[t.of.Kind]]
		if x.since == 0 || since < x.since {
			x.since = since
		}
		x.worst = max(x.worst, rate/t.of.Hourly)
		if len(x.names) < mostNamed {
			x.names = append(x.names, c)
			x.lines = append(x.lines, fmt.Sprintf("%s rises by %.0f/h (peers %.0f/h): %s", c, rate, peers[c], t.of.Says))
		}
		all[troubleKinds[t.of.Kind]] = x
	}
	for kind, x := range all {
		f := found(kind, node, port, x.since, x.lines, strings.Join(x.names, ", "))
		if kind == Errors && x.worst >= severe {
			f.Severity, f.Confidence = finding.Error, 0.97
		}
		list = append(list, f)
	}
	return list
}
