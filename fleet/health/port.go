package health

import (
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
)

// LinkState is what a port of a NIC was at a time. The node, the port and the time are its
// identity.
type LinkState struct {
	Node string    `json:"node"`
	Port string    `json:"port"`
	Up   bool      `json:"up"`
	Time time.Time `json:"time"`
}

// port is what is known of a port: its changes of state, oldest first, and its counters.
type port struct {
	states   []timed[bool]
	counters map[string]*track
}

// Bounds of what is kept of a node's ports.
const (
	mostStates = 128
	mostPorts  = 256
)

// portOf is a port of a node, made where it is new; nil where it cannot be kept.
func (h *History) portOf(node, name string, at time.Time) *port {
	i, ok := h.nodeOf(node)
	if !ok || !isTime(at) {
		return nil
	}
	n := &h.node[i]
	p := n.ports[name]
	if p == nil && name != "" && len(name) <= longest && len(n.ports) < mostPorts {
		if n.ports == nil {
			n.ports = map[string]*port{}
		}
		p = &port{counters: map[string]*track{}}
		n.ports[name] = p
	}
	return p
}

// Link takes the state of a port. Of reports in a row that say the same only the first and
// the last are kept once there are many.
func (h *History) Link(s LinkState) bool {
	p := h.portOf(s.Node, s.Port, s.Time)
	if p == nil || !insertTimed(&p.states, s.Time, s.Up, mostStates) {
		return false
	}
	if len(p.states) > mostStates {
		p.states = withoutRuns(p.states)
		p.states = slices.Delete(p.states, 0, max(0, len(p.states)-mostStates))
	}
	return true
}

// flapWindow is within which falls of a link belong together.
const flapWindow = time.Hour

// portFindings are those of all ports.
func (h *History) portFindings(now time.Time) (list []finding.Finding) {
	peers := h.peerRates(now)
	var held []trouble
	pausing := 0 // ports with counters of pauses
	for i := range h.node {
		for name, p := range h.node[i].ports {
			list = append(list, linkFindings(h.nodes.list[i], name, p.states, now)...)
			if p.pauses() {
				pausing++
			}
			for _, x := range p.troubles(h.nodes.list[i], name, peers, now) {
				if f, ok := x.finding(); ok {
					list = append(list, f)
				} else if x.kind == Congestion && x.unusual && x.known {
					held = append(held, x)
				}
			}
		}
	}
	if len(held) > 2 && 2*len(held) > pausing {
		list = append(list, heldAll(held))
	}
	return list
}

// linkFindings finds links that are down and were up, and those that fall again and again. A
// port that never was up is one without a cable.
func linkFindings(node, name string, states []timed[bool], now time.Time) (list []finding.Finding) {
	var falls []int64
	var down time.Duration
	wasUp, since := false, int64(0)
	for k, b := range states {
		wasUp = wasUp || b.v
		if k == 0 || states[k-1].v != b.v {
			since = b.at
		}
		if k == 0 || now.Sub(stamp(b.at)) > flapWindow {
			continue
		}
		if a := states[k-1]; !a.v {
			down += time.Duration(b.at - a.at)
		} else if !b.v {
			falls = append(falls, b.at)
		}
	}
	if n := len(falls); n >= 2 {
		f := found(Flapping, node, name, falls[0],
			[]string{fmt.Sprintf("%d falls from %s to %s, down for %s of the last hour",
				n, clock(stamp(falls[0])), clock(stamp(falls[n-1])), down.Round(time.Second))}, n)
		if n >= 3 {
			f.Severity, f.Confidence = finding.Error, 0.97
		}
		list = append(list, f)
	}
	if n := len(states); wasUp && !states[n-1].v {
		list = append(list, found(LinkDown, node, name, since,
			[]string{"it was up before; last report at " + clock(stamp(states[n-1].at))}, clock(stamp(since))))
	}
	return list
}
