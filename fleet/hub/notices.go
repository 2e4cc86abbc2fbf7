package hub

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/texttab"
)

// Kinds of notices.
const (
	unreadable finding.Kind = "unreadable" // a node sends what cannot be taken in
	twoAgents  finding.Kind = "two-agents" // two agents connect under one name
	// Flooding is a node that sends far more than a node has to say.
	Flooding finding.Kind = "flooding"
)

// noticeLasts is for how long a notice is told after it was seen last: longer than what floods is shut out, and than an
// agent takes that is started again and again. After a third of it, it is clearing.
const noticeLasts = 5 * time.Minute

// maxNotices are those of one node, and maxReported those of one heartbeat: none drives out those of others.
const (
	maxNotices  = 32
	maxReported = 16
)

// notices are findings about nodes from what passes by. They end by themselves, by the process's own clock, which
// nobody sets.
type notices struct {
	mu sync.Mutex // guards following
	of map[string]map[string]*notice
}

type notice struct {
	finding.Finding

	last  time.Time
	stays bool // until it is dropped
}

// about is a finding about one node.
func about(kind finding.Kind, s finding.Severity, n fleet.Name, text, fix string) finding.Finding {
	return finding.Finding{
		ID: fmt.Sprintf("%s:%s", kind, n), Kind: kind, Severity: s, Nodes: []string{string(n)}, Confidence: 1, Text: text,
		Fix: fix,
	}
}

// add takes note of a finding that is seen now; fresh tells that it was not known.
func (s *notices) add(f finding.Finding, stays bool) (fresh bool) {
	if f.Severity < finding.Warn || len(f.Nodes) == 0 {
		return false
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	each := s.of[f.Nodes[0]]
	old, known := each[f.ID]
	switch {
	case known:
		f.Since = old.Since
	case len(each) >= maxNotices || len(s.of) >= fleet.MaxNodes && each == nil:
		return false
	default:
		f.Since = now.UTC().Truncate(time.Second)
	}
	if each == nil {
		each = map[string]*notice{}
		s.of[f.Nodes[0]] = each
	}
	each[f.ID] = &notice{f, now, stays}
	return !known
}

// drop ends what was noticed of a kind about a node.
func (s *notices) drop(n fleet.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of[string(n)], about(unreadable, 0, n, "", "").ID)
}

// findings are those that have not ended.
func (s *notices) findings() (list []finding.Finding) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for node, each := range s.of {
		maps.DeleteFunc(each, func(_ string, n *notice) bool { return !n.stays && now.Sub(n.last) > noticeLasts })
		if len(each) == 0 {
			delete(s.of, node)
		}
		for _, n := range each {
			n.Clearing = !n.stays && now.Sub(n.last) > noticeLasts/3
			list = append(list, n.Finding)
		}
	}
	slices.SortFunc(list, func(a, b finding.Finding) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// notice takes note of something about a node, and has what is new told at once.
func (h *Hub) notice(f finding.Finding) {
	if h.view.notices.add(f, false) {
		h.lookNow()
	}
}

// second takes note of a second agent that the bus refused, and of where the first one is.
func (h *Hub) second(n fleet.Name, other string) {
	f := about(twoAgents, finding.Warn, n, fmt.Sprintf("two agents use the name %s", n),
		fmt.Sprintf("find the second agent that runs with the credentials of %s, and give it its own (busbar serve token "+
			"node NAME); if they were stolen: busbar serve token node %s --revoke", n, n))
	f.Evidence = finding.Facts("an agent was refused because another one answers: " + cut(other))
	h.notice(f)
}

// Flood takes note of a node that sends more than a node has to say. Only its own credentials can: the bus takes
// messages under a node's name from nobody else.
func (h *Hub) Flood(x bus.Flood) {
	f := about(Flooding, finding.Error, x.Node,
		fmt.Sprintf("%s floods the server: it sends far more events than a node produces.", x.Node),
		fmt.Sprintf("Check what runs on %s with its credentials. If they were stolen: busbar serve token node %s --revoke.",
			x.Node, x.Node))
	f.Evidence = finding.Facts(fmt.Sprintf("%s: %d messages were refused", x.What, x.Refused))
	h.notice(f)
}

// setAside notes that what a node sends cannot be taken in.
func (v *View) setAside(n fleet.Name, why string) {
	f := about(unreadable, finding.Warn, n,
		fmt.Sprintf("%s sends events that the server cannot process; they are set aside.", n),
		fmt.Sprintf("Check which version of busbar agent runs on %s. If its credentials were stolen:  busbar serve token "+
			"node %s --revoke.", n, n))
	f.Evidence = finding.Facts(cut(why))
	v.notices.add(f, true)
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
		v.setAside(e.Publisher, fmt.Sprintf("message %d broke the server's fold: %v", e.Seq, p))
	}
}

// reportedKind is what a node may call what is wrong with it.
var reportedKind = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// reported takes note of what a node says is wrong with itself. It counts for itself alone: names and places are made
// here, and what it says is told as its words.
func (h *Hub) reported(n fleet.Name, list []finding.Finding) {
	for _, f := range list[:min(len(list), maxReported)] {
		where := texttab.Clean(f.Where)
		if !reportedKind.MatchString(f.ID) || len(where) > 40 || len(f.Text) > 1000 || len(f.Fix) > 1000 {
			continue
		}
		kept := about(finding.Kind(f.ID), min(f.Severity, finding.Error), n, says(n, f.Text), says(n, f.Fix))
		kept.Where = string(n) + "/" + where
		kept.ID += "/" + where
		h.notice(kept)
	}
}

// says tells something as the words of a node, on one line.
func says(n fleet.Name, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s says: %s", n, strings.Join(strings.Fields(texttab.Clean(text)), " "))
}
