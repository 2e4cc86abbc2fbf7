package health

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/counter"
	"busbar.dev/internal/stats"
)

// Count is a counter of a port as it was read. The node, the port, the name and the time are
// its identity. Counters that say nothing about faults are not kept. Zeros are worth reporting:
// what a counter had when first seen is no rise.
type Count struct {
	Node  string    `json:"node"`
	Port  string    `json:"port"`
	Name  string    `json:"name"`
	Value uint64    `json:"value"` // since the device was reset
	Time  time.Time `json:"time"`
}

// track is a counter over time, oldest first; values in a row that are equal are kept as
// the first and the last, so a counter at rest takes two.
type track struct {
	of   *counter.Counter
	list []countAt
}

type countAt struct {
	at int64
	v  uint64
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

// Count takes a counter's value; false where it is known already, says nothing about
// faults, or finds no room.
func (h *History) Count(c Count) bool {
	i, ok := h.nodeOf(c.Node)
	if !ok || !known(c.Time) || len(c.Name) > longest {
		return h.no()
	}
	p := h.portOf(i, c.Port)
	if p == nil {
		return h.no()
	}
	t := p.counters[c.Name]
	if t == nil {
		of := counter.Find(c.Name)
		if of == nil {
			return false
		}
		if len(p.counters) >= mostCounters {
			return h.no()
		}
		if p.counters == nil {
			p.counters = map[string]*track{}
		}
		t = &track{of: of}
		p.counters[c.Name] = t
	}
	return t.insert(countAt{c.Time.UnixNano(), c.Value})
}

func (t *track) insert(c countAt) bool {
	k, there := slices.BinarySearchFunc(t.list, c, func(a, b countAt) int { return cmp.Compare(a.at, b.at) })
	if there || k == 0 && len(t.list) >= mostCounts {
		return false
	}
	t.list = slices.Insert(t.list, k, c)
	for k := min(k+1, len(t.list)-2); k > 0 && k < len(t.list)-1; k-- {
		if t.list[k-1].v == t.list[k].v && t.list[k].v == t.list[k+1].v {
			t.list = slices.Delete(t.list, k, k+1)
		}
	}
	if len(t.list) > mostCounts {
		// Of the older half every second goes; increments stay whole but for one reset.
		keep := t.list[:1]
		for k := 1; k < len(t.list); k++ {
			if k > len(t.list)/2 || k%2 == 0 {
				keep = append(keep, t.list[k])
			}
		}
		t.list = keep
	}
	return true
}

// rise is how much the counter rose within the window up to now, over which time, and when
// that began. A value below the one before is a reset, after which it counts from 0.
func (t *track) rise(now time.Time) (by float64, over time.Duration, since int64) {
	from := now.Add(-countWindow).UnixNano()
	for k := len(t.list) - 1; k > 0; k-- {
		a, b := t.list[k-1], t.list[k]
		if b.at <= from || b.at > now.UnixNano() {
			continue
		}
		d := b.v
		if b.v >= a.v {
			d = b.v - a.v
		}
		part := 1.0
		if a.at < from { // of the interval that reaches out of the window, a share
			part = float64(b.at-from) / float64(b.at-a.at)
			a.at = from
		}
		by += float64(d) * part
		over += time.Duration(b.at - a.at)
		if d > 0 {
			since = a.at
		}
	}
	return by, max(over, shortest), since
}

// hourly is the rate per hour.
func (t *track) hourly(now time.Time) float64 {
	if n := len(t.list); n < 2 || n == 2 && t.list[0].v == t.list[1].v {
		return 0
	}
	by, over, _ := t.rise(now)
	return by / over.Hours()
}

// where is a port.
type where struct {
	node int
	port string
}

// counterFindings makes one finding of a port's link errors, one of its losses and one of receivers that are not ready
// for it. Most counters of most ports are at rest, and cost a look.
func (h *History) counterFindings(now time.Time) []finding.Finding {
	var ports []where
	names := map[string]bool{}
	for i := range h.node {
		if h.node[i].gone {
			continue
		}
		for name, p := range h.node[i].ports {
			rises := false
			for c, t := range p.counters {
				if t.hourly(now) >= t.of.Hourly {
					rises, names[c] = true, true
				}
			}
			if rises {
				ports = append(ports, where{i, name})
			}
		}
	}
	if len(ports) == 0 {
		return nil
	}
	slices.SortFunc(ports, func(a, b where) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.port, b.port))
	})
	peers := h.peerRates(names, now)
	var list []finding.Finding
	for _, w := range ports {
		for _, kind := range []finding.Kind{Errors, Loss, NotReady} {
			if f, ok := risen(h.nodes.list[w.node], w.port, kind, h.node[w.node].ports[w.port], peers, now); ok {
				list = append(list, f)
			}
		}
	}
	return append(list, h.congested(ports, peers, now)...)
}

