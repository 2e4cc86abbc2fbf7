package health

import (
	"fmt"
	"math"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// id is the kind and who.
func (h *History) id(c cause, f figure) string {
	id := string(c.kind) + ":" + h.who(c)
	if f == latency {
		id = "latency-" + id
	}
	return id
}

// who names what a cause is about.
func (h *History) who(c cause) string {
	switch c.kind {
	case SlowNIC, SlowNICOut, SlowNICIn:
		return h.nodes.list[c.a] + "/" + h.rails.list[c.b]
	case SlowLeaf, SlowLeafOut, SlowLeafIn:
		return h.leaves.list[c.a]
	case SlowPath:
		a, b := h.leaves.list[c.a], h.leaves.list[c.b]
		return min(a, b) + "-" + max(a, b)
	case SlowRail:
		return h.rails.list[c.a]
	case pairs.SlowPair:
		a, b := h.nodes.list[c.a], h.nodes.list[c.b]
		return min(a, b) + "-" + max(a, b)
	case pairs.OneWay:
		return h.nodes.list[c.a] + ">" + h.nodes.list[c.b]
	}
	return h.nodes.list[c.a]
}

// nodesOf are the nodes to look at.
func (h *History) nodesOf(c cause) []string {
	switch c.kind {
	case SlowLeaf, SlowLeafOut, SlowLeafIn, SlowPath:
		var list []string
		for i := range h.node {
			if l := h.node[i].leaf; !h.node[i].gone && l >= 0 && (l == c.a || c.kind == SlowPath && l == c.b) {
				list = append(list, h.nodes.list[i])
			}
		}
		slices.Sort(list)
		return list
	case SlowRail:
		return []string{}
	case pairs.SlowPair:
		list := []string{h.nodes.list[c.a], h.nodes.list[c.b]}
		slices.Sort(list)
		return list
	case pairs.OneWay:
		return []string{h.nodes.list[c.a], h.nodes.list[c.b]}
	}
	return []string{h.nodes.list[c.a]}
}

// finding is a confirmed fault with its figures; raise adds the words.
func (h *History) finding(s *state, t *trial) finding.Finding {
	f := finding.Finding{
		ID: h.id(t.cause, s.fig), Kind: t.kind, Nodes: h.nodesOf(t.cause), Figure: s.fig.String(),
		Since: stamp(h.sweeps.at(t.start).at), Always: t.always, Factor: round(math.Exp(min(t.level, 0))),
	}
	if t.lost {
		f.Factor = 0
	}
	if len(f.Nodes) != 1 || sides(t.kind) != 1 {
		f.Where = h.who(t.cause)
	} else if t.kind == SlowNIC || t.kind == SlowNICOut || t.kind == SlowNICIn {
		f.Where = h.rails.list[t.b]
	}
	f.Severity = severity(f.Factor, s.fig)
	f.Confidence = round(t.sure * (1 - min(0.5, 0.05*math.Exp(t.need-t.sum))))
	if f.Confidence < 0.5 && f.Severity == finding.Error {
		f.Severity = finding.Warn // something is wrong, but hardly there
	}
	f.Evidence = finding.Facts(h.evidence(s, t)...)
	return f
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }

func stamp(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// clock prints a time of a finding.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// severity follows from the factor. A fault by a half is an error, with room for the noise
// around it; latencies matter less.
func severity(factor float64, f figure) finding.Severity {
	bad, warn := 0.6, 0.8
	if f == latency {
		bad, warn = 0.02, 0.25
	}
	switch {
	case factor <= bad:
		return finding.Error
	case factor <= warn:
		return finding.Warn
	}
	return finding.Note
}

// describe are the sentence to act on, and what to do.
func (h *History) describe(t *trial, f *finding.Finding) (text, fix string) {
	who := h.who(t.cause)
	how, verb, whose := "", "slow", "its"
	if breadth(t.kind) != 1 && t.kind != SlowRail {
		whose = "their"
	}
	switch {
	case t.lost:
		how, verb = "measurements fail", "cut off"
	case f.Figure == "latency":
		how = fmt.Sprintf("%.1f times the latency of %s peers", 1/f.Factor, whose)
	default:
		how = fmt.Sprintf("%.0f%% of %s peers' bandwidth", 100*f.Factor, whose)
	}
	if f.Always {
		how += ", since the first sweep seen (" + clock(f.Since) + ")"
	} else {
		how += ", since " + clock(f.Since)
	}
	if t.lost && sides(t.kind) == 1 {
		return fmt.Sprintf("%s is cut off from all others: %s.", who, how),
			fmt.Sprintf("Check whether %s is up and its port has a link (ip link, ibstat), and look at its switch port; drain "+
				"it until measurements work.", h.nodes.list[t.a])
	}
	switch t.kind {
	case pairs.SlowHost:
		return fmt.Sprintf("%s is %s with all others, in both directions: %s.", who, verb, how),
			fmt.Sprintf("Drain %s; check the NIC's PCIe width and speed (lspci -vv), its link speed and counters, CPU "+
				"frequency and memory; then measure again.", who)
	case pairs.SlowOut, SlowNICOut:
		return fmt.Sprintf("%s is %s in sending, to all others: %s.", who, verb, how),
			fmt.Sprintf("Drain %s; swap the cable or transceiver of the port (transmit lanes here, receive at the switch), "+
				"check link speed and error counters at both ends.", h.nodes.list[t.a])
	case pairs.SlowIn, SlowNICIn:
		return fmt.Sprintf("%s is %s in receiving, from all others: %s.", who, verb, how),
			fmt.Sprintf("Drain %s; swap the cable or transceiver of the port, check pause frames and discards at the switch, "+
				"and the NIC's PCIe link.", h.nodes.list[t.a])
	case SlowNIC:
		return fmt.Sprintf("NIC %s is %s, both ways: %s.", who, verb, how),
			fmt.Sprintf("Check cable, link speed and PCIe link of %s on %s; until then leave it out (NCCL_IB_HCA=^%s).",
				h.rails.list[t.b], h.nodes.list[t.a], h.rails.list[t.b])
	case SlowLeaf, SlowLeafOut, SlowLeafIn:
		way := map[finding.Kind]string{SlowLeaf: "to and from", SlowLeafOut: "out of", SlowLeafIn: "into"}[t.kind]
		return fmt.Sprintf("Paths %s leaf %s are %s while those inside it are healthy%s: %s.", way, who, verb, share(t), how),
			fmt.Sprintf("Check the uplinks of %s (ports down, link speed, errors, ECMP or adaptive routing); keep jobs inside "+
				"it until then.", who)
	case SlowPath:
		return fmt.Sprintf("Paths between leaves %s and %s are %s%s: %s.", h.leaves.list[t.a], h.leaves.list[t.b], verb,
				share(t), how),
			"Check the links between these leaves and the spine that joins them."
	case SlowRail:
		return fmt.Sprintf("Rail %s is %s on all nodes: %s.", who, verb, how),
			fmt.Sprintf("Check the switches of rail %s and its settings on the nodes.", who)
	case pairs.SlowPair:
		return fmt.Sprintf("%s and %s are %s with each other and not with others: %s.", f.Nodes[0], f.Nodes[1], verb, how),
			"Check the path between the two: a bad link among several that are shared by hashing, or a route; neither node " +
				"needs draining."
	}
	return fmt.Sprintf("From %s to %s it is %s, and not the other way nor with others: %s.", f.Nodes[0], f.Nodes[1], verb,
			how),
		"Check the path in this direction: a bad link among several that are shared by hashing, or a route; neither node " +
			"needs draining."
}

// share says that only some pairs of a leaf suffer.
func share(t *trial) string {
	if !t.some() {
		return ""
	}
	return fmt.Sprintf(" (%d of %d pairs: one of several links)", t.slow, t.total)
}

// evidence are the figures behind a fault.
func (h *History) evidence(s *state, t *trial) []string {
	last, before := h.typical(s, t)
	var list []string
	if t.lost {
		list = append(list, fmt.Sprintf("%d of %d pairs fail", t.slow, t.total))
		for _, i := range t.members {
			if e := h.errors[i]; e != "" {
				k := h.series[i].pairKey
				list = append(list, fmt.Sprintf("%s to %s: %s", h.nodes.list[k.from], h.nodes.list[k.to], e))
				break
			}
		}
	} else {
		line := fmt.Sprintf("%d of %d pairs slow: median %s", t.slow, t.total, amount(s.fig, last.own))
		if last.own-last.peers < t.level/2 { // else the whole class fell with them
			line += ", their peers " + amount(s.fig, last.peers)
		}
		list = append(list, line)
	}
	if !t.always && before.n > 0 {
		list = append(list, fmt.Sprintf("before: %s, over %d sweeps", amount(s.fig, before.own), before.n))
	}
	list = append(list, fmt.Sprintf("%d sweeps agree; log-likelihood %.0f, reported from %.0f", t.sweeps, t.sum, t.need))
	if t.other != nil && t.sure < 0.95 {
		list = append(list, fmt.Sprintf("otherwise: %s", h.id(*t.other, s.fig)))
	}
	return list
}

func amount(f figure, log float64) string {
	if f == latency {
		return unit.Time(math.Exp(-log)).String()
	}
	return unit.Rate(math.Exp(log)).String()
}

// middle is what members of a cause showed in the middle, and their classes at the same time.
type middle struct {
	own, peers float64
	n          int // sweeps
}

// typical is the middle since a fault began, and before.
func (h *History) typical(s *state, t *trial) (after, before middle) {
	start := h.sweeps.at(t.start).order
	var lists [2][2][]float32
	var seen [2]map[uint32]bool
	seen[0], seen[1] = map[uint32]bool{}, map[uint32]bool{}
	step := 1 + len(t.members)/2000
	for m := 0; m < len(t.members); m += step {
		r := &h.series[t.members[m]]
		class := h.class(r.pairKey)
		for _, p := range r.samples {
			v, ok := p.of(s.fig)
			if !ok || !h.sweeps.holds(p.sweep) {
				continue
			}
			w := h.sweeps.at(p.sweep)
			side := 0
			if w.order < start {
				side = 1
			}
			level := w.level[s.fig][class]
			if level != level {
				continue
			}
			lists[side][0] = append(lists[side][0], float32(v))
			lists[side][1] = append(lists[side][1], level)
			seen[side][p.sweep] = true
		}
	}
	for side, out := range []*middle{&after, &before} {
		if len(lists[side][0]) > 0 {
			*out = middle{
				float64(stats.Nearest(lists[side][0], 0.5)), float64(stats.Nearest(lists[side][1], 0.5)), len(seen[side]),
			}
		}
	}
	return after, before
}
