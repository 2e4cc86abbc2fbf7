package hub

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// Unreadable is a finding about a node that sends what cannot be taken in.
const Unreadable finding.Kind = "unreadable"

// aside is a message that was set aside: since when, and why.
type aside struct {
	since time.Time
	why   string
}

// setAside notes that what a node says cannot be taken in. The caller holds mu.
func (v *View) setAside(n fleet.Name, at time.Time, why string) {
	if old, ok := v.aside[n]; ok {
		at = old.since
	}
	v.aside[n] = aside{at, cut(why)}
}

// survive keeps a message that breaks the fold from ending the server, which would read it again at every start. The
// caller holds mu.
func (v *View) survive(e Entry, taken *bool) {
	p := recover()
	if p == nil {
		return
	}
	v.ignored["set aside"]++
	*taken = false
	if e.Publisher != "" {
		v.setAside(e.Publisher, e.Stored, fmt.Sprintf("message %d broke the server's fold: %v", e.Seq, p))
	}
}

// unreadable are findings about nodes of which something is set aside.
func (v *View) unreadable() (list []finding.Finding) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, n := range slices.Sorted(maps.Keys(v.aside)) {
		a := v.aside[n]
		if s := v.nodes[n]; s != nil && (s.left || s.forgotten) {
			continue
		}
		list = append(list, finding.Finding{
			ID: fmt.Sprintf("%s:%s", Unreadable, n), Kind: Unreadable, Severity: finding.Warn, Nodes: []string{string(n)},
			Since: a.since.UTC().Truncate(time.Second), Confidence: 1,
			Text:     fmt.Sprintf("%s sends events that the server cannot process; they are set aside.", n),
			Evidence: finding.Facts(a.why),
			Fix: fmt.Sprintf("Check which version of busbar agent runs on %s. If its credentials were stolen:  busbar "+
				"serve token node %s --revoke.", n, n),
		})
	}
	return list
}
