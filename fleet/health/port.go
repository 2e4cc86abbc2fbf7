package health

import (
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
)

// port is what is known of a port: its state and when it changed, and its counters.
type port struct {
	up, wasUp      bool
	since, updated int64
	falls          []int64 // the last losses of link
	counters       map[string]*track
}

// Bounds of what is kept of a node's ports.
const (
	mostFalls = 16
	mostPorts = 256
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

// Link takes the state of a port, in the order in which its node tells. A clock that was set back does not hide a
// change.
func (h *History) Link(node, name string, up bool, at time.Time) {
	p := h.portOf(node, name, at)
	if p == nil {
		return
	}
	p.updated = max(p.updated, at.UnixNano())
	if p.since == 0 || up != p.up {
		p.since = p.updated
	}
	if p.up && !up {
		p.falls = append(p.falls[max(0, len(p.falls)-mostFalls+1):], p.since)
	}
	p.up, p.wasUp = up, p.wasUp || up
}

// flapWindow is within which falls of a link belong together.
const flapWindow = time.Hour

// portFindings are those of all ports.
func (h *History) portFindings(now time.Time) (list []finding.Finding) {
	peers := h.peerRates(now)
	for i := range h.node {
		for name, p := range h.node[i].ports {
			list = append(list, p.linkFindings(h.nodes.list[i], name, now)...)
			list = append(list, p.troubles(h.nodes.list[i], name, peers, now)...)
		}
	}
	return list
}

// linkFindings finds links that are down and were up, and those that fall again and again. A
// port that never was up is one without a cable.
func (p *port) linkFindings(node, name string, now time.Time) (list []finding.Finding) {
	falls := slices.DeleteFunc(slices.Clone(p.falls), func(at int64) bool { return now.Sub(stamp(at)) > flapWindow })
	if n := len(falls); n >= 2 {
		f := found(Flapping, node, name, falls[0], []string{fmt.Sprintf("%d falls from %s to %s", n, clock(falls[0]),
			clock(falls[n-1]))}, n)
		if n >= 3 {
			f.Severity, f.Confidence = finding.Error, 0.97
		}
		list = append(list, f)
	}
	if p.wasUp && !p.up {
		list = append(list, found(LinkDown, node, name, p.since,
			[]string{"it was up before; last report at " + clock(p.updated)}, clock(p.since)))
	}
	return list
}
