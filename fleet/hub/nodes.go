package hub

import (
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/natural"
)

// brief leaves out what a page has and what changes seldom.
func brief(s fleet.NodeState) fleet.NodeState {
	s.Counters, s.Ports = nil, nil
	return s
}

// Node is what a view knows of a node that was not forgotten; what passes by is not in it.
func (v *View) Node(n fleet.Name) (fleet.NodeState, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.nodes[n]
	if s == nil || s.forgotten {
		return fleet.NodeState{}, false
	}
	return v.nodeState(n, s, v.accused()), true
}

// Nodes lists all nodes that were not forgotten by name, numbers in them in their order.
func (v *View) Nodes() []fleet.NodeState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	accused := v.accused()
	out := make([]fleet.NodeState, 0, len(v.nodes))
	for _, n := range slices.SortedFunc(maps.Keys(v.nodes), byNumber) {
		if s := v.nodes[n]; !s.forgotten {
			out = append(out, v.nodeState(n, s, accused))
		}
	}
	return out
}

// accused are the findings that hold, by node.
func (v *View) accused() map[fleet.Name][]*finding.Finding {
	out := map[fleet.Name][]*finding.Finding{}
	for _, id := range slices.Sorted(maps.Keys(v.findings)) {
		f := v.findings[id]
		if !f.Cleared.IsZero() {
			continue
		}
		for _, n := range f.Nodes {
			out[fleet.Name(n)] = append(out[fleet.Name(n)], f)
		}
	}
	return out
}

func (v *View) nodeState(name fleet.Name, s *node, accused map[fleet.Name][]*finding.Finding) fleet.NodeState {
	out := fleet.NodeState{
		Name: name, State: fleet.NodeUnreachable, Received: s.receivedAt, Age: -1, AgeS: -1, Failed: s.lastFailed,
		FailedAt: s.lastFailedAt,
	}
	if j := s.joined; j != nil {
		out.Joined, out.Version, out.Meet, out.Bind, out.CPUs = s.joinedAt, j.Version, j.Meet, j.Bind, j.CPUs
	}
	if s.left {
		out.State = fleet.NodeLeft
	}
	for _, p := range slices.Sorted(maps.Keys(s.links)) {
		out.Ports = append(out.Ports, s.links[p])
	}
	if len(s.errors) > 0 {
		out.Counters = make(map[string]map[string]uint64, len(s.errors))
		for p, c := range s.errors {
			out.Counters[p] = maps.Clone(c)
		}
	}
	for _, f := range accused[name] {
		out.Findings = append(out.Findings, f.ID)
		out.Unhealthy = out.Unhealthy || drains(*f)
		if f.Kind == health.Unreachable || f.Kind == health.UnreachableFleet {
			out.UnreachableSince = f.Since
		}
	}
	return out
}

// Node is a node with its last heartbeat and progress.
func (h *Hub) Node(n fleet.Name) (fleet.NodeState, bool) {
	s, ok := h.view.Node(n)
	if ok {
		h.alive(&s, h.now())
	}
	return s, ok
}

// Nodes lists all nodes with their last heartbeats and progress.
func (h *Hub) Nodes() []fleet.NodeState {
	list := h.view.Nodes()
	now := h.now()
	for i := range list {
		h.alive(&list[i], now)
	}
	return list
}

// alive adds the last beat.
func (h *Hub) alive(s *fleet.NodeState, now time.Time) {
	b, d, ok := h.live.of(s.Name)
	if !ok {
		// What was unreachable before this server began is so until it beats.
		if s.State == fleet.NodeUnreachable && s.UnreachableSince.IsZero() && h.clock.since() < h.cfg.Unreachable {
			s.State = fleet.NodeStarting
		}
		return
	}
	s.Age = max(now.Sub(b.came), 0)
	s.AgeS = s.Age.Seconds()
	if h.live.quiet(b.came, now) <= h.cfg.Unreachable && (s.State != fleet.NodeLeft || b.came.After(s.Received)) {
		s.State = fleet.NodeUp
	}
	s.Waiting, s.Load, s.Receive, s.Send, s.RSS, s.CPU = b.Waiting, b.Load, b.Receive, b.Send, b.RSS, b.CPU
	if b.Part != "" {
		s.Progress = &fleet.Progress{Node: s.Name, Part: b.Part}
		if d.Part == b.Part {
			s.Progress = &d
		}
	}
}

// byNumber orders names as people do: gpu2 before gpu10.
func byNumber(a, b fleet.Name) int { return natural.Compare(string(a), string(b)) }
