package health

import (
	"fmt"
	"maps"
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
	list []timed[uint64]
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
	p := h.portOf(c.Node, c.Port, c.Time)
	if p == nil || len(c.Name) > longest {
		return false
	}
	t := p.counters[c.Name]
	if t == nil {
		of := counter.Find(c.Name)
		if of == nil || len(p.counters) >= mostCounters {
			return false
		}
		t = &track{of: of}
		p.counters[c.Name] = t
	}
	if !insertTimed(&t.list, c.Time, c.Value, mostCounts) {
		return false
	}
	t.list = withoutRuns(t.list)
	if n := len(t.list); n > mostCounts {
		// Of the older half every second goes; increments stay whole but for one reset.
		keep := t.list[:1]
		for k := 1; k < n; k++ {
			if k > n/2 || k%2 == 0 {
				keep = append(keep, t.list[k])
			}
		}
		t.list = keep
	}
	return true
}

// rise is how much the counter rose between two times, over how much of them it was read, and when
// it began to. A value below the one before is a reset, after which it counts from 0.
func (t *track) rise(from, to int64) (by float64, over time.Duration, since int64) {
	for k := 1; k < len(t.list); k++ {
		a, b := t.list[k-1], t.list[k]
		first, last := max(a.at, from), min(b.at, to)
		if first >= last {
			continue
		}
		d := b.v
		if b.v >= a.v {
			d -= a.v
		}
		by += float64(d) * float64(last-first) / float64(b.at-a.at)
		over += time.Duration(last - first)
		if d > 0 && since == 0 {
			since = first
		}
	}
	return by, over, since
}

// hourly is the rate per hour of the last hour; by is how much it rose, and since when.
func (t *track) hourly(now time.Time) (rate, by float64, since int64) {
	if n := len(t.list); n < 2 || n == 2 && t.list[0].v == t.list[1].v {
		return 0, 0, 0 // most are at rest, and cost a look
	}
	by, over, since := t.rise(now.Add(-countWindow).UnixNano(), now.UnixNano())
	return by / max(over, shortest).Hours(), by, since
}

// habit is what the counter rises by in an hour in which there is much of it: the upper quarter of the
// last three days' hours before the last one. It is false where there is no such hour. What lasts is a
// habit after most of a day, and a job that runs eight hours a day is one.
func (t *track) habit(now time.Time) (rate float64, known bool) {
	var hours []float64
	for k := range int64(72) {
		to := now.UnixNano() - (k+1)*int64(countWindow)
		if to-int64(countWindow) < t.list[0].at {
			break
		}
		by, _, _ := t.rise(to-int64(countWindow), to)
		hours = append(hours, by)
	}
	slices.Sort(hours)
	if n := len(hours); n > 0 {
		return hours[(3*n-1)/4], true
	}
	return 0, false
}

