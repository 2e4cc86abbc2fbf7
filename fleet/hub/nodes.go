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
	s.Ports = nil
	return s
}

// Nodes lists nodes that were not forgotten, all by their names where none are given; what passes by is not in it.
func (v *View) Nodes(names ...fleet.Name) []fleet.NodeState {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if names == nil {
		names = sortedNames(v.nodes)
	}
	accused := v.accused(names)
	out := make([]fleet.NodeState, 0, len(names))
	for _, n := range names {
		if s := v.nodes[n]; s != nil && !s.forgotten {
			out = append(out, s.shown(accused[n]))
		}
	}
	return out
}

// accused are the findings that hold, by those of these nodes that they name. Others may have thousands.
func (v *View) accused(names []fleet.Name) map[fleet.Name][]finding.Finding {
	out := map[fleet.Name][]finding.Finding{}
	for _, n := range names {
		out[n] = nil
	}
	for _, f := range v.findings {
		for _, n := range f.Nodes {
			if list, asked := out[fleet.Name(n)]; asked {
				out[fleet.Name(n)] = append(list, f)
			}
		}
	}
	return out
}

// shown is a node with the findings that name it.
func (s *node) shown(accused []finding.Finding) fleet.NodeState {
	out := s.state
	if s.left {
		out.State = fleet.NodeLeft
	}
	for _, p := range slices.Sorted(maps.Keys(s.links)) {
		out.Ports = append(out.Ports, s.links[p])
	}
	for _, f := range accused {
		out.Findings = append(out.Findings, f.ID)
		out.Unhealthy = out.Unhealthy || drains(f)
		if f.Kind == health.Unreachable || f.Kind == health.UnreachableFleet {
			out.UnreachableSince = f.Since
		}
	}
	slices.Sort(out.Findings)
	return out
}

// Node is a node with its last heartbeat.
func (h *Hub) Node(n fleet.Name) (s fleet.NodeState, ok bool) {
	for _, s := range h.Nodes(n) {
		return s, true
	}
	return s, false
}

// Nodes lists nodes with their last heartbeats, all where no names are given.
func (h *Hub) Nodes(names ...fleet.Name) []fleet.NodeState {
	list := h.view.Nodes(names...)
	for i := range list {
		h.alive(&list[i])
	}
	return list
}

// alive adds the last beat. A node that was unreachable before this server began is so until it beats.
func (h *Hub) alive(s *fleet.NodeState) {
	if !h.live.alive(s, h.cfg.Unreachable) && s.State == fleet.NodeUnreachable && s.UnreachableSince.IsZero() &&
		time.Since(h.began) < time.Duration(h.waits.Load()) {
		s.State = fleet.NodeStarting
	}
}

// byNumber orders names as people do: gpu2 before gpu10.
func byNumber(a, b fleet.Name) int { return natural.Compare(string(a), string(b)) }

// sortedNames are the keys of a map in that order.
func sortedNames[T any](of map[fleet.Name]T) []fleet.Name {
	return slices.SortedFunc(maps.Keys(of), byNumber)
}
