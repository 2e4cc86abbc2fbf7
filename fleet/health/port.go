package health

import (
	"fmt"
	"slices"
	"sort"
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
	states   []linkAt
	counters map[string]*track
}

type linkAt struct {
	at int64
	up bool
}

// Bounds of what is kept of a node's ports.
const (
	mostStates = 128
	mostPorts  = 256
)

// portOf is a port of a node, made where it is new.
func (h *History) portOf(i int32, name string) *port {
	n := &h.node[i]
	p := n.ports[name]
	if p == nil && name != "" && len(name) <= longest && len(n.ports) < mostPorts {
		if n.ports == nil {
			n.ports = map[string]*port{}
		}
		p = &port{}
		n.ports[name] = p
	}
	return p
}

// Link takes the state of a port. Of reports in a row that say the same only the first and
// the last are kept once there are many.
func (h *History) Link(s LinkState) bool {
	i, ok := h.nodeOf(s.Node)
	if !ok || !known(s.Time) {
		return h.no()
	}
	p := h.portOf(i, s.Port)
	if p == nil {
		return h.no()
	}
	at := s.Time.UnixNano()
	k := sort.Search(len(p.states), func(k int) bool { return p.states[k].at >= at })
	if k < len(p.states) && p.states[k].at == at || k == 0 && len(p.states) >= mostStates {
		return false
	}
	p.states = slices.Insert(p.states, k, linkAt{at, s.Up})
	if len(p.states) <= mostStates {
		return true
	}
	for k := len(p.states) - 2; k > 0; k-- {
		if a, b, c := p.states[k-1], p.states[k], p.states[k+1]; a.up == b.up && b.up == c.up {
			p.states = slices.Delete(p.states, k, k+1)
		}
	}
	if len(p.states) > mostStates {
		p.states = slices.Delete(p.states, 0, len(p.states)-mostStates)
	}
	return true
}

// flapWindow is within which falls of a link belong together.
const flapWindow = time.Hour

// portFindings finds links that are down and were up, and those that fall again and again. A
// port that never was up is one without a cable.
func (h *History) portFindings(now time.Time) []finding.Finding {
	var list []finding.Finding
	for i := range h.node {
		if h.node[i].gone {
			continue
		}
		for _, name := range sortedKeys(h.node[i].ports) {
			list = append(list, linkFindings(h.nodes.list[i], name, h.node[i].ports[name].states, now)...)
		}
	}
	return list
}

func linkFindings(node, name string, states []linkAt, now time.Time) []finding.Finding {
	if len(states) == 0 {
		return nil
	}
	var falls []int64
	var down time.Duration
	for k := 1; k < len(states); k++ {
		a, b := states[k-1], states[k]
		if a.up && !b.up && now.Sub(stamp(b.at)) <= flapWindow {
			falls = append(falls, b.at)
		}
		if !a.up && now.Sub(stamp(b.at)) <= flapWindow {
			down += time.Duration(b.at - a.at)
		}
	}
	where := name
	var list []finding.Finding
	if n := len(falls); n >= 2 {
		f := finding.Finding{
			ID: "flapping:" + node + "/" + name, Kind: Flapping, Severity: finding.Warn, Nodes: []string{node}, Where: where,
			Since: stamp(falls[0]), Confidence: 0.9,
			Text: fmt.Sprintf("The link of %s/%s flaps: it fell %d times within an hour.", node, name, n),
			Fix: "Reseat or replace cable and transceiver, then the NIC; look at the switch port's errors. Drain the " +
				"node: a job loses its connections at every fall.",
			Evidence: finding.Facts(fmt.Sprintf("%d falls from %s to %s, down for %s of the last hour", n,
				clock(stamp(falls[0])), clock(stamp(falls[n-1])), down.Round(time.Second))),
		}
		if n >= 3 {
			f.Severity, f.Confidence = finding.Error, 0.97
		}
		list = append(list, f)
	}
	last := states[len(states)-1]
	fell := slices.IndexFunc(states, func(s linkAt) bool { return s.up })
	if last.up || fell < 0 {
		return list
	}
	since := last.at
	for k := len(states) - 1; k >= 0 && !states[k].up; k-- {
		since = states[k].at
	}
	return append(list, finding.Finding{
		ID: "link-down:" + node + "/" + name, Kind: LinkDown, Severity: finding.Error, Nodes: []string{node}, Where: where,
		Since: stamp(since), Confidence: 0.99,
		Text:     fmt.Sprintf("The link of %s/%s is down since %s.", node, name, clock(stamp(since))),
		Fix:      "Check cable, transceiver and switch port (ibstat, ip link, ethtool); drain the node until it is up.",
		Evidence: finding.Facts(fmt.Sprintf("it was up before; last report at %s", clock(stamp(last.at)))),
	})
}

func sortedKeys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