// peerRates are the rates per hour that the median node shows of counters that rise somewhere. Every node has one
// vote, the median of its ports: one that makes up ports has no more.
func (h *History) peerRates(now time.Time) map[string]float64 {
	rates := map[string][]float64{}
	for i := range h.node {
		for _, p := range h.node[i].ports {
			for name, t := range p.counters {
				if rate, _, _ := t.hourly(now); rate >= t.of.Hourly {
					rates[name] = nil
				}
			}
		}
	}
	peers := map[string]float64{}
	for i := range h.node {
		own := map[string][]float64{}
		for _, p := range h.node[i].ports {
			for name, t := range p.counters {
				if _, rises := rates[name]; rises {
					rate, _, _ := t.hourly(now)
					own[name] = append(own[name], rate)
				}
			}
		}
		for name, list := range own {
			rates[name] = append(rates[name], stats.MedianLow(list))
		}
	}
	for name, list := range rates {
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
	unposted        finding.Kind = "loss of what found no receive" // by no fabric and no cable
	congestionFleet finding.Kind = "congestion of most ports"
)

const (
	// beyond is how many times the rate of its peers a counter must rise at to be a port's own
	// trouble; what all have is the fabric's, or the program's.
	beyond = 10
	// habitual is how many times its own habit a counter of pauses or marks must rise by. They are no errors: a lossless
	// network works with them. They tell who waits for whom.
	habitual = 3
	// severe is how many times its ordinary rate a counter rises at that is an error.
	severe = 100
	// mostNamed bounds the counters that a finding names.
	mostNamed = 5
)

// trouble is what the counters of one kind say of a port.
type trouble struct {
	kind       finding.Kind
	node, port string
	lines      []string
	names      []string
	worst      float64 // the most times its ordinary rate
	part       float64 // of the time, 0 unknown
	since      int64
	own        bool // far more than its peers
	unusual    bool // more than it used to, as far as that is known
	known      bool
	posted     bool // some of it found a receive
}

// pauses tells whether a port has counters of pauses received.
func (p *port) pauses() bool {
	for _, t := range p.counters {
		if t.of.Kind == counter.Pause {
			return true
		}
	}
	return false
}

// isHabit tells whether a kind is held against what a port used to see.
func isHabit(k finding.Kind) bool { return k == Congestion || k == SlowTaker || k == Marked }

// troubles looks at the counters of a port that rise.
func (p *port) troubles(node, port string, peers map[string]float64, now time.Time) map[finding.Kind]trouble {
	all := map[finding.Kind]trouble{}
	for _, c := range slices.Sorted(maps.Keys(p.counters)) {
		t := p.counters[c]
		rate, by, since := t.hourly(now)
		if rate < t.of.Hourly || by < 2 {
			continue
		}
		kind := troubleKinds[t.of.Kind]
		x := all[kind]
		line := fmt.Sprintf("%s rises by %s/h (peers %s/h", c, tidy(rate), tidy(peers[c]))
		if isHabit(kind) {
			habit, known := t.habit(now)
			if known {
				line += fmt.Sprintf(", itself before %s/h", tidy(habit))
			}
			x.known, x.unusual = x.known || known, x.unusual || !known || rate >= habitual*habit
		}
		line += "): " + t.of.Says
		if part, timed := t.of.Share(rate); timed {
			line += fmt.Sprintf(", %.0f%% of the time", 100*part)
			x.part = max(x.part, part)
		}
		if x.since == 0 || since < x.since {
			x.since = since
		}
		x.kind, x.node, x.port, x.worst = kind, node, port, max(x.worst, rate/t.of.Hourly)
		x.own, x.posted = x.own || rate > beyond*peers[c], x.posted || t.of.Name != "out_of_buffer"
		if len(x.names) < mostNamed {
			x.lines, x.names = append(x.lines, line), append(x.names, c)
		}
		all[kind] = x
	}
	return all
}

// finding is false where the trouble is no port's own.
func (x *trouble) finding() (f finding.Finding, ok bool) {
	if isHabit(x.kind) && !(x.own && x.unusual) || x.kind != Errors && !x.own && x.worst < severe {
		return f, false
	}
	text := strings.Join(x.names, ", ")
	if x.part > 0 {
		text += fmt.Sprintf("; %.0f%% of the time", 100*x.part)
	}
	switch {
	case x.own:
	case x.kind == NotReady:
		text += ", as its peers do: the job rather than this port"
	default:
		text += ", as its peers do: the fabric's settings rather than this port"
	}
	words := x.kind
	if x.kind == Loss && !x.posted {
		words = unposted
	}
	f = found(words, x.node, x.port, x.since, x.lines, text)
	f.ID, f.Kind = string(x.kind)+":"+x.node+"/"+x.port, x.kind
	switch {
	case !x.own:
		f.Severity, f.Confidence = finding.Note, 0.5
	case x.kind == Errors && x.worst >= severe:
		f.Severity, f.Confidence = finding.Error, 0.97
	case isHabit(x.kind) && !x.known:
		f.Confidence = 0.6 // what is usual for it nobody knows yet
	}
	if x.kind == Congestion && x.part < 0.1 {
		f.Severity = finding.Note
	}
	return f, true
}

// heldAll is one finding for most ports that the network holds.
func heldAll(list []trouble) finding.Finding {
	first := slices.MinFunc(list, func(a, b trouble) int { return strings.Compare(a.node+"/"+a.port, b.node+"/"+b.port) })
	f := found(congestionFleet, "", "", first.since, []string{"port " + first.node + "/" + first.port + ": " +
		first.lines[0]}, len(list), habitual)
	f.ID, f.Kind, f.Nodes = "congestion:", Congestion, nil
	for _, x := range list {
		f.Nodes = append(f.Nodes, x.node)
		if at := stamp(x.since); at.Before(f.Since) {
			f.Since = at
		}
	}
	slices.Sort(f.Nodes)
	f.Nodes = slices.Compact(f.Nodes)
	return f
}

// tidy prints a rate without false precision.
func tidy(v float64) string {
	if v >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
