package hub

import "busbar.dev/fleet"

// NewView is a view of an empty stream.
func NewView() *View { return newView(nil, 0) }

// heatOf is the last figures of all nodes by TCP.
func (v *View) heatOf(f fleet.Figure) *fleet.Heat {
	return v.Heat(f, fleet.TCP, v.asked(&fleet.Order{}), "")
}

// Node is one of them.
func (v *View) Node(n fleet.Name) (s fleet.NodeState, ok bool) {
	for _, s := range v.Nodes(n) {
		return s, true
	}
	return s, false
}