// peerRates are the middle rates per hour of some counters over all nodes that have them, whatever ports a node says
// that it has: one in the wrong hands has one vote.
func (h *History) peerRates(names map[string]bool, now time.Time) map[string]float64 {
	rates := map[string][]float64{}
	for i := range h.node {
		if h.node[i].gone {
			continue
		}
		own := map[string][]float64{}
		for _, p := range h.node[i].ports {
			for name := range names {
				if t := p.counters[name]; t != nil {
					own[name] = append(own[name], t.hourly(now))
				}
			}
		}
		for name, list := range own {
			rates[name] = append(rates[name], stats.MedianLow(list))
		}
	}
	out := map[string]float64{}
	for name, list := range rates {
		out[name] = stats.MedianLow(list)
	}
	return out
}

// beyond is how many times the rate of its peers a counter must rise at to be a port's own
// trouble; what all have is the fabric's, or the program's.
const beyond = 10

// risen looks at the counters of one port that tell of one kind of trouble.
func risen(node, name string, kind finding.Kind, p *port, peers map[string]float64,
	now time.Time,
) (f finding.Finding, ok bool) {
	worst, common := 0.0, true
	unposted := true // all of it came and found no receive
	var lines, names []string
	since := int64(0)
	for _, c := range sortedKeys(p.counters) {
		t := p.counters[c]
		m := t.of
		if troubleOf(m.Kind) != kind {
			continue
		}
		by, over, began := t.rise(now)
		rate := by / over.Hours()
		if rate < m.Hourly || by < 2 {
			continue
		}
		worst = max(worst, rate/m.Hourly)
		unposted = unposted && m.Name == "out_of_buffer"
		own := rate > beyond*peers[c]
		common = common && !own
		if since == 0 || began < since {
			since = began
		}
		lines = append(lines, fmt.Sprintf("%s rises by %s/h (peers %s/h): %s", c, tidy(rate), tidy(peers[c]), m.Says))
		names = append(names, c)
	}
	if len(lines) == 0 || kind != Errors && common && worst < 100 {
		return f, false
	}
	f = finding.Finding{
		ID: string(kind) + ":" + node + "/" + name, Kind: kind, Severity: finding.Warn, Nodes: []string{node}, Where: name,
		Since: stamp(since), Confidence: 0.9, Evidence: finding.Facts(lines[:min(len(lines), 5)]...),
	}
	switch {
	case common:
		f.Severity, f.Confidence = finding.Note, 0.5
	case kind == Errors && worst >= 100:
		f.Severity, f.Confidence = finding.Error, 0.97
	}
	says := "has errors of its link"
	f.Fix = "Clean or replace cable and transceiver, then the NIC (ibqueryerrors, mlxlink -d DEV -m, ethtool -S on both " +
		"ends)."
	switch kind {
	case Loss:
		says = "loses packets"
		f.Fix = "The same PFC and ECN settings on this host, its switch port and its peers (mlnx_qos, switch counters); " +
			"then the cable and the host's load."
		if unposted { // neither fabric nor cable lost it
			says = "drops packets that arrive, as no receive buffer is ready for them"
			f.Fix = "Neither cable nor switch: look on this host for processes that are stopped, starved of processors or " +
				"post too few receives; for kernel traffic lengthen the receive ring (ethtool -G DEV rx N)."
		}
	case NotReady:
		says = "waits for receivers that are too slow: they have no buffers ready"
		f.Fix = "Neither cable nor switch: look at the hosts that it sends to, where out_of_buffer rises, for processes " +
			"that are stopped, starved of processors or post too few receives."
	}
	f.Text = fmt.Sprintf("Port %s/%s %s: %s.", node, name, says, strings.Join(names, ", "))
	switch {
	case common && kind == NotReady:
		f.Text = strings.TrimSuffix(f.Text, ".") + ", as its peers do: the job rather than this port."
	case common:
		f.Text = strings.TrimSuffix(f.Text, ".") + ", as its peers do: the fabric's settings rather than this port."
	}
	return f, true
}

// troubleOf is what a counter that rises is a finding of here; "" where others judge it.
func troubleOf(k counter.Kind) finding.Kind {
	switch k {
	case counter.Link:
		return Errors
	case counter.Unready:
		return NotReady
	case counter.Pause, counter.Slow, counter.Marks:
		return ""
	}
	return Loss
}

// tidy prints a rate without false precision.
func tidy(v float64) string {
	if v >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
