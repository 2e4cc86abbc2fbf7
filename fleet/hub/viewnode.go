package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/unit"
)

// node is what is known of a node from what it sent.
type node struct {
	joined     *fleet.Joined // without its map; nil where it only ever said other things
	joinedAt   time.Time
	receivedAt time.Time
	left       bool
	// forgotten is one that was taken out, and is not shown.
	forgotten bool
	mapped    json.RawMessage
	links     map[string]fleet.PortState
	errors    map[string]map[string]uint64
	boot      string
	// lastFailed is the last thing that this node could not measure.
	lastFailed   string
	lastFailedAt time.Time
}

// node folds what a node said about itself. What comes again, after the store lost it, belongs to the past: it does not
// replace what was said since.
func (v *View) node(n *fleet.Event, at time.Time, again bool) bool {
	s := v.nodes[n.Node]
	if s == nil {
		s = &node{links: map[string]fleet.PortState{}, errors: map[string]map[string]uint64{}}
		v.nodes[n.Node] = s
		v.catchUp("node " + string(n.Node))
	}
	if at.After(s.receivedAt) {
		s.receivedAt = at
	}
	switch n.Kind {
	case fleet.KindJoined:
		if !again || at.After(s.joinedAt) && !s.left {
			v.join(n.Node, s, n.Joined, at)
		}
	case fleet.KindLeft:
		if again && s.receivedAt.After(at) {
			return true
		}
		s.left = true
		v.changes++
		v.history(addForget(n.Node))
	case fleet.KindLink:
		if old, known := s.links[n.Link.Port]; again && known && old.Since.After(at) {
			v.history(addLink(n.Node, n.Link, at))
			return true
		}
		return v.link(n.Node, s, n.Link, at)
	case fleet.KindCounters:
		if again && len(s.errors) > 0 {
			return true // newer ones are there, or come
		}
		return v.counters(n.Node, s, n.Counters, at)
	case fleet.KindMeasured:
		return v.measured(n.Node, s, n.Measured, at)
	}
	return true
}

// join takes what a node has. A map that is too long is left out; the node counts all the same.
func (v *View) join(name fleet.Name, s *node, j *fleet.Joined, at time.Time) {
	kept := *j
	kept.Map = nil
	kept.Version, kept.Boot, kept.Meet, kept.Bind = cut(j.Version), cut(j.Boot), cut(j.Meet), cut(j.Bind)
	kept.CPUs = min(max(j.CPUs, 0), 1<<16)
	kept.Means = slices.Clone(j.Means[:min(len(j.Means), len(fleet.Transports()))])
	for i, m := range kept.Means {
		kept.Means[i] = fleet.Means{By: fleet.Transport(cut(string(m.By))), Why: cut(m.Why)}
	}
	if o := s.joined; o != nil && !s.left && o.Version == kept.Version && o.Boot == kept.Boot && o.Meet == kept.Meet && o.Bind == kept.Bind &&
		o.CPUs == kept.CPUs && slices.Equal(o.Means, kept.Means) && bytes.Equal(s.mapped, j.Map) {
		return // it says again what it sent, and came when it came
	}
	why := ""
	v.maps -= len(s.mapped)
	s.mapped = nil
	if len(j.Map) > maxMap || v.maps+len(j.Map) > maxMaps {
		v.ignored["map too long"]++
		why = fmt.Sprintf("its map has %d bytes; at most %d are accepted", len(j.Map), maxMap)
	} else {
		s.mapped = j.Map
	}
	v.maps += len(s.mapped)
	v.changes++
	s.joined, s.joinedAt, s.left, s.forgotten, s.boot = &kept, at, false, false, kept.Boot
	p, err := place(nodeMap{name, s.mapped}, v.leaves[string(name)])
	if err != nil && why == "" {
		why = "its map cannot be read: " + err.Error()
	}
	if delete(v.aside, name); why != "" {
		v.setAside(name, at, why)
	}
	v.history(func(h *health.History) { h.SetPlace(string(name), p) })
}

// cut bounds a word, and takes out what would move the cursor of who prints it.
func cut(s string) string {
	s = strings.ToValidUTF8(strings.Clone(s[:min(len(s), maxText)]), "") // a piece would hold the whole
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// plain reports a word that cut leaves as it is.
func plain(s string) bool { return cut(s) == s }

func (v *View) link(name fleet.Name, s *node, l *fleet.Link, at time.Time) bool {
	if l.Port == "" || !plain(l.Port) || !saneRate(l.Rate) {
		return v.ignore("absurd values")
	}
	old, known := s.links[l.Port]
	if !known && len(s.links) >= maxPorts {
		return v.ignore("too many ports")
	}
	p := fleet.PortState{Port: l.Port, Up: l.Up, Rate: l.Rate, State: cut(l.State), Since: at}
	if known && old.Up == p.Up && old.Rate == p.Rate && old.State == p.State {
		p.Since = old.Since
	}
	s.links[l.Port] = p
	v.history(addLink(name, l, at))
	return true
}

func (v *View) counters(name fleet.Name, s *node, c *fleet.Counters, at time.Time) bool {
	if c.Boot != s.boot { // they begin anew
		s.boot = cut(c.Boot)
		clear(s.errors)
	}
	taken := 0
	for _, port := range slices.Sorted(maps.Keys(c.Values)) {
		values := c.Values[port]
		if s.errors[port] == nil {
			if len(s.errors) >= maxPorts || !plain(port) {
				continue
			}
			s.errors[port] = map[string]uint64{}
		}
		for _, counter := range slices.Sorted(maps.Keys(values)) {
			_, known := s.errors[port][counter]
			if !known && (len(s.errors[port]) >= maxCounters || !plain(counter)) {
				continue
			}
			s.errors[port][counter] = values[counter]
			taken++
			v.history(addCounter(name, port, counter, values[counter], at))
		}
	}
	if taken == 0 && len(c.Values) > 0 {
		return v.ignore("too many counters")
	}
	return true
}

// saneRate refuses rates that nothing has.
func saneRate(r unit.Rate) bool { return r >= 0 && r <= 1e13 }

// saneTime refuses latencies that nobody waits for.
func saneTime(t unit.Time) bool { return t >= 0 && t <= 1000*unit.Second }
